"""The only reader and writer of the record.

An operation takes a list of requests and returns a list of results; it is given to
:meth:`agent.record.record.Record.submit`, which runs it in the database thread and inside one
transaction (:mod:`agent.record.ground.commit`).

Each folder imports only those before it: ``ground`` (transactions, statements), ``settings``
(rows that an operator sets), ``chats``, ``sums``, ``runs``, ``waiting`` (what is to be decided,
sent, stopped or taken over), ``arrivals``.
"""

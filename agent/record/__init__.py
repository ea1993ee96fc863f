"""The only reader and writer of the record.

Its functions are given to :meth:`agent.record.record.Record.submit`, which runs them in the
database thread and inside one transaction (:mod:`agent.record.ground.commit`); those that gain from
a batch take a list of requests and return a list of results.

Each folder imports only those before it: ``ground`` (transactions, statements), ``settings``
(rows that an operator sets), ``chats``, ``sums``, ``runs``, ``waiting`` (what is to be decided,
sent, stopped or taken over), ``arrivals``.
"""

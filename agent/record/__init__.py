"""The only reader and writer of the record.

Every function here takes a list of requests and returns a list of results, runs in
the database thread and inside one transaction (:mod:`agent.record.commit`).
"""

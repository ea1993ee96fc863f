"""Faults of every kind on the real server under load, judged from outside and by the record."""

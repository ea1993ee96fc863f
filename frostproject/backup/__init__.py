"""Backups: the whole installation in one file, and back, on SQLite and PostgreSQL alike."""

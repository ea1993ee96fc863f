"""Backups, and what is restored from them."""

"""Tests of what commands of a chat do and say."""

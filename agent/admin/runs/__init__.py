"""Runs, their model calls and tool calls, as pages."""

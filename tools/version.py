"""The version of the program: the one place that says it."""

VERSION = "0.1.0"

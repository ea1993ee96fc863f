"""The version of the program: the one place that says it, and how it is told to servers."""

VERSION = "0.9.0"
#: Of every request that the program makes.
USER_AGENT = f"FrostAgent/{VERSION}"

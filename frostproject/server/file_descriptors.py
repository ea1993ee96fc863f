"""How many files and sockets this process may have open at a time."""

try:
    import resource
except ImportError:  # not a Unix
    resource = None  # type: ignore[assignment]

#: More than this is of no use, and some programs started by this one try to close every number
#: there could be.
WANTED_DESCRIPTORS = 65_536
#: Kept for the model, the database, children and their pipes, OneBot sockets and files.
RESERVED_DESCRIPTORS = 256
#: HTTP connections in all, however many descriptors there are, and however few.
MOST, LEAST = 1_000, 16


def raise_file_limit() -> None:
    """Raise the soft limit as far as the hard one allows; services are started with 1,024."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, WANTED_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def http_connection_limit() -> int:
    """HTTP connections that leave the reserve alone; each may have a file for its body."""
    if resource is None:
        return MOST
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        MOST
        if soft == resource.RLIM_INFINITY
        else max(LEAST, min(MOST, (soft - RESERVED_DESCRIPTORS) // 2))
    )

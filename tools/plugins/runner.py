"""The program of a plugin's process: ``python -I runner.py FOLDER READS WRITES``.

READS and WRITES are the file descriptors of the two pipes to the server. Standard output and error
belong to the plugin; the server reads them line by line.
"""

import faulthandler
import os
import signal
import sys
from io import TextIOWrapper
from pathlib import Path


def main(folder: str, reads: int, writes: int) -> None:
    """Serve the plugin until the server exits or requests the end; the process ends here, even if
    threads still run."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    for pipe in (reads, writes):
        os.set_inheritable(pipe, False)
    os.register_at_fork(after_in_child=lambda: _close(reads, writes))
    faulthandler.enable()
    if hasattr(signal, "SIGXCPU"):
        faulthandler.register(signal.SIGXCPU, chain=True)
    sys.dont_write_bytecode = True  # or each load would look like a change of the folder
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # -I leaves this project out
    from tools.plugins.service import serve_plugin

    serve_plugin(Path(folder).resolve(), reads, writes)


def _close(*pipes: int) -> None:
    """A forked child must neither write frames nor keep the pipes open when its parent is gone."""
    null = os.open(os.devnull, os.O_RDWR)
    for pipe in pipes:
        os.dup2(null, pipe)
    os.close(null)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

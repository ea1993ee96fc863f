"""``make upgrade``: the newest commit of the branch, or what was there before.

It needs nothing but Python and git, and is in memory as a whole before the code below it changes.
What it would go back to is on record in the data folder before anything is changed, so that the
next call ends one that was killed.
"""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent.parent
PYTHON = str(HOME / ".venv" / "bin" / "python")
#: Of one command, and of the start, in seconds.
COMMAND_SECONDS, START_SECONDS = 3600, 120
#: Asked of the installed program: where its rows are, and whether a server works on them.
FACTS = """
import json, os
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "frostproject.settings")
import django
django.setup()
from django.conf import settings
from frostproject.backup.saving import is_running
database = settings.DATABASES["default"]
is_sqlite = database["ENGINE"].endswith("sqlite3")
print(json.dumps({"data": str(settings.DATA_DIR), "running": is_running(),
                  "sqlite": str(database["NAME"]) if is_sqlite else "",
                  "passphrase": settings.FROST_BACKUP_PASSPHRASE}))
"""
#: The new program for a look: it ends with this one, however that ends.
SERVER = """
import os, runpy, signal, sys, threading
def follow():
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=follow, daemon=True).start()
sys.argv[0] = "manage.py"
runpy.run_path("manage.py", run_name="__main__")
"""


class StepFailed(Exception):  # noqa: N818 - what happened, with the words for it
    """A step that did not work; its text says why."""


def tell(text: str) -> None:
    print(text, flush=True)


def run(*command: str, passphrase: str = "") -> str:
    """What ``command`` prints. ``passphrase`` is that of backups. Raises :class:`StepFailed` with
    its last words."""
    # The make that runs this program leaves word for makes below it.
    env = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAG"))}
    env |= {"FROST_BACKUP_PASSPHRASE": passphrase} if passphrase else {}
    try:
        done = subprocess.run(
            command,
            cwd=HOME,
            env=env | {"GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StepFailed(str(error)) from error
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()[-12:]
        raise StepFailed("\n".join(words) or f"{command[0]}: exit status {done.returncode}")
    return done.stdout.strip()


def manage(*arguments: str, passphrase: str = "") -> str:
    return run(PYTHON, "manage.py", *arguments, passphrase=passphrase)


def require_clean() -> None:
    """Raises :class:`StepFailed` where a fast-forward would not be one."""
    if run("git", "status", "--porcelain", "--untracked-files=no"):
        raise StepFailed("files of the program were edited: git status names them. Commit or undo.")
    try:
        run("git", "rev-parse", "--abbrev-ref", "@{upstream}")
    except StepFailed as error:
        raise StepFailed(f"this branch follows none of a remote: {error}") from error


def find_newest() -> str:
    """The newest commit, "" where it is here. Raises :class:`StepFailed`."""
    run("git", "fetch", "--quiet")
    here, there = run("git", "rev-parse", "HEAD"), run("git", "rev-parse", "@{upstream}")
    if here == there or run("git", "merge-base", here, there) == there:
        return ""
    if run("git", "merge-base", here, there) != here:
        raise StepFailed("this branch has commits that the remote one has not.")
    return there


def copy_database(source: str, target: str) -> None:
    """All of a SQLite database, with what stands in its log, in place of ``target``."""
    connect, closing = sqlite3.connect, contextlib.closing
    with closing(connect(source)) as old, closing(connect(target)) as new:
        old.backup(new)


def put_back(copy: str, database: str) -> None:
    """Move ``copy`` into the place of ``database``, without the log of that one. On a full disk,
    too: it takes no room."""
    target = os.path.realpath(database)
    if not os.path.exists(copy):  # an earlier call has done it, and was killed then
        return
    for ending in ("-wal", "-shm"):
        Path(target + ending).unlink(missing_ok=True)
    try:
        os.replace(copy, target)
    except OSError:  # on another disk
        copy_database(copy, target)


def put_down(journal: Path, state: dict[str, str]) -> None:
    """What there is to go back to; nothing is changed before it is on the disk."""
    draft = journal.with_suffix(".draft")
    with draft.open("w", encoding="utf-8") as stream:
        json.dump(state, stream)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(journal)


def go_back(journal: Path) -> None:
    """To the code, packages and rows of before."""
    state = json.loads(journal.read_text("utf-8"))
    run("git", "reset", "--quiet", "--hard", state["commit"])
    tell(f"back: the code is that of {state['commit'][:8]} again")
    run("make", "install")
    tell("back: the packages are those of before")
    if state["sqlite"]:
        put_back(state["copy"], state["sqlite"])
    elif state["copy"]:
        manage("restore", state["copy"], "--yes", passphrase=state["passphrase"])
    else:  # written by a version that could not
        tell(f"If the server refuses the database: empty it, and restore {state['backup']}")
    tell("back: the database is as it was")
    shutil.rmtree(journal.parent)


def check_start() -> None:
    """Start the new program at a port that no client knows, and wait until it is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    address, ready = f"127.0.0.1:{port}", (PYTHON, "-IS", "deploy/ready.py", port)
    env = {**os.environ, "WS_LISTEN_ADDR": address}
    command = (PYTHON, "-c", SERVER, "runserver", "--noreload", address)
    nothing = subprocess.DEVNULL
    with subprocess.Popen(
        command, cwd=HOME, env=env, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing
    ) as server:
        try:
            until = time.monotonic() + START_SECONDS
            while subprocess.run(ready, cwd=HOME, stderr=nothing, check=False).returncode:
                if server.poll() is not None or time.monotonic() > until:
                    raise StepFailed("the new version did not become ready: see make run")
                time.sleep(0.5)
        finally:
            server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(30)
            server.kill()


def prepare(facts: dict[str, Any], folder: Path) -> None:
    """Back up, and put down what there is to go back to."""
    passphrase = facts["passphrase"]
    file = manage("backup", *([] if passphrase else ["--without-keys"])).splitlines()[-1]
    tell(f"backed up: {file}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    copy = str(folder / "database.sqlite3") if facts["sqlite"] else file
    if facts["sqlite"]:
        copy_database(facts["sqlite"], copy)
    elif not passphrase:  # what goes back has its keys
        copy, passphrase = str(folder / "database.zip"), secrets.token_hex(32)
        manage("backup", copy, passphrase=passphrase)
    state = {"commit": run("git", "rev-parse", "HEAD"), "sqlite": facts["sqlite"]}
    state |= {"copy": copy, "backup": file, "passphrase": passphrase}
    put_down(folder / "state.json", state)


def step_on(newest: str) -> None:
    """All that changes something; each step says that it is done."""
    run("git", "merge", "--quiet", "--ff-only", newest)
    tell(f"fetched: the code is that of {newest[:8]}")
    run("make", "install")
    tell("installed: the packages that it needs")
    manage("migrate", "--noinput")
    tell("migrated: the database")
    manage("check")
    check_start()
    tell("checked: it starts and is ready")


def upgrade() -> int:
    """The exit status."""
    facts = json.loads(run(PYTHON, "-c", FACTS).splitlines()[-1])
    if facts["running"]:
        raise StepFailed("a server works on the database: stop it first.")
    journal = Path(facts["data"], "upgrade", "state.json")
    if journal.exists():
        tell("An upgrade was cut off. Going back first.")
        go_back(journal)
    require_clean()
    if not (newest := find_newest()):
        tell("This is the newest version already.")
        return 0
    try:
        prepare(facts, journal.parent)
    except BaseException:  # nothing is changed yet, and a full disk has no room for half a copy
        shutil.rmtree(journal.parent, ignore_errors=True)
        raise
    try:
        step_on(newest)
    except (StepFailed, OSError, KeyboardInterrupt) as error:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what goes back is not interrupted
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        tell(f"FAILED: {error or 'interrupted'}\nGoing back.")
        go_back(journal)
        tell("Nothing is lost: this is the version of before. Start it with: make run")
        return 1
    shutil.rmtree(journal.parent)
    tell("Done. Start the server with: make run (or restart its service)")
    return 0


def interrupt(*_signal: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    os.umask(0o077)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        return upgrade()
    except (StepFailed, OSError, sqlite3.Error, KeyboardInterrupt) as error:
        tell(f"Not upgraded: {error or 'interrupted'}")
        tell("If it stopped in the middle, call make upgrade again: it goes back first.")
        return 1


if __name__ == "__main__":
    sys.exit(main())

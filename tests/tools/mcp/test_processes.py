"""What is started for a server ends: with the session, with the provider, and with us however we
end."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment import PATIENCE, PROJECT
from tests.tools.mcp.serving import hostile, linked, until

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        not Path("/proc/self/stat").exists(), reason="descendants are found through /proc"
    ),
]

HOLDS_A_LINK = """
import asyncio, sys
import django
django.setup()
from django.conf import settings
settings.MCP_ALLOWED_COMMANDS = [sys.executable]
from tests.tools.mcp.serving import hostile, linked

async def main():
    async with linked(hostile("grandchild", sys.argv[1])):
        print("up", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def told(file: Path) -> int:
    return int(file.read_text() or 0) if file.exists() else 0


def running(argument: object) -> list[int]:
    """The processes that have this among their arguments."""
    word = str(argument).encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return [process for process in found if is_alive(process)]


async def test_grandchildren_that_do_not_want_to_end_end_with_the_session(tmp_path: Path):
    async with linked(hostile("grandchild", tmp_path / "pid")) as link:
        await until(lambda: told(tmp_path / "pid"))
        assert link.is_offered
        assert is_alive(told(tmp_path / "pid"))
    assert not is_alive(told(tmp_path / "pid"))
    assert running(tmp_path / "pid") == []


async def test_who_kills_the_process_that_watches_over_it_ends_as_well(tmp_path: Path):
    async with linked(
        hostile("patricide", tmp_path / "pid", connect_seconds=0.5), is_up=False
    ) as link:
        await until(lambda: told(tmp_path / "pid"))
        first = told(tmp_path / "pid")
        await until(lambda: "status -9" in link.status("p").error)
        assert not is_alive(first)
    assert running(tmp_path / "pid") == []


@pytest.mark.parametrize("problem", ["deaf", "hang-connect"])
async def test_a_program_that_ignores_its_end_is_ended_when_its_time_is_over(
    problem: str, tmp_path: Path
):
    async with linked(hostile(problem, tmp_path), is_up=problem == "deaf") as link:
        await until(lambda: running(tmp_path))
        async with asyncio.timeout(PATIENCE):
            await link.close(4)
        assert link.is_over
        assert running(tmp_path) == []


async def test_connecting_that_is_cut_off_leaves_no_program(tmp_path: Path):
    async with linked(hostile("hang-connect", tmp_path, connect_seconds=0.2), is_up=False) as link:
        await until(lambda: link.status("p").error)
        first = running(tmp_path)
    await until(lambda: not running(tmp_path))
    assert len(first) <= 2  # the program and its keeper, of the next try


def test_nothing_outlives_a_server_that_is_killed(tmp_path: Path):
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PYTHONPATH": str(PROJECT),
        "PATH": "/usr/bin:/bin",
    }
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS_A_LINK, str(tmp_path / "pid")],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "up\n"
    asyncio.run(until(lambda: told(tmp_path / "pid")))
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    asyncio.run(until(lambda: not running(tmp_path / "pid")))
    assert not is_alive(told(tmp_path / "pid"))

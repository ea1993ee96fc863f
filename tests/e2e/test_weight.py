"""What a server loads that nobody has asked for anything yet."""

import os
import signal
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import prepared
from tests.environment import PATIENCE, PROJECT
from tests.live_server import LiveServer

#: Python imports it before the program; it counts when it is told to, and costs nothing before.
COUNTER = """
import os, signal, sys
from pathlib import Path

def write_modules(*_):
    file = Path(os.environ["TEST_MODULES"])
    part = file.with_suffix(".part")
    part.write_text("\\n".join(sorted(sys.modules)))
    part.rename(file)

signal.signal(signal.SIGUSR1, write_modules)
"""
FIGURES = tomllib.loads((PROJECT / ".ci" / "weight.toml").read_text(encoding="utf-8"))
#: What waits for its first use, each with what it is for.
LATER = (
    *("agent.admin", "agent.pages.run_facts", "frostproject.urls", "onebot.playground.pages"),
    *("frostproject.cockpit", "tools.admin", "segno", "yaml"),
    *("agent.markdown.parser", "markdown_it", "PIL", "mcp", "jsonpath", "requests", "openai"),
    *("psycopg", "opentelemetry.sdk", "agent.migrations.0001_initial"),
)


@pytest.fixture
def server(tmp_path) -> Iterator[LiveServer]:
    """A server by the command itself, on a folder that was used before."""
    (tmp_path / "sitecustomize.py").write_text(COUNTER)
    env = {
        "UPSTREAM_ENDPOINT": "http://127.0.0.1:9/v1",
        "MODEL_NAME": "m",
        "PYTHONPATH": str(tmp_path),
        "TEST_MODULES": str(tmp_path / "modules"),
    }
    one = LiveServer(env, fresh=True)
    prepared.fill(one.data_dir, one._environment())
    with one:
        yield one


def loaded(server: LiveServer) -> list[str]:
    """The modules that the process has once its tasks have begun: as many as a moment before."""
    with urllib.request.urlopen(f"{server.url}/ready", timeout=PATIENCE) as answer:
        assert answer.status == 200
    found, before = list[str](), [""]
    while found != before:
        before, found = found, _count(server)
    return found


def _count(server: LiveServer) -> list[str]:
    file, end = Path(server.env["TEST_MODULES"]), time.monotonic() + PATIENCE
    time.sleep(0.5)
    os.kill(server.pid, signal.SIGUSR1)
    while not file.exists():
        assert time.monotonic() < end, server.log
        time.sleep(0.02)
    words = file.read_text().split("\n")
    file.unlink()
    return words


def test_a_quiet_server_has_loaded_no_more_than_is_written_down_and_its_first_page_when_asked(
    server,
):
    modules = loaded(server)
    assert not {name for name in modules if name in LATER}
    assert len(modules) <= FIGURES["modules"], (
        "a quiet server loads more modules: import what it does not need where it is used, or "
        "raise the figure in .ci/weight.toml and say why"
    )
    with urllib.request.urlopen(f"{server.url}/admin/login/", timeout=PATIENCE) as page:
        assert page.status == 200
        assert b'name="username"' in page.read()
    assert {"agent.admin", "tools.plugins.admin"} <= set(loaded(server))

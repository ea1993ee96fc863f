"""What ``make install`` loads, so that Python keeps it compiled."""

import subprocess
import sys
from pathlib import Path

from tests.environment import PROJECT, clean_environment

LOAD = "import sys; from frostproject.start import bytecode; bytecode.main(); print(*sys.modules)"


def load(folder: Path, **env: str) -> set[str]:
    """The modules that are loaded."""
    done = subprocess.run(
        [sys.executable, "-c", LOAD],
        cwd=PROJECT,
        env=clean_environment(FROST_DATA_DIR=str(folder), **env),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


def test_what_a_server_and_its_processes_load_is_loaded_and_nothing_is_started(tmp_path):
    loaded = load(tmp_path, DATABASE_URL="postgres://nobody@127.0.0.1:1/none")
    wanted = {
        "frostproject.asgi",
        "openai",
        "mcp",
        "docx",
        "pypdf",
        "psycopg",
        "tools.plugins.runner",
    }
    assert wanted - loaded == set()
    assert not list(tmp_path.glob("*.sqlite3*"))


def test_a_wrong_setting_hinders_no_installation(tmp_path):
    assert "frostproject.asgi" not in load(tmp_path, WS_LISTEN_ADDR="nowhere")

"""Forked processes are what the command would be, and are told of as it would be."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import zygote
from tests.environment import PROJECT, clean_environment

pytestmark = pytest.mark.skipif(
    not zygote.is_possible(), reason="processes are forked on Linux alone"
)

_TELL = """
import json, os, signal, sys, threading
from django.conf import settings
print(json.dumps({
    "arguments": sys.argv, "folder": os.getcwd(), "words": os.environ["WORDS"],
    "given": sys.stdin.read(), "zone": __import__("time").tzname,
    "name": __name__, "configured": settings.configured, "threads": threading.active_count(),
    "open": sorted(os.listdir("/proc/self/fd")),
    "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "same": vars(sys.modules["__main__"]) is globals(),
}))
"""


def outcome(start: Any, tmp_path: Path, *arguments: str, **env: str) -> tuple[int, str]:
    """The exit status of ``python *arguments`` and what it printed on both streams."""
    given, printed = tmp_path / "given", tmp_path / "printed"
    given.write_text("something")
    with given.open("rb") as stdin, printed.open("wb") as out:
        status = start(
            [sys.executable, *arguments], clean_environment(**env), stdin, out, out
        ).wait(60)
    return status, printed.read_text()


def test_a_forked_process_sees_what_the_command_sees(tmp_path):
    found = [
        outcome(
            start, tmp_path, "-c", _TELL, "--here", "2", WORDS="雪 and more", TZ="Asia/Shanghai"
        )
        for start in (zygote.start, zygote.popen)
    ]
    assert found[0] == found[1]
    assert json.loads(found[0][1])["words"] == "雪 and more"


@pytest.mark.parametrize(
    "program", ["import sys; sys.exit('in words')", "1 / 0", "import sys; sys.exit(7)"]
)
def test_it_ends_as_the_command_does(tmp_path, program):
    (status, said), (expected, words) = (
        outcome(start, tmp_path, "-c", program) for start in (zygote.start, zygote.popen)
    )
    assert (status, said.splitlines()[-1:]) == (expected, words.splitlines()[-1:])


_OBEY = """
import sys
was_loaded = "agent.admin" in sys.modules
import django
django.setup()
from django.conf import settings
from django.db import connection
from django.utils import timezone, translation
import frostproject.urls
print(was_loaded)
print(settings.BOT_NAME, settings.DATA_DIR, connection.vendor, translation.gettext("Conversations"))
print(timezone.get_current_timezone_name(), settings.SECRET_KEY, settings.MAX_ITERATIONS)
"""


def test_it_has_the_pages_loaded_and_obeys_its_own_settings(tmp_path):
    env = {
        "FROST_DATA_DIR": str(tmp_path / "data"),
        "DJANGO_SETTINGS_MODULE": "frostproject.settings",
        "LANGUAGE_CODE": "zh-hans",
        "DATABASE_URL": "postgresql://u:p@127.0.0.1/none",
        "BOT_NAME": "雪",
        "TZ": "Asia/Tokyo",
        "MAX_ITERATIONS": "7",
    }
    (status, said), (expected, words) = (
        outcome(start, tmp_path, "-c", _OBEY, **env) for start in (zygote.start, zygote.popen)
    )
    assert (status, said) == (expected, words.replace("False", "True", 1))
    assert words.startswith("False")


def test_forked_processes_end_with_whoever_started_them():
    program = (
        "import sys; from subprocess import DEVNULL; from tests import zygote; from "
        "tests.environment import clean_environment as env\n"
        "print(zygote.start([sys.executable, '-c', 'import time; time.sleep(600)'], env(), "
        "DEVNULL, DEVNULL, DEVNULL).pid)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int(said.stdout), 0)

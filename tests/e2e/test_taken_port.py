"""A start on a port that another program has: one sentence, a status that says so, and nothing
made."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from frostproject.configuration import listening
from frostproject.management.commands.runserver import Command
from tests import zygote
from tests.environment import PATIENCE, PROJECT, clean_environment
from tests.live_server import free_port

BOTH = pytest.mark.parametrize("program", ["runserver", "daphne"])


@contextlib.contextmanager
def other_program(host: str = "127.0.0.1") -> Iterator[int]:
    """The port at which another program listens."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as other:
        other.bind((host, 0))
        other.listen()
        yield other.getsockname()[1]


def refused(folder: Path, *command: str, **env: str) -> str:
    """What a start says that has to fail before it makes anything."""
    fixed = {
        "FROST_DATA_DIR": str(folder / "data"),
        "DJANGO_SETTINGS_MODULE": "frostproject.settings",
        "LANGUAGE_CODE": "en",
    }
    environment = clean_environment(**fixed | env)
    ended = zygote.run([sys.executable, *command], environment, timeout=4 * PATIENCE)
    assert (ended.returncode, ended.stdout) == (1, "")
    return ended.stderr


def start(program: str, host: str, port: int) -> list[str]:
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if program == "runserver":
        return ["manage.py", "runserver", address]
    return ["-m", "daphne", "-b", host, "-p", str(port), "frostproject.asgi:application"]


@BOTH
@pytest.mark.parametrize(
    ("taken", "wanted"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "0.0.0.0"),
        ("0.0.0.0", "127.0.0.1"),
        ("::1", "::1"),
        ("0.0.0.0", "::"),
    ],
)
def test_a_taken_port_is_told_in_one_sentence_before_anything_is_made(
    tmp_path: Path, program: str, taken: str, wanted: str
):
    with other_program(taken) as port:
        said = refused(tmp_path, *start(program, wanted, port))
    shown = f"[{wanted}]" if ":" in wanted else wanted
    assert said == f"The server cannot start: another program already listens at {shown}:{port}.\n"
    assert not (tmp_path / "data").exists()


def test_the_address_may_come_from_the_settings_and_the_sentence_is_in_the_language_of_the_settings(
    tmp_path: Path,
):
    with other_program() as port:
        said = refused(
            tmp_path,
            "manage.py",
            "runserver",
            WS_LISTEN_ADDR=f"127.0.0.1:{port}",
            LANGUAGE_CODE="zh-hans",
        )
    assert f"127.0.0.1:{port}" in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "data").exists()


@BOTH
def test_an_address_of_another_machine_is_told_with_the_reason(tmp_path: Path, program: str):
    said = refused(tmp_path, *start(program, "192.0.2.1", 8000))
    assert said.startswith("The server cannot start: it cannot listen at 192.0.2.1:8000 (")
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "data").exists()


def test_endpoints_that_are_no_host_and_port_are_tried_by_daphne_itself_and_fail_too(
    tmp_path: Path,
):
    with other_program() as port:
        ended = subprocess.run(
            [
                sys.executable,
                "-m",
                "daphne",
                "-e",
                f"tcp:{port}:interface=127.0.0.1",
                "frostproject.asgi:application",
            ],
            cwd=PROJECT,
            env=clean_environment(
                FROST_DATA_DIR=str(tmp_path),
                DJANGO_SETTINGS_MODULE="frostproject.settings",
                LANGUAGE_CODE="en",
            ),
            capture_output=True,
            text=True,
            timeout=4 * PATIENCE,
            check=False,
        )
    assert ended.returncode == 1
    assert f"127.0.0.1:{port}" in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        (["8000"], ("127.0.0.1", 8000)),
        (["-6", "8000"], ("::1", 8000)),
        (["--noreload", "--verbosity", "2", "0.0.0.0:8000"], ("0.0.0.0", 8000)),
        (["--http_timeout=5", "[::1]:8000", "--reload"], ("::1", 8000)),
        (["localhost:8000"], ("localhost", 8000)),
        (["nonsense"], None),
        (["8000", "--verbosity"], None),
    ],
)
def test_the_address_of_runserver_is_read_as_the_command_reads_it(
    arguments: list[str], address: tuple[str, int] | None
):
    assert listening.runserver_address(arguments) == address


def test_every_option_of_runserver_that_takes_a_value_is_known():
    options = [
        option
        for option in Command().create_parser("manage.py", "runserver")._actions
        if option.option_strings
    ]
    for option in options:
        words = [option.option_strings[-1], *(["1"] if option.nargs is None else [])]
        assert listening.runserver_address([*words, "0.0.0.0:8000"]) == ("0.0.0.0", 8000)


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        ([], ("127.0.0.1", 8000)),
        (["-p", "9000"], ("127.0.0.1", 9000)),
        (["-b", "::"], ("::", 8000)),
        (["-u", "/tmp/x.sock"], None),
        (["--fd", "5"], None),
        (["-e", "tcp:9000"], None),
        (["-u", "/tmp/x.sock", "-p", "9000"], ("127.0.0.1", 9000)),
    ],
)
def test_the_address_of_the_daphne_command_is_read_as_it_reads_it(
    arguments: list[str], address: tuple[str, int] | None
):
    assert listening.daphne_address([*arguments, "frostproject.asgi:application"]) == address


def test_a_port_that_was_free_is_free_afterwards():
    port = free_port()
    assert listening.listen_error_message(("127.0.0.1", port)) == ""
    with socket.socket() as now:
        now.bind(("127.0.0.1", port))


def test_without_an_address_it_is_that_of_the_settings(settings):
    assert listening.runserver_address([]) == settings.WS_LISTEN_ADDR

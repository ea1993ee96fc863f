"""Nobody else on this machine reads the data folder, whoever made it and however open it was."""

import logging
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from frostproject.configuration import private_files
from frostproject.doctor import diagnosis
from tests import zygote
from tests.cast import fresh_id
from tests.e2e.chat import client
from tests.environment import PROJECT, clean_environment
from tests.file_server import FileServer, sends
from tests.live_server import LiveServer, free_port
from tests.pictures import picture
from tests.test_doctor import doctor
from tools.findings import FindingLevel

Start = Callable[..., LiveServer]


@pytest.fixture
def installation() -> Iterator[LiveServer]:
    """An installation that is not started yet, with an open data folder, as ``mkdir data`` leaves
    it."""
    server = LiveServer({})
    server.data_dir.mkdir(mode=0o755)
    server.data_dir.chmod(0o755)
    yield server
    server.remove()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def opened(folder: Path) -> set[str]:
    """What in ``folder``, itself included, anybody else has a right on."""
    found = [folder, *folder.rglob("*")]
    return {
        str(path.relative_to(folder))
        for path in found
        if not path.is_symlink() and mode(path) & 0o077
    }


def open_all(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


# --- The start --------------------------------------------------------------------


def test_an_empty_folder_that_was_there_is_closed(installation):
    installation.start()
    assert opened(installation.data_dir) == set()


def test_what_an_older_version_left_open_is_closed(installation):
    installation.start().terminate()
    copy = installation.data_dir / "received" / "ab" / "abcdef"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"a picture")
    (installation.data_dir / "onebot_access_token").write_text("a-token-of-before")
    open_all(installation.data_dir)
    installation.start()
    assert opened(installation.data_dir) == set()
    assert "Other users" not in installation.log


async def test_what_a_message_leaves_behind_is_closed(
    start_server: Start, model, file_server: FileServer
):
    server = start_server()
    url = file_server.serve("/a.png", sends(picture("PNG"), "image/png"))
    model.script(["a red square"], model="scripted-vision")
    model.script(["seen"])
    async with client(server) as bot:
        await bot.say_private(
            fresh_id(), [{"type": "image", "data": {"file": "a.png", "url": url}}]
        )
        await bot.next_action()
    assert [path for path in (server.data_dir / "received").rglob("*") if path.is_file()]
    assert opened(server.data_dir) == set()


def test_the_talk_in_a_terminal_closes_it_too(installation):
    (installation.data_dir / "secret_key").write_text("k" * 60)
    (installation.data_dir / "media").mkdir()
    open_all(installation.data_dir)
    talk = [sys.executable, "manage.py", "chat", "--once", "hello"]
    env = clean_environment(
        FROST_DATA_DIR=str(installation.data_dir), DJANGO_SETTINGS_MODULE="frostproject.settings"
    )
    zygote.run(talk, env, check=True)
    assert opened(installation.data_dir) == set()


def test_the_daphne_command_closes_it_too(model_server):
    server = LiveServer({}, "daphne")
    server.data_dir.mkdir()
    server.data_dir.chmod(0o755)
    try:
        server.start()
        assert opened(server.data_dir) == set()
    finally:
        server.remove()


def test_a_management_command_makes_nothing_that_others_can_read(tmp_path):
    command = [sys.executable, "manage.py", "migrate", "-v", "0"]
    env = clean_environment(
        FROST_DATA_DIR=str(tmp_path / "data"), DJANGO_SETTINGS_MODULE="frostproject.settings"
    )
    subprocess.run(command, cwd=PROJECT, env=env, check=True, umask=0o022)
    assert (tmp_path / "data" / "frostagent.sqlite3").exists()
    assert opened(tmp_path / "data") == set()


def test_children_inherit_the_mask(live):
    assert re.search(
        r"^Umask:\s+0077$",
        Path(f"/proc/{live.pid}/status").read_text(encoding="ascii"),
        re.MULTILINE,
    )


# --- What is not ours ---------------------------------------------------------------


def test_a_link_is_not_followed(installation, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "page.html").write_text("for all")
    open_all(outside)
    (installation.data_dir / "received").symlink_to(outside)
    (installation.data_dir / "secret_key.old").symlink_to(outside / "page.html")
    installation.start()
    assert (mode(outside), mode(outside / "page.html")) == (0o755, 0o644)
    assert mode(installation.data_dir) == 0o700


def test_a_file_with_another_name_elsewhere_is_left_alone_and_named(installation, tmp_path):
    (tmp_path / "page.html").write_text("for-all-to-read")
    (tmp_path / "page.html").chmod(0o644)
    os.link(tmp_path / "page.html", installation.data_dir / "http_api_token")
    installation.start()
    assert mode(tmp_path / "page.html") == 0o644
    assert "http_api_token" in installation.log


def test_a_folder_of_somebody_elses_things_stays_as_it_is(installation):
    """FROST_DATA_DIR was set to a place that is used for other things: only what is ours is
    closed."""
    (installation.data_dir / "photos").mkdir()
    (installation.data_dir / "photos" / "holiday.jpg").write_bytes(b"")
    open_all(installation.data_dir)
    installation.start()
    installation.restart()
    assert opened(installation.data_dir) == {".", "photos", "photos/holiday.jpg"}
    assert f"chmod go= {installation.data_dir}" in installation.log


@pytest.mark.parametrize(
    "place", ["/", "/tmp", str(PROJECT), str(PROJECT.parent), str(Path.home())]
)
def test_places_that_others_need_are_never_closed(place, monkeypatch):
    changed: list[str] = []
    monkeypatch.setattr(os, "chmod", lambda path, *_: changed.append(str(path)))
    private_files.restrict_folder(Path(place))
    assert place not in changed


def test_a_folder_of_another_user_is_left_alone_and_named(tmp_path, monkeypatch, caplog):
    (tmp_path / "secret_key").write_text("x")
    open_all(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with caplog.at_level(logging.WARNING):
        private_files.restrict_folder(tmp_path)
        private_files.log_exposures(tmp_path, tmp_path / ".env")
    assert opened(tmp_path) == {".", "secret_key"}
    assert str(tmp_path) in caplog.text


def test_the_start_does_not_walk_through_a_million_files(tmp_path, monkeypatch):
    monkeypatch.setattr(private_files, "MAX_LOOKED_AT", 10)
    for number in range(30):
        path = tmp_path / "received" / f"{number:02}" / "copy"
        path.parent.mkdir(parents=True)
        path.write_text("")
    (tmp_path / "secret_key").write_text("x")
    open_all(tmp_path)
    private_files.restrict_folder(tmp_path)
    closed = {".", "secret_key", "received"}
    assert not opened(tmp_path) & closed
    assert len(opened(tmp_path)) > 40


# --- What doctor says -----------------------------------------------------------------


def test_doctor_names_what_is_open_and_the_command_that_mends_it(installation):
    installation.start().terminate()
    open_all(installation.data_dir)
    said = doctor(installation.data_dir, WS_LISTEN_ADDR=f"127.0.0.1:{free_port()}")
    assert said.returncode == 1
    (advice,) = re.findall(
        r"FAIL Other users of this machine can read [^\n]*frostagent\.sqlite3[^\n]*\n     -> (.*)",
        said.stdout,
    )
    subprocess.run(advice, shell=True, check=True)
    assert opened(installation.data_dir) == set()
    assert (
        "can read nothing of the data folder"
        in doctor(installation.data_dir, WS_LISTEN_ADDR=f"127.0.0.1:{free_port()}").stdout
    )


def test_a_database_in_a_closed_folder_is_a_warning_that_is_said_last(installation):
    installation.start().terminate()
    for path in installation.data_dir.glob("frostagent.sqlite3*"):
        path.chmod(0o644)
    said = doctor(installation.data_dir, WS_LISTEN_ADDR=f"127.0.0.1:{free_port()}")
    assert (said.returncode, "WARN Other users" in said.stdout) == (0, True)
    assert said.stdout.endswith("lines that begin with WARN.\n")


def test_doctor_changes_nothing(installation):
    doctor(installation.data_dir, WS_LISTEN_ADDR=f"127.0.0.1:{free_port()}")
    assert mode(installation.data_dir) == 0o755


def test_an_open_env_file_is_named(tmp_path, caplog):
    (tmp_path / ".env").write_text("UPSTREAM_API_KEY=sk")
    (tmp_path / ".env").chmod(0o644)
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    found = [
        one
        for one in diagnosis.check_file_access(data, tmp_path / ".env")
        if one.level is FindingLevel.WARN
    ]
    assert f"chmod go= {tmp_path / '.env'}" in [one.advice for one in found]
    private_files.log_exposures(data, tmp_path / ".env")
    assert f"chmod go= {tmp_path / '.env'}" in caplog.text


def test_a_name_with_a_space_is_quoted_in_the_command(tmp_path):
    folder = tmp_path / "my data"
    folder.mkdir()
    folder.chmod(0o755)
    (found,) = [
        one
        for one in diagnosis.check_file_access(folder, tmp_path / ".env")
        if one.level is FindingLevel.WARN
    ]
    subprocess.run(found.advice, shell=True, check=True)
    assert mode(folder) == 0o700


# --- The process ------------------------------------------------------------------------


PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin")
"""One that any user may run."""


@pytest.mark.skipif(
    os.geteuid() != 0 or not (PYTHON and shutil.which("setpriv")),
    reason="only root can become somebody else",
)
def test_a_program_of_the_same_user_cannot_read_the_servers_environment():
    with tempfile.TemporaryDirectory(prefix="frost-nobody-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copy(PROJECT / "frostproject" / "server" / "process_memory.py", folder)
        (folder / "look.py").write_text(LOOK)
        command = [
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            str(PYTHON),
            "-B",
            "look.py",
        ]
        env = {"UPSTREAM_API_KEY": "sk-unseen"}
        said = subprocess.run(
            command, env=env, cwd=folder, capture_output=True, text=True, check=False
        )
    assert said.stdout.split() == [
        "before:True",
        "after:PermissionError",
        "files:True",
        "child:True",
    ], said.stderr


LOOK = """
import os, subprocess, sys
import process_memory
child = "import sys; print(b'sk-unseen' in open('/proc/%s/environ' % sys.argv[1], 'rb').read())"
def seen(pid):
    result = subprocess.run([sys.executable, "-c", child, pid], capture_output=True, text=True)
    return result.stdout.strip() or result.stderr.strip().splitlines()[-1].partition(":")[0]
print("before:" + seen(str(os.getpid())))
process_memory.hide_process_memory()
print("after:" + seen(str(os.getpid())))
print("files:" + str(len(os.listdir("/proc/self/fd")) > 2))
print("child:" + seen("self"))
"""

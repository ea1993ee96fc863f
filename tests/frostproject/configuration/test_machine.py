"""What the program finds out about its machine, and what it leaves there."""

import os
import stat
import threading
import zoneinfo
from pathlib import Path

import pytest

from frostproject.configuration import machine
from frostproject.configuration.env import InvalidSetting


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_missing_data_folder_is_made_for_its_owner_alone(tmp_path):
    folder = machine.prepare_data_folder(tmp_path / "a" / "data")
    assert mode(folder) == 0o700


def test_a_data_folder_that_is_there_is_kept(tmp_path):
    (tmp_path / "kept").write_text("x")
    assert machine.prepare_data_folder(tmp_path) == tmp_path
    assert (tmp_path / "kept").read_text() == "x"


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_data_folder_that_cannot_be_made_is_named(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidSetting, match=r"^FROST_DATA_DIR: .*file"):
        machine.prepare_data_folder(tmp_path / name)


def test_the_secret_key_is_long_and_stays_the_same(tmp_path):
    key = machine.load_or_make_secret_key(tmp_path)
    assert len(key) >= 50
    assert machine.load_or_make_secret_key(tmp_path) == key


def test_the_secret_key_is_readable_by_its_owner_alone(tmp_path):
    machine.load_or_make_secret_key(tmp_path)
    assert [(file.name, mode(file)) for file in tmp_path.iterdir()] == [("secret_key", 0o600)]


def test_installations_have_different_keys(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert machine.load_or_make_secret_key(tmp_path / "a") != machine.load_or_make_secret_key(
        tmp_path / "b"
    )


def test_starts_at_the_same_moment_agree_on_one_key(tmp_path, monkeypatch):
    keys: list[str] = []
    together = threading.Barrier(4)
    monkeypatch.setattr(os, "getpid", threading.get_ident)  # each thread stands for a process

    def start() -> None:
        together.wait()
        keys.append(machine.load_or_make_secret_key(tmp_path))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 4
    assert len(set(keys)) == 1


def test_the_machine_knows_its_loopback_names():
    hosts = machine.own_hosts()
    assert hosts[:3] == ["localhost", "127.0.0.1", "[::1]"]
    assert len(hosts) == len(set(hosts))
    assert "" not in hosts


@pytest.mark.parametrize(
    "named",
    [
        "Asia/Shanghai",
        ":Asia/Shanghai",
        "",
        "CST-8",
        "Nowhere/Land",
        "/usr/share/zoneinfo/Asia/Shanghai",
        "../etc",
    ],
)
def test_the_time_zone_is_one_that_django_takes(monkeypatch, named):
    monkeypatch.setenv("TZ", named)
    zone = machine.local_time_zone()
    assert zoneinfo.ZoneInfo(zone).key == zone
    if "Shanghai" in named and not named.startswith("/"):
        assert zone == "Asia/Shanghai"


def test_a_secret_key_that_cannot_be_made_is_told_with_its_place(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        InvalidSetting,
        match=r"FROST_DATA_DIR: .*secret_key cannot be made or read: Not a directory",
    ):
        machine.load_or_make_secret_key(tmp_path / "file")

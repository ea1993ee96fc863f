"""The newest version on record, whatever the address answers."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent.runtime import newer_version
from agent.runtime.newer_version import find_newer, read_version
from tests.file_server import FileServer, never_answers, redirects, sends, sends_endlessly


@pytest.fixture(autouse=True)
def _here(settings: Any, tmp_path: Path, file_server: FileServer) -> None:
    settings.DATA_DIR, settings.FETCH_ALLOW = tmp_path, ["127.0.0.1"]
    settings.VERSION_URL = file_server.url + "/latest"


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (b"1.2.3\n", "1.2.3"),
        (b"v1.2", "1.2"),
        (json.dumps({"tag_name": "v1.2.3", "name": "x"}).encode(), "1.2.3"),
        (b'{"name": "1.2.3"}', ""),
        (b'{"tag_name": ["1.2.3"]}', ""),
        (b"{" * 60_000, ""),
        (b'{"a":' * 10_000, ""),
        (b"<!doctype html><title>1.2.3</title>", ""),
        (b'{"tag_name": "1.2.3<script>"}', ""),
        ("1.2.3\u202e9".encode(), ""),
        ("٣.١".encode(), ""),
        (b"1.2.3-rc1", ""),
        (b"9" * 5, ""),
        (b"\xff\xfe1", ""),
        (b"", ""),
    ],
)
def test_only_figures_and_points_are_a_version(body: bytes, version: str) -> None:
    assert read_version(body) == version


@pytest.mark.parametrize(
    ("version", "newer"), [("0.9.0", ""), ("0.8.12", ""), ("0.10.0", "0.10.0"), ("1", "1")]
)
async def test_only_a_newer_one_is_told_of(
    version: str, newer: str, file_server: FileServer
) -> None:
    file_server.serve("/latest", sends(version.encode()))
    await newer_version._ask()
    assert find_newer() == newer


async def test_it_is_asked_once_a_day_by_all_who_share_the_folder(
    file_server: FileServer, settings: Any, tmp_path: Path
) -> None:
    file_server.serve("/latest", sends(b"9.0"))
    assert newer_version._is_due()
    await newer_version._ask()
    assert not newer_version._is_due()
    os.utime(tmp_path / "newest_version", (1, 1))
    assert newer_version._is_due()
    os.utime(tmp_path / "newest_version")
    settings.VERSION_URL += "?other"  # what another address said does not count
    assert (newer_version._is_due(), find_newer()) == (True, "")


@pytest.mark.parametrize(
    "reply", [never_answers(), sends_endlessly(), sends(b"<html>"), sends(b"9.1", status=500)]
)
async def test_a_useless_answer_leaves_what_is_known_and_is_not_asked_for_again(
    reply: Any, file_server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_server.serve("/latest", sends(b"9.0"))
    await newer_version._ask()
    monkeypatch.setattr(newer_version, "ASK_SECONDS", 0.5)
    file_server.serve("/latest", reply)
    await newer_version._ask()
    assert (find_newer(), newer_version._is_due()) == ("9.0", False)


async def test_no_answer_is_taken_from_a_private_host_that_is_not_allowed(
    file_server: FileServer, settings: Any
) -> None:
    file_server.serve("/there", sends(b"9.0"))
    file_server.serve("/latest", redirects(file_server.url_for("127.0.0.2") + "/there"))
    await newer_version._ask()
    assert find_newer() == ""
    assert [request.target for request in file_server.requests] == ["/latest"]

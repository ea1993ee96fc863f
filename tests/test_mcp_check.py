"""``manage.py doctor`` on MCP servers: those that cannot work are named with the reason, and no
secret is shown."""

import sys
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from frostproject.doctor.checks import check_mcp_servers
from tests.admin.mcp import address, program
from tools.findings import FindingLevel

KEY = "sk-a-key-that-nobody-may-see"


@pytest.fixture(autouse=True)
def _settings(db: None, settings: Settings) -> None:
    settings.LANGUAGE_CODE = "en"
    settings.MCP_ALLOWED_COMMANDS, settings.FETCH_ALLOW = [sys.executable, "no-such-program"], []


def test_without_servers_there_is_nothing_to_say():
    address(enabled=False, url="")
    assert list(check_mcp_servers()) == []


def test_servers_that_can_work_are_counted():
    address(headers={"Authorization": KEY})
    program(command=sys.executable)
    (found,) = check_mcp_servers()
    assert (found.level, found.text[-1]) == (FindingLevel.OK, "2")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: program(command="npx"), "MCP_ALLOWED_COMMANDS="),
        (lambda: program(command="no-such-program"), "“no-such-program” is not on this machine"),
        (lambda: program(command=""), "Name the program"),
        (
            lambda: program(command=sys.executable, sealed_environment="broken"),
            "sealed under another secret key",
        ),
        (lambda: address(url=""), "Enter the URL"),
        (lambda: address(url=f"http://127.0.0.1/?key={KEY}"), "FETCH_ALLOW does not list it"),
        (lambda: address(url=f"http://localhost/?key={KEY}"), "localhost has no public address"),
        (lambda: address(headers={"Host": KEY}), "“Host” is not a header"),
    ],
)
def test_a_server_that_cannot_work_is_named_with_the_reason(make: Any, words: str):
    server = make()
    (found,) = check_mcp_servers()
    assert found.level is FindingLevel.WARN
    assert server.name in found.text
    assert words in found.text
    assert KEY not in found.text + found.advice


def test_a_database_that_is_not_there_is_not_made(tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    address(url="")
    monkeypatch.setitem(connection.settings_dict, "NAME", str(tmp_path / "none.sqlite3"))
    assert list(check_mcp_servers()) == []

"""How MCP servers are doing, as the list and the page of one tell it, and the buttons there."""

import sys
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from tests.admin.mcp import SERVERS, address, program, status, warden
from tests.admin.record import page
from tools.models import ConfigVersion, McpServer, ToolConfig

TOOLS = [
    {"name": "far_get", "original": "get", "title": "", "description": "d"},
    {"name": "far_set", "original": "set", "title": "", "description": "d"},
    {"original": "r m\x1b", "left_out": "the name <b>"},
]


@pytest.fixture
def chief(db: None, settings: Settings) -> Client:
    settings.MCP_ALLOWED_COMMANDS = ["npx", sys.executable]
    return warden()


def row_of(client: Client) -> str:
    return page(client, SERVERS).partition("<tbody>")[2].partition("</tbody>")[0]


# --- The list -------------------------------------------------------------------


def test_the_list_tells_state_tools_latency_and_error(chief: Client):
    server = address()
    status(
        server,
        tools=TOOLS,
        error="closed by <peer>",
        error_at=timezone.now() - timedelta(minutes=1),
    )
    text = row_of(chief)
    assert "badge-delivered" in text
    assert 'class="field-tool_count">2</td>' in text
    assert "12\xa0ms" in text
    assert "closed by &lt;peer&gt;" in text


def test_a_server_that_was_just_saved_is_being_connected_to(chief: Client):
    address()
    text = page(chief, SERVERS)
    assert "connecting" in text
    assert "no server process runs" not in text


def test_processes_that_went_silent_count_no_more(chief: Client):
    server = address()
    saved_at = timezone.now() - timedelta(hours=1)
    McpServer.objects.filter(pk=server.pk).update(updated_at=saved_at)
    status(server, seconds_ago=61, tools=TOOLS, error="old trouble")
    text = row_of(chief)
    assert "no server process runs" in text
    assert 'class="field-tool_count">0</td>' in text
    assert "old trouble" not in text
    assert "12\xa0ms" not in text


def test_states_of_several_processes_are_each_told_once_with_their_number(chief: Client):
    server = address()
    for number, state in enumerate(["connected", "waiting", "connected"]):
        status(server, f"p{number}", state=state, latency_ms=number)
    text = row_of(chief)
    assert "connected ×2" in text
    assert ">waiting to try again<" in text
    assert "2\xa0ms" in text


def test_of_a_server_that_is_switched_off_nothing_is_told(chief: Client):
    status(address(enabled=False), error="old trouble", tools=TOOLS)
    text = row_of(chief)
    assert "switched off" in text
    assert "old trouble" not in text


def test_a_long_list_asks_no_more_questions_than_a_short_one(chief: Client):
    def questions() -> int:
        with CaptureQueriesContext(connection) as asked:
            page(chief, SERVERS)
        return len(asked)

    status(address("first"))
    few = questions()
    for number in range(40):
        status(address(f"a{number}"), tools=TOOLS)
        program(f"p{number}")
    assert questions() == few


# --- The page -------------------------------------------------------------------


def test_the_page_tells_what_each_process_says(chief: Client):
    server = address()
    ToolConfig.objects.create(name="far_get")
    about = {
        "name": "srv <1>",
        "version": "2.0",
        "protocol": "2025-11-25",
        "instructions": "say\nso",
        "left_out": 1,
        "x": "unknown",
    }
    status(server, tools=TOOLS, about=about, connected_at=timezone.now())
    status(server, "p2", state="stopped", error="no luck", retry_at=timezone.now(), latency_ms=None)
    status(server, "p3", seconds_ago=90, tools=[{"name": "gone"}])
    text = page(chief, f"{SERVERS}{server.pk}/change/").partition('id="state"')[2]
    for words in (
        "srv &lt;1&gt;",
        "2025-11-25",
        "say\nso",
        "given up until somebody says so",
        "no luck",
        "next try",
        "the name &lt;b&gt;",
    ):
        assert words in text
    assert (
        f'<a href="/admin/tools/toolconfig/{ToolConfig.objects.get().pk}/change/"><code>'
        f"far_get</code></a>" in text
    )
    assert "<li><code>far_set</code> </li>" in text
    assert "gone" not in text.partition("<h3>")[2]
    assert "gone silent" in text
    assert "unknown" not in text


@pytest.mark.parametrize(
    "tools", ["x", {"a": 1}, [7, {}, {"name": ""}], [{"name": n} for n in map(str, range(10_000))]]
)
def test_whatever_a_status_holds_can_be_shown(chief: Client, tools: Any):
    server = address()
    status(server, tools=tools, about=["x"], error="x" * 100_000)
    text = page(chief, f"{SERVERS}{server.pk}/change/")
    assert len(text) < 100_000
    assert row_of(chief)


# --- The buttons ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("button", "counter", "logged"),
    [("refresh", "refreshes", "Refreshed."), ("reconnect", "reconnects", "Reconnected.")],
)
def test_a_button_counts_up_and_every_process_learns_of_it(
    chief: Client, button: str, counter: str, logged: str
):
    server, before = program(), ConfigVersion.current()
    assert chief.post(f"{SERVERS}{server.pk}/{button}/").status_code == 302
    server.refresh_from_db()
    assert getattr(server, counter) == 1
    assert ConfigVersion.current() > before
    assert logged in page(chief, f"{SERVERS}{server.pk}/history/")


def test_a_button_of_a_server_that_is_off_says_so_and_does_nothing(chief: Client):
    server = address(enabled=False)
    answer = chief.post(f"{SERVERS}{server.pk}/reconnect/", follow=True).content.decode()
    assert "switch it on first" in answer
    assert 'form="reconnect-server"' not in answer
    assert McpServer.objects.get().reconnects == 0


@pytest.mark.parametrize("button", ["test", "refresh", "reconnect"])
def test_looking_at_the_address_of_a_button_does_nothing(chief: Client, button: str):
    server = address()
    assert chief.get(f"{SERVERS}{server.pk}/{button}/").status_code == 405
    assert chief.post(f"{SERVERS}999/{button}/").status_code == 404
    assert chief.post(f"{SERVERS}x/{button}/").status_code == 404


def tried_out(client: Client, server: McpServer) -> str:
    response = client.post(f"{SERVERS}{server.pk}/test/")
    assert response.status_code == 200
    return response.content.decode()


def test_a_draft_is_tested_with_a_connection_of_its_own(chief: Client):
    server = program(
        command=sys.executable,
        arguments=["-m", "mcp_server_time", "--local-timezone", "UTC"],
        enabled=False,
    )
    text = tried_out(chief, server)
    assert "badge-succeeded" in text
    assert "get_current_time" in text
    assert "2 tools" in text
    assert "Tested: 2 tools" in page(chief, f"{SERVERS}{server.pk}/history/")
    assert not server.statuses.exists()


def test_a_test_that_fails_says_why(chief: Client):
    server = program(
        command=sys.executable, arguments=["-c", "raise SystemExit(3)"], connect_seconds=20
    )
    text = tried_out(chief, server)
    assert "badge-failed" in text
    assert 'class="failure words"' in text
    assert "Tested: failed" in page(chief, f"{SERVERS}{server.pk}/history/")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: program(command="rm"), "is not among the programs"),
        (lambda: program(command=""), "Name the program"),
        (lambda: address(url=""), "Enter the URL"),
        (lambda: address(url="http://127.0.0.1:1/"), "FETCH_ALLOW does not list it"),
        (lambda: address(sealed_headers="broken"), "sealed under another secret key"),
    ],
)
def test_what_cannot_work_is_not_tried(chief: Client, make: Any, words: str):
    text = tried_out(chief, make())
    assert words in text
    assert "badge-failed" in text

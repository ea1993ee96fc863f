"""The mcpServers JSON of other programs, taken in after a look at what will happen, and given out
without keys."""

import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.test import Client
from pytest_django import Settings

from tests.admin.mcp import SERVERS, address, editor, person, program, viewer, warden
from tests.admin.record import page
from tools.models import McpServer, ToolConfigChange

KEY = "sk-a-key-that-nobody-may-see"
BOTH = {
    "files": {"command": "npx", "args": ["-y", "server", "/data"], "env": {"TOKEN": KEY}},
    "far": {
        "type": "http",
        "url": "https://93.184.216.34/mcp",
        "headers": {"Authorization": f"Bearer {KEY}"},
        "disabled": True,
    },
}


@pytest.fixture(autouse=True)
def _allowed(db: None, settings: Settings) -> None:
    settings.MCP_ALLOWED_COMMANDS = ["npx"]


@pytest.fixture
def chief() -> Client:
    return warden()


def shown(client: Client, servers: Any, taken: str = "skip") -> str:
    """The page after a text was sent: what will happen."""
    text = servers if isinstance(servers, str) else json.dumps({"mcpServers": servers})
    response = client.post(f"{SERVERS}import/", {"text": text, "taken": taken})
    assert response.status_code == 200
    return response.content.decode()


def confirmed(client: Client, text: str) -> int:
    """Press the button of such a page."""
    fields = dict(re.findall(r'<input type="hidden" name="(sealed|taken)" value="([^"]*)"', text))
    return client.post(f"{SERVERS}import/", fields | {"confirmed": "Save"}).status_code


def imported(client: Client, servers: Any, taken: str = "skip") -> None:
    assert confirmed(client, shown(client, servers, taken)) == 302


def test_servers_are_shown_first_and_made_when_that_is_confirmed(chief: Client):
    text = shown(chief, BOTH)
    assert text.count(">new</span>") == 2
    assert KEY not in text
    assert not McpServer.objects.exists()
    assert confirmed(chief, text) == 302
    files, far = McpServer.objects.order_by("-name")
    assert (files.command, files.arguments, files.environment, files.enabled) == (
        "npx",
        ["-y", "server", "/data"],
        {"TOKEN": KEY},
        True,
    )
    assert (far.transport, far.headers, far.enabled) == (
        "streamable_http",
        {"Authorization": f"Bearer {KEY}"},
        False,
    )
    assert ToolConfigChange.objects.count() == 2


def test_a_file_is_read_as_well(chief: Client):
    file = SimpleUploadedFile("mcp.json", b"\xef\xbb\xbf" + json.dumps(BOTH).encode())
    text = chief.post(f"{SERVERS}import/", {"file": file, "taken": "skip"}).content.decode()
    assert confirmed(chief, text) == 302
    assert McpServer.objects.count() == 2


UNREADABLE: list[tuple[dict[str, Any], str]] = [
    ({"text": ""}, "Enter a text or choose a file"),
    ({"text": "{"}, "This is not JSON: line 1"),
    ({"text": "天" * 400_000}, "too large"),
    ({"file": b"\xff\xfe{}"}, "not UTF-8"),
    ({"file": b"[]"}, "no server in it"),
    ({"file": b"{}", "text": "{}"}, "one of the two"),
    ({"sealed": "forged"}, "Enter the text once more"),
    ({"text": "{}", "taken": "maybe"}, "not one of the available choices"),
]


def test_what_cannot_be_read_is_refused_with_the_reason(chief: Client):
    for fields, words in UNREADABLE:
        if isinstance(fields.get("file"), bytes):
            fields = fields | {"file": SimpleUploadedFile("x", fields["file"])}
        text = chief.post(
            f"{SERVERS}import/", {"taken": "skip", "confirmed": "Save"} | fields
        ).content.decode()
        assert words in text
        assert not McpServer.objects.exists()


BAD_SERVERS: list[tuple[dict[str, Any], str]] = [
    ({"command": "rm"}, "Command: “rm” is not among the programs"),
    ({"command": "npx", "args": 7}, "“args” must be a list"),
    ({"command": "npx", "env": {"PATH": "/tmp"}}, "“PATH” may not be set"),
    ({"url": "http://127.0.0.1/"}, "URL: The URL&#x27;s address is not public"),
    ({"url": "https://a.test/", "headers": {"Host": "b"}}, "“Host” is not a header"),
    ({"url": "https://a.test/", "connectTimeout": 601}, "less than or equal to 600"),
    ({"url": "https://a.test/", "toolPrefix": "a b"}, "Letters, digits"),
    ({"url": "https://a.test/" + "x" * 2000}, "at most 2000 characters"),
    ({}, "neither a command nor a URL"),
]


def test_one_bad_server_keeps_all_out_and_is_named(chief: Client):
    for entry, words in BAD_SERVERS:
        text = shown(chief, BOTH | {"bad": entry})
        assert words in text
        assert "<strong>bad</strong>" in text
        assert 'name="confirmed"' not in text
        assert not McpServer.objects.exists()


NO_NAMES: list[str] = ["", "x" * 65, "a\x1bb", "a\nb"]


def test_a_name_that_no_row_can_have_is_refused(chief: Client):
    for name in NO_NAMES:
        assert ">refused</span>" in shown(chief, {name: {"url": "https://a.test/"}})


def test_an_import_that_breaks_off_leaves_nothing_behind(
    chief: Client, monkeypatch: pytest.MonkeyPatch
):
    text = shown(chief, BOTH)

    def full(*_: Any, **__: Any) -> None:
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(ToolConfigChange, "save", full)
    with pytest.raises(OperationalError):
        confirmed(chief, text)
    assert not McpServer.objects.exists()


# --- Names that are taken -------------------------------------------------------


def test_a_server_whose_name_is_taken_is_left_alone_unless_it_is_to_be_replaced(chief: Client):
    old = address(call_seconds=7, include="a*")
    assert ">left as it is</span>" in shown(chief, {"far": {"url": "https://new.test/sse"}})
    imported(chief, {"far": {"url": "https://new.test/sse"}})
    old.refresh_from_db()
    assert old.url == "https://93.184.216.34/mcp"
    text = shown(chief, {"far": {"url": "https://new.test/sse"}}, "replace")
    assert "https://93.184.216.34/••••</del>" in text
    assert confirmed(chief, text) == 302
    old.refresh_from_db()
    assert (old.url, old.transport, old.call_seconds, old.include) == (
        "https://new.test/sse",
        "sse",
        7,
        "a*",
    )


def test_what_an_export_gives_out_comes_back_as_it_was(chief: Client):
    url = f"https://93.184.216.34/mcp?key={KEY}"
    far, near = (
        address(url=url, headers={"Authorization": KEY}),
        program(arguments=["-y", "x", "--token", KEY], enabled=False),
    )
    near.environment = {"TOKEN": KEY}
    near.save()
    text = chief.get(f"{SERVERS}export/?file=1").content.decode()
    assert KEY not in text
    assert json.loads(text)["mcpServers"]["files"]["args"] == ["-y", "x", "--token", "${TOKEN}"]
    assert shown(chief, text, "replace").count(">unchanged</span>") == 2
    near.arguments = ["other", "--token", KEY]
    near.save()
    assert "The program has changed" in shown(chief, text, "replace")
    imported(chief, {"far": json.loads(text)["mcpServers"]["far"]}, "replace")
    far.refresh_from_db()
    assert (far.url, far.headers, far.enabled) == (url, {"Authorization": KEY}, True)


def test_a_placeholder_without_a_stored_value_is_explained_and_the_server_stays_off(chief: Client):
    servers = {"s": {"command": "npx", "env": {"TOKEN": "${input:token}"}}}
    assert "Enter on its page what belongs there: ${input:token}" in shown(chief, servers)
    imported(chief, servers)
    assert not McpServer.objects.get().enabled
    assert McpServer.objects.get().environment == {"TOKEN": "${input:token}"}


# --- Rights ---------------------------------------------------------------------


@pytest.mark.parametrize("who", [editor, lambda: person(is_superuser=True)])
def test_programs_are_imported_by_nobody_else(who: Any):
    client = who()
    assert "Only superusers with the permission" in shown(client, BOTH)
    imported(client, {"far": BOTH["far"]})
    near = program()
    assert "You may not change the server" in shown(client, {"files": BOTH["far"]}, "replace")
    assert shown(client, {"far": BOTH["files"]}, "replace").count(">refused</span>") == 1
    near.refresh_from_db()
    assert (near.command, McpServer.objects.count()) == ("npx", 2)


def test_rights_are_looked_at_again_when_the_import_is_confirmed(chief: Client):
    text = shown(chief, BOTH)
    assert confirmed(editor(), text) == 200
    assert not McpServer.objects.exists()


def test_who_may_not_change_replaces_nothing():
    client = person("view_mcpserver", "add_mcpserver")
    address()
    assert "You may not change the server" in shown(
        client, {"far": {"url": "https://new.test/"}}, "replace"
    )


def test_an_export_tells_what_it_leaves_out():
    address(sealed_headers="broken")
    text = page(viewer(), f"{SERVERS}export/")
    assert "cannot be read any more and are left out: far" in text
    assert "replaced by placeholders" in text

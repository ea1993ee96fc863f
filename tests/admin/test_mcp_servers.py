"""The page of an MCP server: what it takes, what it refuses, and what it never shows again."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from tests.admin.mcp import (
    SERVERS,
    address,
    editor,
    form,
    program,
    program_form,
    saved,
    viewer,
    warden,
)
from tests.admin.record import CHINESE, page
from tools.models import ConfigVersion, McpServer
from tools.secrets.masked import MASK

KEY = "sk-a-key-that-nobody-may-see"


@pytest.fixture(autouse=True)
def _settings(db: None, settings: Settings) -> None:
    settings.MCP_ALLOWED_COMMANDS, settings.FETCH_ALLOW = ["npx"], []


@pytest.fixture
def chief() -> Client:
    return warden()


def test_a_program_is_set_up_with_arguments_and_variables(chief: Client):
    before = ConfigVersion.current()
    fields = program_form(
        arguments="-y\r\n\r\n@scope/server \r\n天气\r\n", environment="KEY=a=b \r\n\r\nLANG="
    )
    assert saved(chief, None, fields) == ""
    server = McpServer.objects.get()
    assert (server.command, server.arguments) == ("npx", ["-y", "@scope/server ", "天气"])
    assert server.environment == {"KEY": "a=b ", "LANG": ""}
    assert ConfigVersion.current() > before


def test_a_server_with_a_url_is_set_up_with_headers(chief: Client):
    assert (
        saved(
            chief,
            None,
            form(
                headers=f"Authorization: Bearer {KEY}\nX-Empty:",
                include="get_*",
                name_prefix="far_",
            ),
        )
        == ""
    )
    server = McpServer.objects.get()
    assert server.headers == {"Authorization": f"Bearer {KEY}", "X-Empty": ""}
    assert (server.url, server.include, server.name_prefix) == (
        "https://93.184.216.34/mcp",
        "get_*",
        "far_",
    )
    assert KEY not in server.sealed_headers


# --- Secrets --------------------------------------------------------------------


@pytest.fixture
def keyed() -> McpServer:
    server = address(headers={"Authorization": f"Bearer {KEY}", "X-Other": "other-secret"})
    server.environment = {"TOKEN": KEY}
    server.save()
    return server


def test_stored_values_are_in_no_page(chief: Client, keyed: McpServer):
    McpServer.objects.update(url=f"https://93.184.216.34/mcp?key={KEY}")
    for client in (viewer(), editor(), chief):
        for place in (
            "",
            f"{keyed.pk}/history/",
            f"{keyed.pk}/delete/",
            "export/",
            "export/?file=1",
        ):
            response = client.get(f"{SERVERS}{place}")
            assert KEY not in response.content.decode(), place
            assert "other-secret" not in response.content.decode(), place
    assert KEY not in page(viewer(), f"{SERVERS}{keyed.pk}/change/")
    McpServer.objects.update(url="")
    assert KEY not in page(chief, f"{SERVERS}{keyed.pk}/change/")
    assert f"Authorization: {MASK}\nX-Other: {MASK}</textarea>" in page(
        chief, f"{SERVERS}{keyed.pk}/change/"
    )


def test_the_dots_keep_what_is_stored_and_a_line_that_is_gone_is_deleted(
    chief: Client, keyed: McpServer
):
    assert (
        saved(
            chief,
            keyed,
            form(headers=f"Authorization: {MASK}\r\nX-New: 1", environment=f"TOKEN={MASK}"),
        )
        == ""
    )
    keyed.refresh_from_db()
    assert keyed.headers == {"Authorization": f"Bearer {KEY}", "X-New": "1"}
    assert keyed.environment == {"TOKEN": KEY}


def test_saving_a_page_as_it_is_changes_no_value(chief: Client, keyed: McpServer):
    sealed = keyed.sealed_headers
    assert (
        saved(
            chief,
            keyed,
            form(
                headers=f"Authorization: {MASK}\r\nX-Other: {MASK}\r\n",
                environment=f"TOKEN={MASK}",
                call_seconds=9,
            ),
        )
        == ""
    )
    keyed.refresh_from_db()
    assert (keyed.sealed_headers, keyed.call_seconds) == (sealed, 9)
    assert "Changed Time limit of calls (seconds)." in page(chief, f"{SERVERS}{keyed.pk}/history/")


def test_a_field_that_a_request_leaves_out_stays_as_it_is(chief: Client, keyed: McpServer):
    assert saved(chief, keyed, {"name": "far", "enabled": "on", "call_seconds": 9}) == ""
    keyed.refresh_from_db()
    assert (keyed.headers["X-Other"], keyed.url, keyed.call_seconds) == (
        "other-secret",
        "https://93.184.216.34/mcp",
        9,
    )


BAD_HEADERS: list[tuple[str, str]] = [
    ("Authorization", "Each line must be NAME: value"),
    (": x", "Each line must be NAME: value"),
    (f"X-New: {MASK}", "no stored value of “X-New”"),
    (f"Authorization: Bearer {MASK}", "stand for the whole stored value"),
    ("A: 1\na: 2", "“a” stands here twice"),
    ("Host: other.test", "“Host” is not a header that can be sent"),
    ("X Y: 1", "“X Y” is not a header"),
    ("X: a\x07b", "“X” is not a header"),
]


def test_headers_that_cannot_be_meant_are_refused(chief: Client, keyed: McpServer):
    for lines, problem in BAD_HEADERS:
        assert problem in saved(chief, keyed, form(headers=lines))
        keyed.refresh_from_db()
        assert keyed.headers["X-Other"] == "other-secret"


BAD_VARIABLES: list[tuple[str, str]] = [
    ("PATH=/tmp", "“PATH” may not be set"),
    ("A B=1", "not a variable"),
    ("KEY", "NAME=value"),
]


def test_variables_that_cannot_be_set_are_refused(chief: Client):
    for lines, problem in BAD_VARIABLES:
        assert problem in saved(chief, None, program_form(environment=lines))
        assert not McpServer.objects.exists()


def test_values_that_a_lost_secret_key_sealed_are_asked_for_anew(
    chief: Client, keyed: McpServer, settings: Settings
):
    settings.SECRET_KEY = "another key"
    chief = warden()
    text = page(chief, f"{SERVERS}{keyed.pk}/change/")
    assert "sealed under another secret key" in text
    assert f">\n{MASK}</textarea>" in text
    assert "enter it anew" in saved(chief, keyed, form(headers=MASK))
    assert saved(chief, keyed, form(headers=MASK, enabled=None)) == ""
    keyed.refresh_from_db()
    assert keyed.sealed_headers
    assert saved(chief, keyed, form(headers="Authorization: new")) == ""
    keyed.refresh_from_db()
    assert keyed.headers == {"Authorization": "new"}


# --- What is refused ------------------------------------------------------------


BAD_PROGRAMS: list[tuple[dict[str, Any], str]] = [
    ({"command": "uvx"}, "put this into .env and restart: MCP_ALLOWED_COMMANDS=npx,uvx"),
    ({"command": "uvx", "enabled": None}, "is not among the programs"),
    ({"command": "./npx"}, "absolute path"),
    ({"command": ""}, "Name the program"),
    ({"arguments": "a\x1bb"}, "control characters"),
    ({"name": "a\x00b"}, "Null characters are not allowed"),
    ({"name": "a\x1bb"}, "No control characters"),
    ({"name": ""}, "required"),
    ({"call_seconds": "0"}, "greater than or equal to 1"),
    ({"name_prefix": "a b"}, "Letters, digits"),
    ({"transport": "pigeon"}, "not one of the available choices"),
]


def test_a_program_that_cannot_be_run_is_refused(chief: Client):
    for fields, problem in BAD_PROGRAMS:
        assert problem in saved(chief, None, program_form(**fields))
        assert not McpServer.objects.exists()


BAD_URLS: list[tuple[str, str]] = [
    ("", "Enter the URL"),
    ("ftp://a.test/", "must begin with http"),
    ("https://user:pw@a.test/", "user name or password"),
    ("http://127.0.0.1:9/mcp", "FETCH_ALLOW does not list it"),
    ("http://[::1]/mcp", "FETCH_ALLOW does not list it"),
    ("http://169.254.169.254/", "FETCH_ALLOW does not list it"),
    ("nonsense", "must begin with http"),
]


def test_a_url_that_may_not_be_fetched_is_refused(chief: Client):
    for url, problem in BAD_URLS:
        assert problem in saved(chief, None, form(url=url))
        assert not McpServer.objects.exists()


def test_a_private_address_is_taken_where_the_environment_lists_it(
    chief: Client, settings: Settings
):
    settings.FETCH_ALLOW = ["127.0.0.1"]
    assert saved(chief, None, form(url="http://127.0.0.1:9/mcp")) == ""


def test_a_draft_may_be_incomplete_but_not_wrong(chief: Client):
    assert saved(chief, None, form(name="a", enabled=None, url="")) == ""
    assert saved(chief, None, program_form(name="b", enabled=None, command="")) == ""
    assert "must begin with http" in saved(
        chief, None, form(name="c", enabled=None, url="file:///etc/passwd")
    )


def test_a_program_that_is_no_longer_allowed_can_still_be_switched_off(
    chief: Client, settings: Settings
):
    server = program()
    settings.MCP_ALLOWED_COMMANDS = []
    assert "MCP_ALLOWED_COMMANDS=npx" in saved(chief, server, program_form())
    assert "is not among the programs" in page(chief, f"{SERVERS}{server.pk}/change/")
    assert saved(chief, server, program_form(enabled=None)) == ""


def test_two_servers_cannot_have_one_name(chief: Client):
    address()
    assert "already exists" in saved(chief, None, form())


# --- The list -------------------------------------------------------------------


def switched(client: Client, server: McpServer, *, on: bool) -> str:
    fields = {
        "form-TOTAL_FORMS": 1,
        "form-INITIAL_FORMS": 1,
        "form-0-id": server.pk,
        "_save": "Save",
    }
    response = client.post(SERVERS, fields | ({"form-0-enabled": "on"} if on else {}))
    return "" if response.status_code == 302 else response.content.decode()


def test_a_server_is_switched_off_and_on_in_the_list_and_live_at_once(chief: Client):
    server, before = program(), ConfigVersion.current()
    for is_on in (False, True):
        assert switched(chief, server, on=is_on) == ""
        server.refresh_from_db()
        assert server.enabled is is_on
    assert ConfigVersion.current() == before + 2


def test_a_draft_is_not_switched_on_in_the_list(chief: Client):
    assert "URL: Enter the URL" in switched(chief, address(url="", enabled=False), on=True)
    McpServer.objects.all().delete()
    assert "is not among the programs" in switched(
        chief, program(command="rm", enabled=False), on=True
    )
    assert not McpServer.objects.filter(enabled=True).exists()


def test_names_and_commands_from_anywhere_are_shown_as_text(chief: Client):
    program("<script>alert(1)</script>", arguments=["<b>"])
    for place in ("", f"{McpServer.objects.get().pk}/change/"):
        text = page(chief, SERVERS + place)
        assert "<script>alert(1)" not in text
        assert "<b>" not in text


def test_the_pages_speak_chinese(chief: Client):
    server = program()
    for place in ("", "add/", f"{server.pk}/change/", "import/", "export/"):
        assert chief.get(SERVERS + place, headers=CHINESE).status_code == 200

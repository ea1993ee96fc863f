"""Who may set up MCP servers: programs only superusers with a permission of their own, addresses
whoever may change rows."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.core.exceptions import PermissionDenied
from django.test import Client, RequestFactory
from pytest_django import Settings

from tests.admin.mcp import (
    SERVERS,
    address,
    editor,
    form,
    person,
    program,
    program_form,
    saved,
    viewer,
    warden,
)
from tests.admin.record import page
from tests.admin.test_mcp_servers import switched
from tools.mcp.admin.servers import McpServerAdmin
from tools.models import McpServer


@pytest.fixture(autouse=True)
def _allowed(db: None, settings: Settings) -> None:
    settings.MCP_ALLOWED_COMMANDS = ["npx", "node"]


def superuser() -> Client:
    return person(is_superuser=True)


def helper() -> Client:
    """No superuser, but with every permission there is for it."""
    return person(
        "view_mcpserver", "add_mcpserver", "change_mcpserver", "delete_mcpserver", "run_commands"
    )


OTHERS = [superuser, helper, editor]


@pytest.mark.parametrize("who", OTHERS)
@pytest.mark.parametrize("enabled", ["on", None])
def test_nobody_else_adds_a_program(who: Any, enabled: Any):
    assert "You may not set up servers that are programs" in saved(
        who(), None, program_form(enabled=enabled)
    )
    assert not McpServer.objects.exists()


@pytest.mark.parametrize("who", OTHERS)
@pytest.mark.parametrize(
    "changes",
    [
        {"command": "node"},
        {"arguments": "-e"},
        {"environment": "A=1"},
        {"enabled": None},
        {"transport": "sse"},
        {"call_seconds": 9},
    ],
)
def test_nobody_else_changes_a_program_in_any_way(who: Any, changes: dict[str, Any]):
    server = program()
    assert who().post(f"{SERVERS}{server.pk}/change/", program_form(**changes)).status_code == 403
    now = McpServer.objects.get(command="npx", enabled=True, transport="stdio", call_seconds=60)
    assert now.arguments == ["-y", "server"]


@pytest.mark.parametrize("who", OTHERS)
def test_nobody_else_makes_a_program_of_an_address_or_prepares_one(who: Any):
    server, client = address(), who()
    assert "You may not set up" in saved(client, server, form(transport="stdio", command="npx"))
    assert (
        saved(
            client, server, form(command="npx", arguments="-y", environment="A=1", call_seconds=9)
        )
        == ""
    )
    server.refresh_from_db()
    assert (server.command, server.arguments, server.environment, server.call_seconds) == (
        "",
        [],
        {},
        9,
    )


@pytest.mark.parametrize("who", OTHERS)
def test_nobody_else_switches_a_program_in_the_list(who: Any):
    off, on, far, client = program("off", enabled=False), program("on"), address(), who()
    fields = {
        "form-TOTAL_FORMS": 3,
        "form-INITIAL_FORMS": 3,
        "_save": "Save",
        "form-0-enabled": "on",
    }
    rows = {f"form-{place}-id": server.pk for place, server in enumerate((off, on, far))}
    assert client.post(SERVERS, fields | rows).status_code == 302
    assert list(McpServer.objects.order_by("pk").values_list("enabled", flat=True)) == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("who", OTHERS)
@pytest.mark.parametrize("button", ["test", "refresh", "reconnect"])
def test_nobody_else_presses_a_button_of_a_program(who: Any, button: str):
    server = program()
    assert who().post(f"{SERVERS}{server.pk}/{button}/").status_code == 403
    server.refresh_from_db()
    assert (server.refreshes, server.reconnects) == (0, 0)


@pytest.mark.parametrize("who", OTHERS)
def test_nobody_else_deletes_a_program(who: Any):
    server, client = program(), who()
    assert client.post(f"{SERVERS}{server.pk}/delete/", {"post": "yes"}).status_code == 403
    client.post(
        SERVERS, {"action": "delete_selected", "_selected_action": server.pk, "post": "yes"}
    )
    assert McpServer.objects.exists()


@pytest.mark.parametrize("who", [*OTHERS, warden])
def test_whoever_may_change_servers_sets_up_addresses(who: Any):
    client = who()
    assert saved(client, None, form()) == ""
    server = McpServer.objects.get()
    assert saved(client, server, form(headers="X: 1")) == ""
    assert switched(client, server, on=False) == ""
    assert client.post(f"{SERVERS}{server.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not McpServer.objects.exists()


def test_a_warden_does_all_of_it_with_programs():
    client = warden()
    assert saved(client, None, program_form()) == ""
    server = McpServer.objects.get()
    assert saved(client, server, program_form(command="node")) == ""
    assert switched(client, server, on=False) == ""
    assert client.post(f"{SERVERS}{server.pk}/delete/", {"post": "yes"}).status_code == 302


def test_a_viewer_looks_and_does_nothing():
    far, near, client = address(), program(), viewer()
    for server in (far, near):
        text = page(client, f"{SERVERS}{server.pk}/change/")
        assert "_save" not in text
        assert "<textarea" not in text
        for button in ("test", "refresh", "reconnect"):
            assert f"{button}-server" not in text
            assert client.post(f"{SERVERS}{server.pk}/{button}/").status_code == 403
        assert client.post(f"{SERVERS}{server.pk}/change/", form(enabled=None)).status_code == 403
    assert client.get(f"{SERVERS}add/").status_code == 403
    assert client.get(f"{SERVERS}import/").status_code == 403
    assert switched(client, far, on=False)
    assert McpServer.objects.filter(enabled=True).count() == 2


@pytest.mark.parametrize(
    "place", ["?url__startswith=https", "?arguments__contains=y", "?sealed_headers__gt=a", "?q=mcp"]
)
def test_keys_cannot_be_guessed_by_searching(place: str):
    address(url="https://93.184.216.34/mcp?key=secret")
    response = viewer().get(SERVERS + place)
    assert response.status_code == 400 or "No row matches" in response.content.decode()


@pytest.mark.parametrize("name", ["transport", "command", "arguments", "sealed_environment"])
def test_whatever_form_saves_a_row_what_is_run_is_saved_by_nobody_else(
    rf: RequestFactory, name: str
):
    server, request = address(), rf.post("/")
    request.user = User.objects.create_superuser("chief")
    site = McpServerAdmin(McpServer, admin.site)
    setattr(server, name, {"transport": "stdio", "arguments": ["-y"]}.get(name, "npx"))
    with pytest.raises(PermissionDenied):
        site.save_model(request, server, None, change=True)
    request.user.user_permissions.add(Permission.objects.get(codename="run_commands"))
    site.save_model(request, server, None, change=True)


def test_without_a_permission_there_is_nothing_to_see():
    server, client = address(), person()
    for place in ("", f"{server.pk}/change/", "export/", "import/"):
        assert client.get(SERVERS + place).status_code == 403


def test_a_superuser_is_told_how_to_be_given_the_permission():
    server, client = program(), superuser()
    for place in ("add/", f"{server.pk}/change/"):
        text = page(client, SERVERS + place)
        assert "as being a superuser is not enough" in text
        assert Permission.objects.get(codename="run_commands").name in text
        assert "/admin/auth/user/" in text
    assert "/admin/auth/user/" not in page(editor(), f"{SERVERS}{server.pk}/change/")


def test_a_warden_is_told_where_programs_are_allowed(settings: Settings):
    client = warden()
    assert "Allowed: npx, node" in page(client, f"{SERVERS}add/")
    settings.MCP_ALLOWED_COMMANDS = []
    assert "list those that may in MCP_ALLOWED_COMMANDS" in page(client, f"{SERVERS}add/")

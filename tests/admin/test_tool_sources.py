"""All tools of one MCP server or plugin: switched, and opened to everyone, at once."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agent.models.activity import ToolUse
from tests.admin.record import chat, logged_in, page
from tools.local_time import current_day
from tools.models import McpServer, ToolConfig
from tools.registry.catalogue import declaration_fingerprint

TOOLS = "/admin/tools/toolconfig/"


def tool_of(server: str, name: str, **fields: Any) -> ToolConfig:
    """A new tool of an MCP server."""
    said = {"description": f"does {name}"}
    mark = declaration_fingerprint(said, server)
    return ToolConfig.objects.create(
        name=name, provider_name="mcp", declaration=said, fingerprint=mark, **fields
    )


@pytest.fixture
def files(db: None) -> list[ToolConfig]:
    """Those of the server “files”; there is another server with a tool."""
    for name in ("files", "other"):
        McpServer.objects.create(name=name, transport="stdio", command="node")
    tool_of("other", "calendar")
    return [tool_of("files", "read"), tool_of("files", "write", allowed="owners")]


def heading(browser: Client, name: str) -> str:
    """The row above the tools of the source ``name``."""
    rows = page(browser, TOOLS).split('<tr class="source">')[1:]
    (found,) = [row.split("</tr>")[0] for row in rows if f'class="name">{name}<' in row]
    return found


def key_of(browser: Client, name: str, button: str) -> str:
    found = re.search(rf'name="{button}" value="([^"]+)"', heading(browser, name))
    assert found
    return found[1]


def test_tools_of_a_server_are_switched_off_and_on_at_once(browser: Client, files: list[Any]):
    assert "2 of 2 enabled" in heading(browser, "MCP · files")
    browser.post(f"{TOOLS}source/", {"off": key_of(browser, "MCP · files", "off")})
    off = ToolConfig.objects.filter(enabled=False)
    assert set(off.values_list("name", flat=True)) == {"read", "write"}
    assert [row.changes.get().after for row in off] == [{"enabled": False}] * 2
    browser.post(f"{TOOLS}source/", {"on": key_of(browser, "MCP · files", "on")})
    assert not ToolConfig.objects.filter(enabled=False).exists()


def test_server_is_opened_to_everyone_with_one_page_and_one_button(
    browser: Client, files: list[ToolConfig]
):
    found = re.search(r'class="open-all" href="([^"]+)"', heading(browser, "MCP · files"))
    assert found
    text = page(browser, TOOLS + found[1])
    assert "does read" in text
    assert "calendar" not in text.split('id="content-main"')[1]
    form = {name: re.findall(rf'name="{name}" value="([^"]+)"', text) for name in ("look", "open")}
    assert (len(form["look"]), form["open"]) == (2, [str(files[1].pk)])
    browser.post(f"{TOOLS}look/", form)
    for row in files:
        row.refresh_from_db()
        assert (row.allowed, row.looked_at) == ("everyone", row.fingerprint)
    assert ToolConfig.objects.get(name="calendar").looked_at == ""
    assert "open-all" not in heading(browser, "MCP · files")


def test_server_with_nothing_to_open_leads_back_to_the_list(browser: Client, files: list[Any]):
    for address in ("look/?source=mcp%40none", "look/", "look/?source=%00"):
        assert browser.get(TOOLS + address).status_code == 302
    assert browser.post(f"{TOOLS}look/", {"open": ["x", "-1", "999999"]}).status_code == 302
    assert browser.post(f"{TOOLS}source/", {"off": "nobody"}).status_code == 302
    assert ToolConfig.objects.filter(enabled=True).count() == 3


def test_list_is_narrowed_to_one_server(browser: Client, files: list[Any]):
    key = key_of(browser, "MCP · files", "off")
    text = page(browser, f"{TOOLS}?provider={key}")
    assert re.findall(r'class="field-name" scope="row"><a[^>]*>(\w+)<', text) == ["read", "write"]


def test_calls_and_failures_of_today_stand_beside_each_tool(browser: Client, files: list[Any]):
    for peer, calls in (("700", 3), ("701", 4)):
        ToolUse.objects.create(
            day=current_day(), session=chat(peer), tool="read", calls=calls, failures=1
        )
    ToolUse.objects.create(day="2020-01-01", session=chat("702"), tool="write", calls=9)
    text = page(browser, TOOLS)
    assert '?tool=read&amp;since=today">7</a>' in text
    assert '<span class="bad">2</span>' in text
    assert "tool=write" not in text
    assert "since=today" not in page(person_without_calls(), TOOLS)


def person_without_calls() -> Client:
    from django.contrib.auth.models import Permission, User

    client = logged_in("viewer")
    user = User.objects.get(pk=client.session["_auth_user_id"])
    user.groups.clear()
    for name in ("view_toolconfig", "view_every_chat"):
        user.user_permissions.add(Permission.objects.get(codename=name))
    return client


def test_five_hundred_tools_with_hostile_words_take_as_many_queries_as_one(browser: Client):
    words = "<script>alert(1)</script>\u202e" * 20
    ToolConfig.objects.bulk_create(
        ToolConfig(
            name=f"{'n' * 60}{number:04}",
            provider_name=f"plugin\u202e{number % 7}",
            declaration={"title": "<b>", "description": words},
        )
        for number in range(500)
    )
    page(browser, TOOLS)
    with CaptureQueriesContext(connection) as queries:
        text = page(browser, TOOLS)
    assert len(queries) <= 9
    assert text.count('<tr id="tool-') == 100
    assert "500 tool configs" in text
    shown = re.sub(r'value="[^"]*"', "", text)
    assert not any(part in shown for part in ("<script>alert", "\u202e", "<b>"))
    assert "n" * 60 in page(browser, f"{TOOLS}?p=5")

"""What an MCP server is started with and where it is: for whoever may change it, and for nobody
else."""

import asyncio
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from tests.admin.http_forms import table, tool_form
from tests.admin.mcp import form
from tests.conftest import scripted_env
from tests.e2e.mcp_rows import McpRows
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel
from tests.security.people import Person, accounts
from tools.models import McpServer

SERVERS, TOOLS = "/admin/tools/mcpserver/", "/admin/tools/httptool/"
ARGUMENTS = {
    "header": ["-y", "mcp-remote", "--header", "Authorization: Bearer sk-live-9f8e7d6c5b4a"],
    "named": ["--header", "X-Api-Key: hunter2key"],
    "address": ["postgresql://user:hunter2key@db/prod"],
    "pat": ["--pat", "ghp_lettersonly"],
    "glued": ["-phunter2key", "--token=hunter2key", "KEY=hunter2key"],
}
URLS = {
    "query": "https://h.invalid/mcp?k=hunter2key",
    "fragment": "https://h.invalid/sse#token=hunter2key",
    "path": "https://h.invalid/api/mcp/s/ghp_lettersonly/mcp",
}
KEYS = ("sk-live", "hunter2key", "ghp_letters", "mcp-remote")


@pytest.fixture(scope="module")
def server(model_server: ScriptedModel) -> Iterator[LiveServer]:
    env = {"MCP_ALLOWED_COMMANDS": f"npx,{sys.executable}"}
    with LiveServer(scripted_env(model_server) | env) as live:
        accounts(live, olga="operator", vera="viewer", susan="superuser")
        rows: dict[str, dict[str, Any]] = {
            name: {
                "transport": "stdio",
                "command": "/usr/bin/npx",
                "arguments": given,
                "enabled": False,
            }
            for name, given in ARGUMENTS.items()
        }
        rows |= {
            name: {"transport": "sse", "url": url, "enabled": False} for name, url in URLS.items()
        }
        McpRows(live).save(**rows)
        yield live


@pytest.fixture
def person(server: LiveServer, request: pytest.FixtureRequest) -> Iterator[Person]:
    signed_in = Person(server, request.param)
    yield signed_in
    signed_in.close()


def pages(server: LiveServer, *names: str) -> list[str]:
    places = [
        f"{row['id']}/{what}/" for row in rows(server, *names) for what in ("change", "history")
    ]
    return [SERVERS + place for place in ("", "?q=mcp", "export/", "export/?file=1", *places)]


def rows(server: LiveServer, *names: str) -> list[dict[str, Any]]:
    return [
        row for row in server.rows("SELECT id, name FROM tools_mcpserver") if row["name"] in names
    ]


@pytest.mark.parametrize("person", ["vera"], indirect=True)
def test_a_viewer_sees_command_options_and_host_on_every_page(server: LiveServer, person: Person):
    for page in pages(server, *ARGUMENTS, *URLS):
        text = person.page(page)
        assert not [key for key in KEYS if key in text], page
    shown = {
        row["name"]: person.page(f"{SERVERS}{row['id']}/change/")
        for row in rows(server, *ARGUMENTS, *URLS)
    }
    assert "npx -y •••• --header ••••" in shown["header"]
    assert "npx -p•••• --token=•••• ••••" in shown["glued"]
    assert "https://h.invalid/••••" in shown["path"]


@pytest.mark.parametrize("person", ["olga"], indirect=True)
def test_an_operator_sees_addresses_and_no_arguments(server: LiveServer, person: Person):
    for page in pages(server, *ARGUMENTS):
        assert not [
            key for key in ("sk-live", "hunter2key", "mcp-remote") if key in person.page(page)
        ], page
    (row,) = rows(server, "query")
    assert URLS["query"] in person.page(f"{SERVERS}{row['id']}/change/")


@pytest.mark.parametrize("person", ["susan"], indirect=True)
def test_who_may_change_a_server_sees_it_whole_and_exports_no_key(
    server: LiveServer, person: Person
):
    (row,) = rows(server, "header")
    assert "Authorization: Bearer sk-live-9f8e7d6c5b4a" in person.page(
        f"{SERVERS}{row['id']}/change/"
    )
    exported = json.loads(person.page(f"{SERVERS}export/?file=1"))["mcpServers"]
    assert exported["address"]["args"] == ["${ARGUMENT}"]
    assert exported["header"]["args"] == ["-y", "mcp-remote", "--header", "${HEADER}"]
    assert exported["query"]["url"] == "https://h.invalid/${PATH}?k=${K}"
    assert not [key for key in KEYS[:3] if key in json.dumps(exported)]


@pytest.mark.parametrize("person", ["susan"], indirect=True)
def test_an_export_without_its_keys_is_imported_switched_off_and_asks_for_them(
    server: LiveServer, person: Person
):
    entry = {"command": "npx", "args": ["-y", "mcp-remote", "--header", "${HEADER}"]}
    sent = {"text": json.dumps({"mcpServers": {"copied": entry}}), "taken": "skip"}
    assert (
        "Enter on its page what belongs there: ${HEADER}"
        in person.send(f"{SERVERS}import/", **sent).text
    )
    assert person.send(f"{SERVERS}import/", **sent, confirmed="Save").status_code == 302
    assert server.rows("SELECT enabled FROM tools_mcpserver WHERE name = 'copied'") == [
        {"enabled": 0}
    ]


def test_no_argument_lies_open_in_the_database(server: LiveServer):
    held = b"".join(file.read_bytes() for file in server.data_dir.glob("frostagent.sqlite3*"))
    assert not [
        key
        for key in ("sk-live", "ghp_letters", "mcp-remote")
        if key.encode() in held.replace(b"ghp_lettersonly/mcp", b"")
    ]


async def test_a_program_that_repeats_its_arguments_tells_no_viewer_and_no_log(server: LiveServer):
    complaint = "import sys; sys.exit('cannot use ' + ' and '.join(sys.argv[1:]))"
    program = {
        "transport": "stdio",
        "command": sys.executable,
        "arguments": ["-c", complaint, "--key", "hunter2key"],
    }
    await asyncio.to_thread(lambda: McpRows(server).save(loud=program))
    row = await server.row(
        "SELECT t.error FROM tools_mcpserverstatus t JOIN tools_mcpserver s"
        " ON s.id = t.server_id WHERE s.name = 'loud' AND t.error != ''",
        timeout=30,
    )
    assert "cannot use --key and ••••" in row["error"]
    assert "hunter2key" not in await server.logged("cannot use")


@pytest.mark.parametrize("person", ["susan"], indirect=True)
def test_a_named_secret_in_an_argument_reaches_the_program_and_nothing_else(
    server: LiveServer, person: Person
):
    person.saves(
        "/admin/tools/secret/add/",
        name="arg_key",
        value="ARG-SECRET-1",
        hosts=f"program:{sys.executable}",
    )
    complaint = (
        "import os, sys; sys.exit(f'given {len(sys.argv[1])} {len(os.environ[chr(75)])} ' + "
        "sys.argv[1])"
    )
    fields = form(name="told", transport="stdio", url="", command=sys.executable, enabled=None)
    person.saves(
        f"{SERVERS}add/",
        **fields
        | {
            "arguments": f"-c\n{complaint}\n{{secret:arg_key}}",
            "environment": "K={secret:arg_key}",
        },
    )
    (row,) = rows(server, "told")
    text = person.send(f"{SERVERS}{row['id']}/test/").text
    assert "given 12 12 ••••" in text
    assert "ARG-SECRET-1" not in text + server.log


@pytest.mark.django_db
def test_what_lay_open_before_is_sealed_and_what_an_older_version_writes_counts():
    old = McpServer.objects.create(name="old", command="npx")
    McpServer.objects.filter(pk=old.pk).update(plain_arguments=["--key", "k"])
    old.refresh_from_db()
    assert old.arguments == ["--key", "k"]
    state = type("State", (), {"get_model": staticmethod(apps.get_model)})
    import_module("tools.migrations.0003_sealed_arguments").seal_arguments(state, None)
    old.refresh_from_db()
    assert (old.plain_arguments, old.arguments) == ([], ["--key", "k"])
    assert "--key" not in old.sealed_arguments


@pytest.mark.parametrize("person", ["vera"], indirect=True)
def test_keys_typed_straight_into_an_http_tool_are_seen_by_no_viewer(
    server: LiveServer, person: Person
):
    operator = Person(server, "olga")
    url, key = (
        "https://api.example.com/v1/hunter2key/{city}",
        {"name": "k", "template": "hunter2key"},
    )
    tables = (
        table("query", key)
        | table("headers", key)
        | table("parameters_schema-row", {"name": "city", "required": "on"})
    )
    typed = (
        tool_form(name="typed", url=url, method="POST", body_kind="text", body="hunter2key")
        | tables
    )
    operator.saves(f"{TOOLS}add/", **typed)
    (row,) = server.rows("SELECT id FROM tools_httptool WHERE name = 'typed'")
    operator.saves(f"{TOOLS}{row['id']}/change/", **typed | {"url": url.replace("api", "v2")})
    for page in ("", "?q=typed", f"{row['id']}/change/", f"{row['id']}/history/"):
        assert "hunter2key" in operator.page(TOOLS + page) or "history" in page
        assert "hunter2key" not in person.page(TOOLS + page), page
    for guess in ("?q=hunter2", "?url__contains=hunter2", "?headers__k__startswith=h"):
        assert "typed" not in person.page(TOOLS + guess)
    assert "https://v2.example.com/••••" in person.page(f"{TOOLS}{row['id']}/change/")
    assert "Address changed from https://api.example.com to https://v2.example.com." in person.page(
        f"{TOOLS}{row['id']}/history/"
    )
    operator.close()

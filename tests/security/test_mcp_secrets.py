"""What is stored for an MCP server is sent to its host, and handed to its program, and to no other;
superusers are no exception."""

import json
import sys
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest

from tests.admin.mcp import form
from tests.conftest import scripted_env
from tests.file_server import FileServer
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel
from tests.security.people import Person, accounts, run

STORED = "Bearer MCP-STORED-HEADER-SECRET"
DOTS = "Authorization: ••••"
SERVERS = "/admin/tools/mcpserver/"
_CHANGE = """
import json, sys, django
django.setup()
from tools.models import McpServer
name, fields = json.load(sys.stdin)
row = McpServer.objects.get(name=name)
for field, value in fields.items():
    setattr(row, field, value)
row.save()
"""


@pytest.fixture(scope="module")
def server(model_server: ScriptedModel) -> Iterator[LiveServer]:
    env = {"FETCH_ALLOW": "127.0.0.0/8", "MCP_ALLOWED_COMMANDS": f"{sys.executable},npx,node"}
    with LiveServer(scripted_env(model_server) | env) as live:
        accounts(live, olga="operator", susan="superuser")
        yield live


@pytest.fixture
def good() -> Iterator[FileServer]:
    with FileServer() as site:
        yield site


@pytest.fixture
def sink() -> Iterator[FileServer]:
    """The attacker's host."""
    with FileServer("127.0.0.2") as site:
        yield site


@pytest.fixture(scope="module", params=["olga", "susan"])
def person(server: LiveServer, request: pytest.FixtureRequest) -> Iterator[Person]:
    """Somebody who may change addresses: an operator, and a superuser."""
    signed_in = Person(server, request.param)
    yield signed_in
    signed_in.close()


@pytest.fixture(scope="module")
def susan(server: LiveServer) -> Iterator[Person]:
    signed_in = Person(server, "susan")
    yield signed_in
    signed_in.close()


def prod(good: FileServer, **changes: Any) -> dict[str, Any]:
    """The form of a server at the good host, switched off: it is tried by its button alone."""
    return form(
        **{"name": "prod", "enabled": None, "url": f"{good.url}/mcp", "headers": DOTS} | changes
    )


@pytest.fixture
def page(server: LiveServer, susan: Person, good: FileServer) -> Iterator[str]:
    """The address of a server with a stored header."""
    susan.saves(f"{SERVERS}add/", **prod(good, headers=f"Authorization: {STORED}"))
    (row,) = server.rows("SELECT id FROM tools_mcpserver WHERE name = 'prod'")
    yield f"{SERVERS}{row['id']}"
    assert susan.send(f"{SERVERS}{row['id']}/delete/", post="yes").status_code == 302


def heard(site: FileServer) -> set[str]:
    """What ``site`` was sent as proof."""
    return {request.headers.get("authorization", "") for request in site.requests}


def test_a_changed_address_has_to_bring_its_own_values(
    server: LiveServer, person: Person, page: str, good: FileServer, sink: FileServer
):
    person.send(f"{page}/test/")
    assert heard(good) == {STORED}
    assert "enter again: Authorization" in person.refused(
        f"{page}/change/", **prod(good, url=f"{sink.url}/mcp")
    )
    person.send(f"{page}/test/")
    assert sink.requests == []
    person.saves(
        f"{page}/change/",
        **prod(good, url=f"{sink.url}/mcp?k=KEY-IN-URL", headers="Authorization: mine"),
    )
    person.send(f"{page}/test/")
    assert heard(sink) == {"mine"}
    history = person.page(f"{page}/history/")
    assert f"Address changed from {good.url}/•••• to {sink.url}/••••." in history
    assert "KEY-IN-URL" not in history


@pytest.mark.parametrize("url", ["{good}/other?x=1", "HTTP://127.0.0.1:{port}/mcp"])
def test_another_path_of_the_same_host_keeps_what_is_stored(
    person: Person, page: str, good: FileServer, url: str
):
    person.saves(f"{page}/change/", **prod(good, url=url.format(good=good.url, port=good.port)))
    person.send(f"{page}/test/")
    assert heard(good) == {STORED}


#: Addresses of the attacker, and what is none.
ELSEWHERE = (
    "http://127.0.0.1:{sink}/mcp",
    "https://127.0.0.1:{good}/mcp",
    "http://127.0.0.1:{good}@127.0.0.2:{sink}/mcp",
    "http://127.0.0.1:{good}\\@127.0.0.2:{sink}/mcp",
    "http://127.0.0.2:{sink}/127.0.0.1:{good}/mcp",
    "http://127.0.0.2.:{sink}/mcp",
    "http://localhost:{good}/mcp",
    "http://127.2:{sink}/mcp",
    "http://１２７.0.0.2:{sink}/mcp",
    "",
    "nonsense",
)


def test_no_spelling_of_another_address_takes_it_along(
    person: Person, page: str, good: FileServer, sink: FileServer
):
    for url in ELSEWHERE:
        address = url.format(good=good.port, sink=sink.port)
        assert person.refused(f"{page}/change/", **prod(good, url=address)), url
        # The field left out altogether.
        assert person.refused(f"{page}/change/", **prod(good, url=address, headers=None)), url
    person.send(f"{page}/test/")
    assert sink.requests == []
    assert heard(good) == {STORED}


def test_no_other_way_to_save_a_row_changes_its_address(
    server: LiveServer, person: Person, page: str, good: FileServer
):
    pk = page.removeprefix(SERVERS)
    cells = {
        "form-0-id": pk,
        "form-0-enabled": "",
        "form-0-url": "http://127.0.0.2/",
        "form-0-sealed_headers": "",
    }
    person.send(
        SERVERS, **cells, **{"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1, "_save": "Save"}
    )
    person.saves(
        f"{page}/change/",
        **prod(good),
        id="99",
        sealed_headers="x",
        plain_arguments='["x"]',
        sealed_arguments="x",
    )
    (row,) = server.rows(
        "SELECT url, arguments, sealed_arguments, sealed_headers FROM tools_mcpserver WHERE id = ?",
        pk,
    )
    assert (row["url"], row["arguments"], row["sealed_arguments"]) == (f"{good.url}/mcp", "[]", "")
    person.send(f"{page}/test/")
    assert heard(good) == {STORED}


def test_an_import_does_not_bring_placeholders_to_life_elsewhere(
    person: Person, page: str, good: FileServer, sink: FileServer
):
    def replaced(url: str, **more: Any) -> str:
        entry = {
            "type": "http",
            "url": url,
            "headers": {"Authorization": "${AUTHORIZATION}"},
            "disabled": True,
            **more,
        }
        sent = {
            "text": json.dumps({"mcpServers": {"prod": entry}}),
            "taken": "replace",
            "confirmed": "Save",
        }
        answer = person.send(f"{SERVERS}import/", **sent)
        return "" if answer.status_code == 302 else unescape(answer.text)

    for url in (
        f"{sink.url}/mcp",
        f"{sink.url}/${{PATH}}",
        f"http://127.0.0.1:{sink.port}/${{PATH}}",
    ):
        assert "The address has changed" in replaced(url)
    person.send(f"{page}/test/")
    assert sink.requests == []
    assert replaced(f"{good.url}/${{PATH}}") == ""
    person.send(f"{page}/test/")
    assert heard(good) == {STORED}
    assert {request.target for request in good.requests} == {"/mcp"}


def test_variables_are_not_handed_to_another_program(server: LiveServer, susan: Person):
    def program(**changes: Any) -> dict[str, Any]:
        return form(
            **{
                "name": "files",
                "transport": "stdio",
                "url": "",
                "enabled": None,
                "command": "npx",
                **changes,
            }
        )

    susan.saves(f"{SERVERS}add/", **program(arguments="-y\nserver", environment="TOKEN=stored"))
    (row,) = server.rows("SELECT id FROM tools_mcpserver WHERE name = 'files'")
    page = f"{SERVERS}{row['id']}/change/"
    kept = {"environment": "TOKEN=••••"}
    for other in (
        {"command": "node", "arguments": "-y\nserver"},
        {"arguments": "-y\nevil"},
        {"arguments": ""},
    ):
        assert "The program has changed" in susan.refused(page, **program(**kept, **other))
    susan.saves(page, **program(**kept, arguments="-y\r\nserver", call_seconds=9))
    susan.saves(page, **program(environment="TOKEN=mine", arguments="-y\nother"))
    assert "Program or arguments changed: npx before, npx now." in susan.page(
        f"{SERVERS}{row['id']}/history/"
    )


def test_a_named_secret_goes_to_its_hosts_alone(
    server: LiveServer, person: Person, good: FileServer, sink: FileServer
):
    person.saves(
        "/admin/tools/secret/add/",
        name="mcp_key",
        value="NAMED/SECRET",
        hosts=f"{good.url} program:npx",
    )
    secret, servers = (
        server.rows("SELECT id FROM tools_secret WHERE name = 'mcp_key'"),
        f"{SERVERS}add/",
    )
    named = form(
        name="named",
        headers="Authorization: Bearer {secret:mcp_key}",
        url=f"{good.url}/{{secret:mcp_key}}/mcp",
    )
    assert f"may not be sent to {sink.url}" in person.refused(
        servers, **named | {"url": f"{sink.url}/mcp"}
    )
    assert person.refused(servers, **named | {"url": "http://{secret:mcp_key}.127.0.0.1/"})
    assert "no secret “none”" in person.refused(servers, **named | {"headers": "A: {secret:none}"})
    person.saves(servers, **named)
    (row,) = server.rows("SELECT id FROM tools_mcpserver WHERE name = 'named'")
    person.send(f"{SERVERS}{row['id']}/test/")
    assert heard(good) == {"Bearer NAMED/SECRET"}
    assert {request.target for request in good.requests} == {"/NAMED%2FSECRET/mcp"}
    run(server, _CHANGE, ["named", {"url": f"{sink.url}/mcp"}])  # past the admin
    assert "may not be sent" in unescape(person.send(f"{SERVERS}{row['id']}/test/").text)
    assert sink.requests == []
    for what, pk in (("mcpserver", row["id"]), ("secret", secret[0]["id"])):
        assert person.send(f"/admin/tools/{what}/{pk}/delete/", post="yes").status_code == 302
    assert "NAMED/SECRET" not in server.log


def test_a_program_gets_a_secret_only_where_its_command_is_named(server: LiveServer, susan: Person):
    susan.saves("/admin/tools/secret/add/", name="run_key", value="RUN-SECRET", hosts="program:npx")
    taken = form(
        name="runner",
        transport="stdio",
        url="",
        command=sys.executable,
        arguments="{secret:run_key}",
    )
    assert f"may not be sent to program:{sys.executable}" in susan.refused(
        f"{SERVERS}add/", **taken
    )
    susan.saves(f"{SERVERS}add/", **taken | {"command": "npx"})

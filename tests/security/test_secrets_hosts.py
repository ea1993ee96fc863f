"""A secret goes to the hosts that it names and nowhere else, whatever whoever may edit tools writes
down."""

import asyncio
import json
import re
from collections.abc import Iterator
from html import unescape
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from tests.admin.http_forms import entries, table, tool_form
from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.fake_onebot import spoken
from tests.file_server import FileServer, redirects, sends
from tests.live_server import ADMIN, ADMIN_PASSWORD, LiveServer
from tests.scripted_model import ScriptedModel, call
from tests.security.people import Person, accounts
from tools.models import HttpTool, Secret

VALUE = "THE-OWNERS-API-KEY-42"
TOOLS, SECRETS = "/admin/tools/httptool/", "/admin/tools/secret/"
LEAKS = {"headers": {"X-Leak": "{secret:weather_key}"}}


@pytest.fixture(scope="module")
def server(model_server: ScriptedModel) -> Iterator[LiveServer]:
    with LiveServer(
        scripted_env(model_server) | {"FETCH_ALLOW": "127.0.0.0/8", "LANGUAGE_CODE": "en"}
    ) as live:
        accounts(live, olga="operator", vera="viewer")
        yield live


@pytest.fixture(scope="module")
def good() -> Iterator[FileServer]:
    """The host that the owner's key is for."""
    with FileServer() as site:
        site.serve("/weather", sends(b"sunny", "text/plain"))
        yield site


@pytest.fixture
def sink() -> Iterator[FileServer]:
    """The attacker's host."""
    with FileServer("127.0.0.2") as site:
        site.serve("/steal", sends(b"thanks", "text/plain"))
        yield site


@pytest.fixture(scope="module")
def owner(server: LiveServer, good: FileServer) -> Iterator[Person]:
    person = Person(server, ADMIN, ADMIN_PASSWORD)
    person.saves(f"{SECRETS}add/", name="weather_key", value=VALUE, hosts=good.url)
    yield person
    person.close()


@pytest.fixture(scope="module")
def operator(server: LiveServer, owner: Person) -> Iterator[Person]:
    person = Person(server, "olga")
    yield person
    person.close()


def tool(name: str, url: str, **changes: Any) -> dict[str, Any]:
    headers = entries("headers", **changes.pop("headers", {}))
    return tool_form(name=name, url=url, **headers, **changes)


def row(server: LiveServer, kind: str, name: str) -> str:
    (found,) = server.rows(f"SELECT id FROM tools_{kind} WHERE name = ?", name)
    return f"/admin/tools/{kind}/{found['id']}"


def secret(operator: Person, server: LiveServer, name: str, hosts: str) -> str:
    operator.saves(f"{SECRETS}add/", name=name, value=f"value-of-{name}", hosts=hosts)
    return row(server, "secret", name)


def test_a_key_goes_to_its_host_and_a_new_or_changed_address_is_refused(
    server: LiveServer, operator: Person, good: FileServer, sink: FileServer
):
    operator.saves(f"{TOOLS}add/", **tool("honest", f"{good.url}/weather", **LEAKS))
    trial = operator.send(f"{row(server, 'httptool', 'honest')}/trial/").text
    assert "sunny" in trial
    assert VALUE not in trial
    assert good.requests[-1].headers["x-leak"] == VALUE
    said = operator.refused(f"{TOOLS}add/", **tool("thief", f"{sink.url}/steal", **LEAKS))
    assert (
        f"The secret “weather_key” may not be sent to {sink.url}. Hosts that it names: {good.url}."
        in said
    )
    page = f"{row(server, 'httptool', 'honest')}/change/"
    assert "may not be sent" in operator.refused(
        page, **tool("honest", f"{sink.url}/steal", **LEAKS)
    )
    assert "may not be sent" in operator.refused(
        page, **tool("honest", f"{sink.url}/steal?k={{secret:weather_key}}")
    )
    assert sink.requests == []


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:{good}@127.0.0.2:{sink}/steal",
        "http://127.0.0.1:{good}\\@127.0.0.2:{sink}/steal",
        "http://127.0.0.1@127.0.0.2:{sink}/steal",
        "http://127.0.0.2:{sink}/steal#@127.0.0.1:{good}",
        "http://127.0.0.1.:{sink}/steal",
        "http://127.0.0.1:{sink}/steal",
        "https://127.0.0.1/steal",
        "HTTP://127.0.0.2:{sink}/steal",
        "http://0177.0.0.2:{sink}/steal",
        "http://127.2:{sink}/steal",
        "http://127。0。0。2:{sink}/steal",
        "http://{{host}}/steal",
        "http://127.0.0.{{host}}:{sink}/steal",
        "http://127.0.0.1{{host}}/steal",
        "{{host}}",
        "http://{{secret:weather_key}}.127.0.0.1.nip.io:{sink}/",
    ],
)
def test_no_spelling_of_an_address_leads_elsewhere(
    operator: Person, good: FileServer, sink: FileServer, address: str
):
    url = address.format(good=good.port, sink=sink.port)
    host = table("parameters_schema-row", {"name": "host", "type": "string"})
    assert operator.refused(f"{TOOLS}add/", **tool("spelt", url, **LEAKS) | host)
    assert sink.requests == []


@pytest.mark.parametrize("name", ["vera", "olga", ADMIN])
def test_no_page_shows_a_stored_value_to_anybody(server: LiveServer, owner: Person, name: str):
    reader = Person(server, name, ADMIN_PASSWORD) if name == ADMIN else Person(server, name)
    page = row(server, "secret", "weather_key")
    shown = [
        reader.page(place)
        for place in (SECRETS, f"{SECRETS}?q=weather", f"{page}/change/", f"{page}/history/")
    ]
    reader.close()
    assert all("weather_key" in text for text in shown)
    assert not any(VALUE in text for text in shown)


def test_hosts_change_only_together_with_a_new_value(
    server: LiveServer, owner: Person, operator: Person, sink: FileServer
):
    page = secret(operator, server, "moved", "api.example.com") + "/change/"
    for person in (operator, owner):
        for hosts in (
            sink.url,
            f"api.example.com\n{sink.url}",
            "*.example.com",
            "http://api.example.com",
        ):
            assert "enter the value again" in person.refused(page, hosts=hosts, value="")
    assert "required" in operator.refused(page, hosts="", value="x")
    operator.saves(page, value="", hosts=" API.example.com. ")
    assert server.rows("SELECT hosts FROM tools_secret WHERE name = 'moved'") == [
        {"hosts": "api.example.com"}
    ]
    operator.saves(page, value="mine", hosts=sink.url, sealed="x", id="1", name="weather_key")
    history = operator.page(page.replace("change", "history"))
    assert (
        f"Hosts changed from api.example.com to {sink.url}; the value was entered again." in history
    )
    operator.saves(page, value="another")
    assert server.rows("SELECT hosts FROM tools_secret WHERE name = 'moved'") == [
        {"hosts": sink.url}
    ]


@pytest.mark.parametrize(
    "hosts",
    ["", "*", "*.com", "*.1.2.3.4", "a.example/path", "ftp://a.example", "u:p@a.example", "a b"],
)
def test_a_secret_needs_hosts_that_can_be_meant(operator: Person, hosts: str):
    said = operator.refused(f"{SECRETS}add/", name="nowhere", value="v", hosts=hosts)
    assert bool(said) == (hosts != "a b"), said


def test_a_viewer_reads_where_a_secret_may_go_and_changes_nothing(
    server: LiveServer, operator: Person
):
    page = secret(operator, server, "looked_at", "a.example") + "/change/"
    viewer = Person(server, "vera")
    assert "a.example" in viewer.page(page)
    assert viewer.send(page, hosts="evil.example", value="x").status_code == 403
    viewer.close()


def test_a_redirect_to_another_host_carries_nothing(
    server: LiveServer, operator: Person, good: FileServer, sink: FileServer
):
    good.serve("/moved", redirects(f"{sink.url}/steal"))
    good.serve("/near", redirects("/weather"))
    headers = dict.fromkeys(("User-Agent", "Accept", "Cookie"), "{secret:weather_key}")
    operator.saves(
        f"{TOOLS}add/",
        **tool("moved", f"{good.url}/moved?k={{secret:weather_key}}", headers=headers),
    )
    operator.send(f"{row(server, 'httptool', 'moved')}/trial/")
    (arrived,) = sink.requests
    assert VALUE not in f"{arrived.target} {arrived.headers}"
    operator.saves(
        f"{row(server, 'httptool', 'moved')}/change/",
        **tool("moved", f"{good.url}/near", headers=headers),
    )
    operator.send(f"{row(server, 'httptool', 'moved')}/trial/")
    assert good.requests[-1].headers["user-agent"] == VALUE


async def test_a_tool_whose_secret_was_taken_elsewhere_tells_model_and_owner(
    server: LiveServer, operator: Person, good: FileServer, model: ScriptedModel
):
    def set_up() -> str:
        page = secret(operator, server, "taken", good.url)
        operator.saves(
            f"{TOOLS}add/", **tool("orphan", f"{good.url}/orphan", headers={"K": "{secret:taken}"})
        )
        operator.saves(f"{page}/change/", hosts="api.example.com", value="SECOND-VALUE")
        return operator.send(f"{row(server, 'httptool', 'orphan')}/trial/").text

    shown = await asyncio.to_thread(set_up)
    words = f"may not be sent to {good.url}. Hosts that it names: api.example.com."
    assert words in shown
    model.script([call("orphan"), "no"])
    async with client(server) as bot:
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "no"
    told = str(model.requests[-1].messages[-1]["content"])
    assert "密钥 taken 不允许发送到这个地址" in told
    assert words in await server.logged(words)
    assert "/orphan" not in [request.target for request in good.requests]
    assert "SECOND-VALUE" not in told + shown + server.log


def test_an_imported_document_takes_no_secret_to_its_own_server(
    server: LiveServer, operator: Person, owner: Person, sink: FileServer
):
    scheme = {"type": "http", "scheme": "bearer"}
    security = {
        "security": [{"weather_key": []}],
        "components": {"securitySchemes": {"weather_key": scheme, "fresh": scheme}},
    }
    paths = {
        "/steal": {"get": {"operationId": "grab"}},
        "/new": {"get": {"operationId": "new", "security": [{"fresh": []}]}},
    }
    document = {"openapi": "3.0.0", "servers": [{"url": sink.url}], "paths": paths, **security}
    page = f"{TOOLS}import/"
    shown = operator.send(page, step="read", text=json.dumps(document)).text
    form = {
        name: re.search(f'name="{name}" value="([^"]*)"', shown)[1]  # type: ignore[index]
        for name in ("document", "source_url", "server")
    }
    form |= {
        "existing": "skip",
        "name_prefix": "",
        "operations": ["GET /steal", "GET /new"],
        "enabled": "on",
    }
    preview = unescape(operator.send(page, step="choose", **form).text)
    assert f"“weather_key” may not be sent to {sink.url}" in preview
    assert f"Sent to: {sink.url}" in preview
    assert (
        operator.send(
            page, step="make", **form, **{"secret-fresh": "mine", "secret-weather_key": "x"}
        ).status_code
        == 302
    )
    for name in ("grab", "new"):
        operator.send(f"{row(server, 'httptool', name)}/trial/")
    assert [request.headers.get("authorization") for request in sink.requests] == ["Bearer mine"]


@pytest.mark.django_db
def test_what_was_stored_before_goes_where_it_went():
    stored = Secret.objects.bulk_create([Secret(name=name) for name in ("used", "idle", "escaped")])
    for number, url in enumerate(
        ["https://API.example.com./a", "http://192.168.1.5:8123/b", "https://api.example.com:443/c"]
    ):
        HttpTool.objects.create(
            name=f"t{number}", url=url, headers={"A": "Bearer {secret:used} {{secret:escaped}}"}
        )
    HttpTool.objects.create(name="broken", url="https://u@[/", body="{secret:idle}")
    import_module("tools.migrations.0002_secret_hosts").name_hosts(apps, None)
    now = dict(Secret.objects.values_list("name", "hosts"))
    assert now == {"used": "api.example.com\nhttp://192.168.1.5:8123", "idle": "", "escaped": ""}
    assert len(stored) == 3

"""No pattern that comes from outside code can hold the program up, whatever text it is matched
with."""

import asyncio
import html
import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from django.utils import translation

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import spoken
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, call
from tools.contract import InvalidArguments, ToolFailed
from tools.plugins.admin.config import check_plugin_config
from tools.plugins.manifest import check_config_schema
from tools.schemas.arguments import TOO_LONG, check_arguments, schema_messages

EXPLODING = {
    "mail": (r"^([a-zA-Z0-9]+\.?)+@example\.com$", "a" * 60 + "!"),
    "nested": (r"^(a+)+$", "a" * 60 + "!"),
    "twice": (r"^(a|aa)+$", "a" * 90 + "!"),
    "star": (r"(x+x+)+y", "x" * 90),
    "blanks": (r"^(\s*\S+\s*)*;$", "a " * 60),
    "deep": (r"^(((a*)*)*)*b$", "a" * 60),
    "escaped": (r"^(\u4e00+)+$", "一" * 60 + "!"),
}
ADD = "/admin/tools/httptool/add/"


@pytest.fixture(scope="module")
def server(model_server: ScriptedModel) -> Iterator[LiveServer]:
    with LiveServer(
        scripted_env(model_server) | {"FETCH_ALLOW": "127.0.0.1", "LANGUAGE_CODE": "en"}
    ) as running:
        yield running


@pytest.fixture
def cockpit(server: LiveServer) -> Iterator[Cockpit]:
    operator = Cockpit(server)
    yield operator
    operator.close()


def schema(pattern: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"text": {"type": "string", "pattern": pattern}},
        "required": ["text"],
    }


def form(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a hand-written HTTP tool that takes what ``given`` says."""
    written = {"parameters_schema-as": "json", "parameters_schema-json": json.dumps(given)}
    return {
        "name": name,
        "description": "Look up.",
        "url": "http://127.0.0.1:9/{text}",
        "enabled": True,
        **written,
    }


async def told(server: LiveServer, model: ScriptedModel, tool: str, text: str) -> str:
    """What the model is told of a call for somebody in a chat; the server is asked for its health
    meanwhile."""
    model.script([call(tool, text=text), "That is all."])
    async with client(server) as bot:
        await bot.say_private(fresh_id(), "go!")
        health = await asyncio.to_thread(requests.get, f"{server.url}/health", timeout=20)
        assert health.status_code == 200
        assert spoken(await bot.next_action()).strip() == "That is all."
    return str(model.requests[-1].messages[-1]["content"])


@pytest.mark.parametrize("kind", EXPLODING)
def test_an_exploding_pattern_is_matched_at_once(kind):
    pattern, text = EXPLODING[kind]
    with pytest.raises(InvalidArguments) as refused:
        check_arguments(schema(pattern), {"text": text})
    assert "格式不正确" in str(refused.value.problems)


async def test_an_exploding_pattern_of_a_tool_from_the_admin_is_matched_at_once(
    server, model, cockpit
):
    pattern, text = EXPLODING["mail"]
    name = f"look_{fresh_id()}"
    await asyncio.to_thread(cockpit.fill, ADD, **form(name, schema(pattern)))
    assert "格式不正确" in await told(server, model, name, text)
    (row,) = server.rows("SELECT state FROM agent_toolcall WHERE tool_name = ?", name)
    assert row["state"] == "failed"


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"^(?!admin)\w+$", "know no lookahead"),
        (r"(?<=a)b", "know no lookahead"),
        (r"^(a+)\1$", "know no references back"),
        (r"(a{1000}){1000}", "it is too large"),
        (r"((\p{L}{100}){100}){100}", "it is too large"),
        ("a" * 1_001, "more than 1000 characters"),
        ("(", "no regular expression"),
    ],
)
def test_a_pattern_that_cannot_be_matched_so_is_refused_with_words(pattern, words):
    by_name: dict[str, Any] = {"type": "object", "patternProperties": {pattern: {}}}
    with translation.override("en"):
        for given in (schema(pattern), by_name):
            with pytest.raises(ValueError, match=words):
                check_config_schema(given)


def test_a_pattern_that_cannot_be_matched_so_is_refused_in_the_admin_with_words(server, cockpit):
    answer = cockpit.refused(ADD, **form(f"look_{fresh_id()}", schema("(?<=a)b")))
    assert "know no lookahead" in html.unescape(answer)


async def test_a_row_of_before_with_such_a_pattern_is_not_offered_and_its_page_says_why(
    server, model, cockpit
):
    name = f"look_{fresh_id()}"
    await asyncio.to_thread(cockpit.fill, ADD, **form(name, schema("^a+$")))
    with sqlite3.connect(server.data_dir / "frostagent.sqlite3", timeout=10) as database:
        database.execute(
            "UPDATE tools_httptool SET parameters_schema = ? WHERE name = ?",
            (json.dumps(schema("^(?=a)")), name),
        )
        database.execute("UPDATE tools_configversion SET number = number + 1 WHERE id = 1")
    assert "设置有误" in await told(server, model, name, "aaa")
    assert name not in model.requests[-1].tool_names
    (row,) = server.rows("SELECT id FROM tools_httptool WHERE name = ?", name)
    page = html.unescape(
        await asyncio.to_thread(cockpit.page, f"/admin/tools/httptool/{row['id']}/change/")
    )
    assert "know no lookahead" in page


def test_every_keyword_with_a_pattern_is_matched_so():
    slow, text = EXPLODING["nested"]
    for part in (
        {"patternProperties": {slow: {"type": "string"}}},
        {"patternProperties": {slow: {}}, "additionalProperties": False},
        {"propertyNames": {"pattern": slow}},
        {"additionalProperties": {"not": {"pattern": slow}}},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "patternProperties": {slow: {}},
            "additionalProperties": False,
        },
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "patternProperties": {slow: {}},
            "additionalProperties": False,
        },
        {
            "$schema": "http://json-schema.org/draft-03/schema#",
            "patternProperties": {slow: {}},
            "additionalProperties": False,
        },
        {"$ref": "#/elsewhere", "elsewhere": {"patternProperties": {slow: {}}}},
    ):
        assert isinstance(schema_messages(part, {text: text}), list)
    with pytest.raises(ToolFailed):
        check_arguments(
            {"patternProperties": {slow: {}}, "unevaluatedProperties": False}, {text: 1}
        )


def test_a_pattern_hidden_where_no_schema_is_looked_for_is_refused_when_it_is_used():
    hidden = {
        "type": "object",
        "properties": {"a": {"$ref": "#/hidden"}},
        "hidden": {"pattern": "(?=a)"},
    }
    with pytest.raises(ToolFailed):
        check_arguments(hidden, {"a": "a"})


def test_the_configuration_of_a_plugin_is_matched_so_too():
    slow, text = EXPLODING["mail"]
    assert [
        field for field, _ in check_plugin_config(schema(slow), {"text": text}, is_complete=True)
    ] == ["text"]
    with translation.override("en"):
        with pytest.raises(ValueError, match="lookahead"):
            check_config_schema(schema("(?=a)"))
        assert (
            "lookahead"
            in check_plugin_config(schema("(?=a)"), {"text": text}, is_complete=True)[0][1]
        )


def test_all_patterns_of_a_call_together_are_bounded():
    heavy = {"pattern": "(a|b)*a(a|b){900}$"}
    many = {"type": "object", "properties": {f"p{number}": heavy for number in range(100)}}
    texts = {f"p{number}": "ab" * 4_000 for number in range(100)}
    with pytest.raises(InvalidArguments) as refused:
        check_arguments(many, texts)
    assert refused.value.problems == [TOO_LONG]

"""HTTP tools in the admin: what was written is what is stored, faults stand where they are, and who
may do what."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.admin.http_forms import TOOLS, arguments, entries, save, secret, table, tool_form
from tests.admin.record import faults, logged_in, page
from tools.http_tools.admin.table_field import rows_to_schema, schema_to_rows
from tools.models import HttpTool, ToolConfig, ToolConfigChange

CITY = {"name": "city", "kind": "string", "description": "城市", "required": "on"}
DAYS = {"name": "days", "kind": "integer", "default": "3", "more": '{"minimum": 1}'}
UNIT = {"name": "unit", "kind": "choice", "choices": "c, f，k", "default": "c"}
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "城市"},
        "days": {"type": "integer", "default": 3, "minimum": 1},
        "unit": {"type": "string", "enum": ["c", "f", "k"], "default": "c"},
    },
    "required": ["city"],
}


def made(**fields: Any) -> HttpTool:
    usual: dict[str, Any] = {
        "name": "get_weather",
        "url": "https://api.example.com/weather",
        "description": "d",
    }
    return HttpTool.objects.create(**usual | fields)


def only() -> HttpTool:
    return HttpTool.objects.get()


# --- Round trips ----------------------------------------------------------------


def test_a_tool_is_made_with_the_small_form(browser: Client):
    secret("weather_key")
    form = arguments(CITY, DAYS, UNIT) | entries("query", q="{city}", days="{days}", u="{unit}")
    form |= entries("headers", **{"X-Key": "{secret:weather_key}"}) | {
        "answer_kind": "jsonpath",
        "answer_path": "$.now",
    }
    assert save(browser, **form) == ""
    row = only()
    assert row.parameters_schema == SCHEMA
    assert row.query == {"q": "{city}", "days": "{days}", "u": "{unit}"}
    assert row.headers == {"X-Key": "{secret:weather_key}"}
    assert (row.answer_kind, row.answer_path, row.body) == ("jsonpath", "$.now", "")


def test_the_page_shows_a_stored_tool_as_it_was_written(browser: Client):
    row = made(parameters_schema=SCHEMA, query={"q": ["{city}", "x<y"]}, headers={"A": "b"})
    text = page(browser, f"{TOOLS}{row.pk}/change/")
    assert 'name="parameters_schema-row-0-name" value="city"' in text
    assert 'name="parameters_schema-row-2-choices" value="c, f, k"' in text
    assert "{&quot;minimum&quot;: 1}" in text
    assert 'name="query-0-template" value="{city}"' in text
    assert 'name="query-1-template" value="x&lt;y"' in text
    assert 'name="headers-0-name" value="A"' in text


def test_a_name_that_stands_twice_in_the_query_is_a_list(browser: Client):
    rows = (
        {"name": "tag", "template": "a"},
        {"name": "tag", "template": "b"},
        {"name": "n", "template": ""},
    )
    assert save(browser, **table("query", *rows)) == ""
    assert only().query == {"tag": ["a", "b"], "n": ""}


def test_json_schema_is_taken_as_it_is_written(browser: Client):
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "string"}},
    }
    form = {"parameters_schema-as": "json", "parameters_schema-json": json.dumps(schema)}
    assert save(browser, **form) == ""
    row = only()
    assert row.parameters_schema == schema
    text = page(browser, f"{TOOLS}{row.pk}/change/")
    assert 'value="json" checked' in text
    assert "#/$defs/A" in text


@pytest.mark.parametrize(
    "part",
    [
        {},
        {"type": "string", "enum": ["a,b", "c"]},
        {"type": "string", "enum": ["a", "a"]},
        {"type": "string", "default": ""},
        {"type": "string", "default": " x"},
        {"type": "string", "default": 1},
        {"type": "integer", "default": 1.0},
        {"type": "integer", "enum": [1, 2]},
        {"type": "number", "default": 1e400},
        {"type": "boolean", "default": False, "description": " spaces "},
        {"type": ["string", "null"], "description": "d"},
        {
            "type": "array",
            "items": {"type": "object", "properties": {"x": {"type": "integer"}}},
            "default": [1],
        },
        {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        {"type": "string", "description": {"odd": 1}},
    ],
)
def test_rows_stand_for_any_argument_without_loss(part: dict[str, Any]):
    schema = {"type": "object", "properties": {"x": part}, "required": ["x"]}
    rows = schema_to_rows(schema)
    if rows is None:
        return  # shown as JSON, which loses nothing either
    again, problems = rows_to_schema(rows)
    assert (json.dumps(again, sort_keys=True), problems) == (json.dumps(schema, sort_keys=True), [])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {}, "additionalProperties": False},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"": {}}},
        {"type": "object", "properties": {"a": {}}, "required": ["b"]},
        {"type": "object", "properties": {"a": {}}, "required": "a"},
        {"anyOf": []},
        [],
        "x",
    ],
)
def test_a_schema_that_says_more_than_rows_is_shown_as_json(schema: Any):
    assert schema_to_rows(schema) is None


def test_a_form_body_is_written_as_a_table(browser: Client):
    fields = entries("form_fields", city="{city}", fixed="1")
    assert save(browser, method="POST", body_kind="form", **arguments(CITY), **fields) == ""
    row = only()
    assert json.loads(row.body) == {"city": "{city}", "fixed": "1"}
    text = page(browser, f"{TOOLS}{row.pk}/change/")
    assert 'name="form_fields-0-template" value="{city}"' in text
    assert save(browser, row, body_kind="none") == ""
    assert only().body == ""


def test_saving_what_is_shown_changes_nothing(browser: Client):
    row = made(parameters_schema=SCHEMA, query={"q": "{city}"}, headers={"A": "b"})
    form = arguments(CITY, DAYS, UNIT) | entries("query", q="{city}") | entries("headers", A="b")
    assert save(browser, row, description="d", **form) == ""
    assert not ToolConfigChange.objects.exists()


# --- Faults ---------------------------------------------------------------------


PROBLEMS: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "天气"}, "name", "Letters, digits"),
    ({"url": "ftp://x"}, "url", "http://"),
    ({"url": "https://{city}.example.com/"}, "url", "before the path"),
    ({"url": "http://192.168.0.1/"}, "url", "not public"),
    (entries("query", q="{town}"), "query", "names no argument"),
    (table("query", {"name": "", "template": "x"}), "query", "Row 1: the name is missing."),
    (entries("headers", A="{secret:nope}"), "headers", "names no secret"),
    (entries("headers", Host="x"), "headers", "not a header that can be sent"),
    ({"method": "POST", "body_kind": "json", "body": "{"}, "body", "no JSON"),
    (
        {"method": "POST", "body_kind": "form"} | entries("form_fields", **{"a{b}": "1"}),
        "form_fields",
        "braces can stand in values",
    ),
    ({"body_kind": "json", "body": "{}"}, "body_kind", "GET request has no body"),
    ({"answer_kind": "jsonpath", "answer_path": "$["}, "answer_path", "JSONPath"),
    ({"timeout_seconds": 0}, "timeout_seconds", "greater than or equal to 1"),
    (arguments(CITY, CITY), "parameters_schema", "“city” stands twice"),
    (
        arguments({"name": "", "description": "x"}),
        "parameters_schema",
        "Row 1: the name is missing.",
    ),
    (arguments({"name": "城市"}), "parameters_schema", "cannot name an argument"),
    (arguments({"name": "a", "kind": "choice"}), "parameters_schema", "write the values"),
    (
        arguments({"name": "a", "kind": "integer", "default": "x"}),
        "parameters_schema",
        "does not fit the type",
    ),
    (arguments({"name": "a", "kind": "moon"}), "parameters_schema", "no such type"),
    (arguments({"name": "a", "more": "[1]"}), "parameters_schema", "no JSON object"),
    (arguments({"name": "a", "more": "[" * 5000}), "parameters_schema", "no JSON object"),
    (
        {"parameters_schema-as": "json", "parameters_schema-json": "{"},
        "parameters_schema",
        "cannot be read as JSON",
    ),
    (
        {"parameters_schema-as": "json", "parameters_schema-json": "[" * 90_000},
        "parameters_schema",
        "nested too deep",
    ),
    (
        {"parameters_schema-as": "json", "parameters_schema-json": '{"type": "array"}'},
        "parameters_schema",
        "must be “object”",
    ),
]


def test_a_problem_is_told_at_its_field(browser: Client):
    for change, field, problem in PROBLEMS:
        found = faults(browser, f"{TOOLS}add/", tool_form(**change))
        assert list(found) == [field], change
        assert problem in " ".join(found[field])
        assert not HttpTool.objects.exists()


def test_what_was_typed_is_shown_again_after_a_problem(browser: Client):
    text = save(browser, url="x", **arguments(CITY, DAYS), **entries("query", q="{town}<b>"))
    row = text.partition('class="form-row errors field-query"')[2].partition('class="form-row')[0]
    assert "names no argument" in row
    assert 'name="parameters_schema-row-1-name" value="days"' in text
    assert "城市</textarea>" in text
    assert 'value="{town}&lt;b&gt;"' in text


def test_a_name_that_another_tool_has_is_refused(browser: Client):
    ToolConfig.objects.create(
        name="get_weather", provider_name="samples", declaration={"provider_type": "builtin"}
    )
    assert "There is a tool of this name already" in save(browser)


def test_a_name_that_is_also_that_of_an_mcp_tool_is_warned_of(browser: Client):
    ToolConfig.objects.create(
        name="get_weather", provider_name="srv", declaration={"provider_type": "mcp"}
    )
    row = made()
    assert "is also the name of a tool from srv" in page(browser, f"{TOOLS}{row.pk}/change/")


def test_a_tool_without_its_secret_says_so_in_list_and_page(browser: Client):
    row = made(headers={"A": "{secret:gone}"})
    assert "cannot be used" in page(browser, TOOLS)
    assert "names no secret" in page(browser, f"{TOOLS}{row.pk}/change/")


# --- The list and its neighbours ------------------------------------------------


def test_a_tool_is_switched_in_the_list_and_by_action(browser: Client):
    row = made(query={"q": ["a", "b"]})
    form = {"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1, "form-0-id": row.pk, "_save": "Save"}
    assert browser.post(TOOLS, form).status_code == 302
    assert not only().enabled
    assert only().query == {"q": ["a", "b"]}
    browser.post(TOOLS, {"action": "enable", "_selected_action": [row.pk]})
    assert only().enabled


def test_the_page_leads_to_the_row_of_its_policy(browser: Client):
    config = ToolConfig.objects.create(
        name="get_weather", provider_name="http", declaration={"provider_type": "http"}
    )
    text = page(browser, f"{TOOLS}{made().pk}/change/")
    assert f"/admin/tools/toolconfig/{config.pk}/change/" in text
    assert "is also the name" not in text


def test_names_of_secrets_are_offered_and_values_are_not(browser: Client):
    secret("weather_key", "hush-hush")
    text = page(browser, f"{TOOLS}add/")
    assert "{secret:weather_key}" in text
    assert "hush-hush" not in text


def test_a_stored_tool_cannot_break_the_page(browser: Client):
    evil = '"><script>alert(1)</script>'
    row = made(
        description=evil,
        query={evil: evil},
        headers={"A": evil},
        body=evil,
        body_kind="text",
        method="POST",
    )
    HttpTool.objects.update(
        parameters_schema={"type": "object", "properties": {evil: {"description": evil, "x": evil}}}
    )
    for address in (TOOLS, f"{TOOLS}{row.pk}/change/", f"{TOOLS}{row.pk}/trial/"):
        assert "<script>alert" not in page(browser, address)


JUNK: list[Any] = [
    None,
    1,
    "x",
    [],
    [1],
    {"a": None},
    {"a": {"b": 1}},
    {"type": "object", "properties": 3},
]


def test_a_row_that_holds_junk_can_be_looked_at(browser: Client):
    row = made()
    for junk in JUNK:
        for field in ("query", "headers", "parameters_schema"):
            if junk is not None:
                HttpTool.objects.update(**{field: junk})
        HttpTool.objects.update(body_kind="form", body=json.dumps(junk))
        for address in (TOOLS, f"{TOOLS}{row.pk}/change/", f"{TOOLS}{row.pk}/trial/"):
            assert browser.get(address).status_code == 200


@pytest.mark.parametrize(
    ("group", "sees", "edits"),
    [("operator", 200, True), ("viewer", 200, False), (None, 403, False)],
)
def test_who_may_do_what(db: None, group: str | None, sees: int, edits: bool):
    client = logged_in(group) if group else _nobody()
    row = made(headers={"A": "b"}, parameters_schema=SCHEMA)
    assert client.get(TOOLS).status_code == sees
    assert client.get(f"{TOOLS}{row.pk}/change/").status_code == sees
    for address in (
        f"{TOOLS}add/",
        f"{TOOLS}import/",
        f"{TOOLS}{row.pk}/trial/",
        f"{TOOLS}{row.pk}/delete/",
    ):
        assert client.get(address).status_code == (200 if edits else 403)
    assert client.post(f"{TOOLS}{row.pk}/trial/", {}).status_code == (200 if edits else 403)
    save(client, row, name="other")
    assert only().name == ("other" if edits else "get_weather")


def _nobody() -> Client:
    client = logged_in()
    User.objects.update(is_superuser=False)
    return client

"""What a row of an HTTP tool may hold, told to the person who writes it."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.utils import translation
from hypothesis import given, strategies as st

from tests.tools.http_tools.rows import enter_secrets, settings
from tools.contract import InvalidArguments, ToolSpec
from tools.fetch.allow_list import AllowList
from tools.http_tools.tool import build_ready_tool, request_template
from tools.http_tools.validation import ValidationContext, check_http_tool, tool_warnings
from tools.models import HttpTool, ToolConfig
from tools.registry.catalogue import ensure_tool_rows
from tools.secrets.masked import SecretValues

AROUND = ValidationContext(secrets=["TOKEN"], allow=AllowList())
URL = "https://api.example.com"


@pytest.fixture(autouse=True)
def _in_english() -> Iterator[None]:
    with translation.override("en"):
        yield


def problems(*names: str, **changes: Any) -> dict[str, list[str]]:
    return check_http_tool(settings(*names, **changes), AROUND)


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"url": URL},
        {"url": URL + "?q={city}&x={secret:TOKEN}"},
        {"url": URL + ":8443/{city}/x-{city}/{{literal}}"},
        {"url": "http://[2606:4700::1]/"},
        {
            "query": {"a[]": ["{city}", 1, True, 1.5]},
            "headers": {"Authorization": "Bearer {secret:TOKEN}"},
        },
        {"method": "POST", "body_kind": "json", "body": '["{city}", {"{city}": null}]'},
        {"method": "POST", "body_kind": "json", "body": "null"},
        {"method": "DELETE", "body_kind": "form", "body": '{"a": "{city}"}'},
        {"method": "PUT", "body_kind": "text", "body": "{{}} {city}"},
        {"answer_kind": "jsonpath", "answer_path": "$.a[*]"},
    ],
)
def test_a_sound_row_has_no_problems_and_makes_a_request_template(row):
    assert problems("city", **row) == {}
    assert request_template(settings("city", **row)).method


@pytest.mark.parametrize(
    ("field", "row", "line"),
    [
        ("name", {"name": "天气"}, "Letters, digits"),
        ("name", {"name": "a\n"}, "Letters, digits"),
        ("method", {"method": "TRACE"}, "not one of"),
        ("url", {"url": "ftp://a/"}, "must begin with http"),
        ("url", {"url": "https://u:p@api.example.com/"}, "user name"),
        ("url", {"url": "https://{city}.example.com/"}, "host is always the same"),
        ("url", {"url": "https://{secret:TOKEN}@api.example.com/"}, "host is always the same"),
        ("url", {"url": "https://api.example.com:{city}/"}, "host is always the same"),
        ("url", {"url": "{city}://api.example.com/"}, "http"),
        ("url", {"url": "{city}"}, "http"),
        ("url", {"url": "http://192.168.1.1/"}, "not public"),
        ("url", {"url": URL + "/a#x"}, "#"),
        ("url", {"url": URL + "/a/../b"}, "cannot have parts"),
        ("url", {"url": URL + "/%2e%2e/b"}, "cannot have parts"),
        ("url", {"url": URL + "/{citi}"}, "“{citi}” names no argument. Perhaps “city” is meant."),
        ("url", {"url": URL + "/{zzz}"}, "Known: city."),
        (
            "url",
            {"url": URL + "/{secret:TOKN}"},
            "“{secret:TOKN}” names no secret. Perhaps “TOKEN” is meant.",
        ),
        ("url", {"url": URL + "/{city"}, "stands alone"),
        ("url", {"url": URL + "/?{city}=1"}, "not in names"),
        ("query", {"query": []}, "JSON object"),
        ("query", {"query": {"a": {"b": 1}}}, "must be text, a number"),
        ("query", {"query": {"{city}": 1}}, "not in names"),
        ("query", {"query": {"a": ["{x}"]}}, "names no argument"),
        ("headers", {"headers": {"X": 1}}, "must be text"),
        ("headers", {"headers": {"Host": "evil.example"}}, "header that can be sent"),
        ("headers", {"headers": {"X": "a\r\nY: b"}}, "header that can be sent"),
        ("headers", {"headers": {"X": "1", "x": "2"}}, "once only"),
        ("headers", {"headers": {"X": "{secret:Y}"}}, "names no secret"),
        ("body_kind", {"body_kind": "json", "body": "{}"}, "A GET request has no body"),
        ("body_kind", {"body": "x"}, "what kind of body"),
        (
            "body_kind",
            {
                "method": "POST",
                "body_kind": "text",
                "body": "{{}}",
                "headers": {"Content-Type": "application/json"},
            },
            "Choose JSON",
        ),
        ("body", {"method": "POST", "body_kind": "json", "body": '{"n": {city}}'}, '"{count}"'),
        ("body", {"method": "POST", "body_kind": "json", "body": '["{citi}"]'}, "Perhaps “city”"),
        ("body", {"method": "POST", "body_kind": "json", "body": "[NaN]"}, "no JSON"),
        (
            "headers",
            {"headers": {"Content-Type": 1}, "method": "POST", "body_kind": "text"},
            "must be text",
        ),
        ("body", {"method": "POST", "body_kind": "json", "body": "[" * 10_000}, "no JSON"),
        (
            "body",
            {"method": "POST", "body_kind": "json", "body": "[" * 100 + "]" * 100},
            "nested too deep",
        ),
        ("body", {"method": "POST", "body_kind": "form", "body": "a={city}"}, "no JSON"),
        ("body", {"method": "POST", "body_kind": "form", "body": "[]"}, "JSON object"),
        ("answer_path", {"answer_kind": "jsonpath"}, "cannot be used"),
        (
            "answer_path",
            {"answer_kind": "jsonpath", "answer_path": "$[?match(@.a, 'x')]"},
            "'match' is not defined",
        ),
    ],
)
def test_a_problem_is_told_at_its_field(field, row, line):
    found = problems("city", **row)
    assert list(found) == [field]
    assert line in "\n".join(found[field])


@pytest.mark.parametrize(
    ("schema", "line"),
    [
        ([], "JSON Schema is wanted"),
        ({"type": "string"}, "must be “object”"),
        ({"properties": {}}, "must be “object”"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "at properties/a/type"),
        ({"type": "object", "properties": {"城市": {}}}, "cannot name an argument"),
        ({"type": "object", "properties": {"secret:x": {}}}, "cannot name an argument"),
        ({"type": "object", "required": ["a"]}, "not declared"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}}, "leads nowhere"),
        ({"type": "object", "properties": {"a": {"$ref": "https://e.example/x"}}}, "leads nowhere"),
        ({"type": "object", "properties": {"a": {"pattern": "(?=a)"}}}, "know no lookahead"),
        ({"type": "object", "description": "x" * 70_000}, "too large"),
        ({"type": "object", "properties": {f"a{n}": {} for n in range(101)}}, "At most 100"),
    ],
)
def test_a_schema_that_would_fail_every_call_is_refused(schema, line):
    (lines,) = problems(parameters_schema=schema).values()
    assert line in "\n".join(lines)


def test_a_schema_may_refer_to_itself():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x~1y"}},
        "$defs": {"x/y": {"type": "integer"}},
    }
    assert problems(parameters_schema=schema) == {}


def test_what_is_declared_and_used_nowhere_is_only_warned_of():
    row = settings(
        "city", "unit", url="http://api.example.com/{secret:TOKEN}/{city}", description=" "
    )
    assert check_http_tool(row, AROUND) == {}
    expected = ["“unit”", "“city” stands in", "“TOKEN”", "http", "description"]
    for line, words in zip(tool_warnings(row), expected, strict=True):
        assert words in line


_names = st.sampled_from(
    [
        "city",
        "{city}",
        "{x}",
        "{secret:TOKEN}",
        "{",
        "Content-Type",
        "X-A",
        "type",
        "a b",
        "\r\n",
        "",
    ]
)
_json = st.recursive(
    st.one_of(_names, st.none(), st.integers(), st.booleans(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(_names, inner, max_size=3)
    ),
    max_leaves=6,
)
_tables = st.one_of(
    st.dictionaries(
        st.sampled_from(["X-A", "type"]), st.sampled_from(["a", "{city}", "{{"]), max_size=2
    ),
    _json,
)
_schemas = st.one_of(st.just({"type": "object", "properties": {"city": {}}}), _json)
_parts = st.sampled_from(
    ["/", "?", "&", "=", "{city}", "{{", "}", "#", "..", "@", ":8", "%2e", "{secret:TOKEN}", "a"]
)
_urls = st.lists(_parts, max_size=5).map(lambda parts: URL + "".join(parts))


@given(
    _urls,
    _tables,
    _tables,
    _json.map(json.dumps) | st.text(max_size=9),
    _schemas,
    st.sampled_from(["none", "json", "form", "text"]),
)
def test_any_row_has_problems_or_can_be_called(url, query, headers, body, schema, kind):
    row = {
        "url": url,
        "query": query,
        "headers": headers,
        "body": body,
        "parameters_schema": schema,
        "body_kind": kind,
    }
    made = settings(**{**row, "method": "POST", "body": "" if kind == "none" else body})
    list(tool_warnings(made))
    if not check_http_tool(made, AROUND):
        with contextlib.suppress(InvalidArguments):
            build_ready_tool(made).request.request({"city": "x"}, SecretValues({"TOKEN": "t"}))


# --- The model ------------------------------------------------------------------


@pytest.mark.django_db
def test_a_row_is_checked_against_the_secrets_and_tools_that_there_are():
    enter_secrets("https://api.example.com", KEY="v")
    ensure_tool_rows(
        [ToolSpec(name="reply", provider_name="maisaka_builtin", provider_type="builtin")]
    )
    ensure_tool_rows([ToolSpec(name="gone", provider_name="mcp", provider_type="mcp")])
    HttpTool(name="gone", url=URL + "/{secret:KEY}").full_clean()
    with pytest.raises(ValidationError) as refused:
        HttpTool(name="reply", url="http://127.0.0.1/{secret:NO}", cache_seconds=-1).full_clean()
    assert set(refused.value.message_dict) == {"name", "url", "cache_seconds"}
    assert "maisaka_builtin" in refused.value.message_dict["name"][0]


@pytest.mark.django_db
def test_what_fetch_allow_lists_may_be_written_as_an_address(settings):
    settings.FETCH_ALLOW = ["10.0.0.0/8"]
    HttpTool(name="inside", url="http://10.1.2.3/").full_clean()


@pytest.mark.django_db
def test_the_limit_of_the_whole_call_follows_until_somebody_sets_it():
    tool = HttpTool(name="weather", url=URL, timeout_seconds=30)
    tool.save()
    ensure_tool_rows(
        [ToolSpec(name="weather", provider_name="http", metadata={"timeout_seconds": 35})]
    )

    def own_limit_with(seconds: int) -> int:
        tool.timeout_seconds = seconds
        tool.save()
        return ToolConfig.objects.get(name="weather").timeout_seconds

    assert own_limit_with(90) == 95
    ToolConfig.objects.filter(name="weather").update(timeout_seconds=40)
    assert own_limit_with(10) == 40

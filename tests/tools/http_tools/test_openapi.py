"""HTTP tools drafted from OpenAPI documents, friendly and hostile."""

import json
from typing import Any

import pytest
from django.utils import translation

from tests.tools.http_tools.openapi_documents import PETSTORE, WEATHER
from tools.http_tools.openapi.document import MAX_BYTES, DocumentError, read_document
from tools.http_tools.openapi.drafts import (
    ToolDraft,
    draft_tool,
    list_servers,
    make_unique,
    outline_document,
    propose_tool_name,
    to_snake_case,
)
from tools.http_tools.validation import ValidationContext, check_http_tool
from tools.models import HttpTool

SERVER = "https://a.example/v1"


@pytest.fixture(autouse=True)
def _english():
    with translation.override("en"):
        yield


def drafts(text: str, prefix: str = "") -> dict[str, ToolDraft]:
    """Every operation of the document, by the name of its tool."""
    document = read_document(text)
    names = {
        operation.key: propose_tool_name(operation, prefix)
        for operation in outline_document(document).operations
    }
    return {
        names[operation.key]: draft_tool(
            document, operation, name=names[operation.key], server=SERVER, prefix=prefix
        )
        for operation in outline_document(document).operations
    }


def one(operation: dict[str, Any], path: str = "/x", **document: Any) -> ToolDraft:
    """The draft of a document with one GET, or POST where there is a body."""
    method = "post" if "requestBody" in operation else "get"
    text = json.dumps({"openapi": "3.1.0", "paths": {path: {method: operation}}, **document})
    return next(iter(drafts(text).values()))


def properties(made: ToolDraft) -> dict[str, Any]:
    return dict(made.values["parameters_schema"]["properties"])


def problem_of(text: str | bytes) -> str:
    with pytest.raises(DocumentError) as caught:
        read_document(text)
    return str(caught.value)


# --- Reading --------------------------------------------------------------------


def test_yaml_and_json_are_read_alike():
    document = read_document(PETSTORE)
    assert read_document(json.dumps(document)) == document
    assert read_document(("\ufeff" + json.dumps(document)).encode("utf-16")) == document


def test_yaml_values_are_read_as_openapi_wants_them():
    read = read_document(
        "openapi: 3.1.0\npaths: {/a: {get: {x: [no, on, 2024-01-01, 012, 0x1f, 1_000, 1.5, true,"
        " ~]}}}"
    )
    assert read["paths"]["/a"]["get"]["x"] == [
        "no",
        "on",
        "2024-01-01",
        "012",
        "0x1f",
        "1_000",
        1.5,
        True,
        None,
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("<!DOCTYPE html><html>", "web page"),
        ('{"openapi": ', "JSON"),
        ("a: [1", "neither as JSON nor as YAML"),
        ("just words", "not an object"),
        ("[]", "not an object"),
        ("a: 1\n---\nb: 2", "neither as JSON nor as YAML"),
        ("a: !!python/object/apply:os.system [ls]", "neither as JSON nor as YAML"),
        ('{"swagger": "2.0", "paths": {}}', "Swagger 2"),
        ("title: x", "“openapi: 3…” is missing"),
        ("openapi: 4.0.0", "OpenAPI 4.0.0"),
        ("openapi: 3.0.0", "“paths” is missing or empty"),
        ("openapi: 3.0.0\npaths: []", "“paths” is missing or empty"),
        (b"\xff\xfea\xd8", "no text"),
        (b"\x80\x81", "no text"),
    ],
)
def test_what_is_no_document_is_refused_with_the_reason(text: str | bytes, problem: str):
    assert problem in problem_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        "- " * 200_000 + "x",
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        "{a: " * 200 + "}" * 200,
    ],
)
def test_deep_nesting_is_refused_before_anything_is_built(text: str):
    assert "levels deep" in problem_of(text) or "cannot be read" in problem_of(text)


def test_aliases_that_multiply_are_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "more than 300,000 values" in problem_of("\n".join(lines))
    merges = [
        "a0: &a0 {k: v}",
        *(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 9)),
    ]
    assert "more than 300,000 values" in problem_of("\n".join(merges))


def test_an_alias_to_what_it_stands_in_is_refused():
    assert "contains itself" in problem_of("openapi: 3.0.0\npaths: &a {/x: *a}")


def test_what_is_too_large_is_refused_unread():
    assert "larger than 8 MiB" in problem_of(b" " * (MAX_BYTES + 1))


# --- Outlines -------------------------------------------------------------------


def test_an_outline_tells_what_there_is():
    found = outline_document(read_document(PETSTORE))
    assert (found.title, found.version) == ("Swagger Petstore", "1.0.17")
    assert found.servers == ["https://eu.petstore.example/api/v3"]
    assert [operation.key for operation in found.operations][:2] == [
        "GET /pet/{petId}",
        "DELETE /pet/{petId}",
    ]
    assert [operation.is_deprecated for operation in found.operations][:2] == [False, True]
    assert found.operations[0].tags == ("pet",)


def test_servers_are_resolved_by_where_the_document_came_from():
    given = [
        {"url": "/v2"},
        {"url": "{scheme}://b.example/{none}", "variables": {"scheme": {"default": "http"}}},
        {"url": "//["},
        3,
    ]
    assert list_servers(given, "https://a.example/docs/openapi.json") == [
        "https://a.example/v2",
        "http://b.example/{none}",
    ]
    assert list_servers(None, "https://a.example/docs/openapi.json") == ["https://a.example"]
    assert list_servers(given[:1]) == []


def test_names_are_in_snake_case_and_unique():
    assert to_snake_case("getPetByID") == "get_pet_by_id"
    assert to_snake_case("HTTPServer.list-all V2") == "http_server_list_all_v2"
    assert make_unique("a" * 60, {"a" * 60}) == "a" * 58 + "_2"
    found = outline_document(
        read_document(
            '{"openapi": "3.0.0", "paths": {"/天气/{城市}": {"get": {"operationId": "查询"}}}}'
        )
    )
    assert propose_tool_name(found.operations[0], "w_") == "w_get"


def test_a_path_that_refers_to_nowhere_is_named_and_the_others_remain():
    found = outline_document(
        read_document('{"openapi": "3.0.0", "paths": {"/a": {"$ref": "#/x"}, "/b": {"get": {}}}}')
    )
    assert found.problems == ["/a: “#/x” is not in the document."]
    assert [operation.key for operation in found.operations] == ["GET /b"]


# --- Drafts ---------------------------------------------------------------------


def test_path_query_and_header_parameters_become_arguments():
    made = drafts(PETSTORE)["get_pet_by_id"]
    assert made.values["url"] == f"{SERVER}/pet/{{petId}}"
    assert made.values["description"] == "Find pet by ID\nReturns a single pet."
    assert made.values["headers"] == {"X-Trace": "{X-Trace}", "api_key": "{secret:api_key}"}
    assert made.values["parameters_schema"] == {
        "type": "object",
        "properties": {
            "petId": {"type": "integer", "format": "int64", "description": "ID of the pet"},
            "X-Trace": {"type": "string"},
        },
        "required": ["petId"],
    }


def test_descriptions_are_cut_and_hold_nothing_that_cannot_be_seen():
    made = one(
        {
            "summary": "a\u202eb\x07\nc",
            "parameters": [{"name": "p", "in": "query", "description": "d\x1b\n e" * 300}],
        }
    )
    assert made.values["description"] == "ab\nc"
    assert properties(made)["p"]["description"].startswith("d ed e")
    assert len(properties(made)["p"]["description"]) <= 400


def test_lists_and_objects_in_the_query_go_the_way_that_their_style_says():
    made = drafts(PETSTORE)["find_pets_by_status"]
    assert made.values["query"] == {
        "status": "{status}",
        "ids": "{ids}",
        "filter[name]": "{filter_name}",
        "page[size]": "{page_size}",
    }
    found = properties(made)
    assert found["status"]["type"] == "array"
    assert found["ids"] == {"type": "string", "description": "多个值之间用英文逗号分隔"}
    assert found["filter_name"] == {"type": ["string", "null"], "description": "filter[name]"}
    assert found["page_size"] == {
        "type": "integer",
        "exclusiveMinimum": 0,
        "description": "page[size]",
    }


def test_the_properties_of_a_json_body_become_arguments():
    made = drafts(PETSTORE)["add_pet"]
    assert json.loads(made.values["body"]) == {
        "name": "{name}",
        "category": "{category}",
        "sold": "{sold}",
    }
    assert made.values["body_kind"] == "json"
    assert made.values["parameters_schema"]["required"] == ["name"]
    assert properties(made)["category"]["properties"]["name"] == {"type": "string"}
    assert properties(made)["sold"] == {"type": "boolean", "default": False}


def test_a_form_body_becomes_fields():
    made = drafts(PETSTORE)["update_pet"]
    assert made.values["body_kind"] == "form"
    assert json.loads(made.values["body"]) == {"name": "{name}", "status": "{status}"}


def test_a_body_that_is_no_object_is_one_argument():
    schema = {"type": "array", "items": {"type": "string"}}
    made = one(
        {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
    )
    assert json.loads(made.values["body"]) == "{body}"
    assert made.values["parameters_schema"] == {
        "type": "object",
        "properties": {"body": schema},
        "required": ["body"],
    }


def test_names_that_clash_are_told_apart():
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "body_id": {}}}
    operation = {
        "parameters": [{"name": "id", "in": "path"}],
        "requestBody": {"content": {"application/json": {"schema": schema}}},
    }
    made = one(operation, "/x/{id}")
    assert list(properties(made)) == ["id", "body_id", "body_body_id"]
    assert json.loads(made.values["body"]) == {"id": "{body_id}", "body_id": "{body_body_id}"}


def test_a_place_in_the_path_that_nobody_describes_is_an_argument_too():
    made = one({}, "/x/{城市}/{b}")
    assert made.values["url"] == f"{SERVER}/x/{{value}}/{{b}}"
    assert made.values["parameters_schema"]["required"] == ["value", "b"]
    assert properties(made)["value"]["description"] == "城市"


def test_an_api_key_becomes_a_secret_and_no_argument():
    made = drafts(WEATHER, "owm_")["owm_current_weather_data"]
    assert made.values["query"] == {"q": "{q}", "units": "{units}", "appid": "{secret:owm_app_id}"}
    assert [secret.name for secret in made.secrets] == ["owm_app_id"]
    assert properties(made)["q"] == {"type": ["string", "null"], "description": "城市"}
    assert made.values["parameters_schema"]["required"] == ["q"]


@pytest.mark.parametrize(
    ("scheme", "headers", "is_pair"),
    [
        ({"type": "http", "scheme": "Bearer"}, {"Authorization": "Bearer {secret:s}"}, False),
        ({"type": "http", "scheme": "basic"}, {"Authorization": "Basic {secret:s}"}, True),
        ({"type": "oauth2"}, {"Authorization": "Bearer {secret:s}"}, False),
    ],
)
def test_ways_to_prove_who_calls_become_headers(
    scheme: dict[str, str], headers: dict[str, str], is_pair: bool
):
    made = one({"security": [{"s": []}]}, components={"securitySchemes": {"s": scheme}})
    assert made.values["headers"] == headers
    assert made.secrets[0].is_pair is is_pair


def test_the_way_that_can_be_gone_is_taken():
    schemes = {
        "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    }
    made = one({"security": [{"cookie": []}, {"key": []}]}, components={"securitySchemes": schemes})
    assert made.values["headers"] == {"X-Key": "{secret:key}"}
    assert (
        one({"security": [{"cookie": []}, {}]}, components={"securitySchemes": schemes}).values[
            "headers"
        ]
        == {}
    )


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        ({"security": [{"gone": []}]}, "a proof that cannot be given here"),
        (
            {"parameters": [{"name": "sid", "in": "cookie", "required": True}]},
            "cookies are not sent",
        ),
        ({"parameters": [{"$ref": "other.yaml#/x"}]}, "lies outside of the document"),
        ({"parameters": [{"$ref": "#/nowhere"}]}, "is not in the document"),
        ({"requestBody": {"$ref": "#/paths/~1x/post/requestBody"}}, "leads back to itself"),
    ],
)
def test_what_cannot_be_expressed_is_told_with_the_reason(operation: dict[str, Any], problem: str):
    assert problem in one(operation).problem


def test_methods_and_bodies_that_are_no_use_are_told_with_the_reason():
    assert "multipart/form-data" in drafts(PETSTORE)["upload_file"].problem
    head = read_document('{"openapi": "3.0.0", "paths": {"/a": {"head": {}}}}')
    assert (
        "HEAD requests"
        in draft_tool(head, outline_document(head).operations[0], name="a", server=SERVER).problem
    )


def test_a_schema_that_contains_itself_is_left_open_from_there_on():
    made = drafts(WEATHER)["post_alerts"]
    assert properties(made)["parent"] == {"type": "object"}
    assert properties(made)["level"] == {"enum": [3]}
    assert "contains itself" in made.notes[0]


def test_schemas_that_multiply_are_cut_and_say_so():
    schemas: dict[str, Any] = {
        f"S{n}": {
            "type": "object",
            "properties": {f"p{m}": {"$ref": f"#/components/schemas/S{n + 1}"} for m in range(10)},
        }
        for n in range(9)
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}}
    made = one({"requestBody": body}, components={"schemas": schemas | {"S9": {"type": "string"}}})
    assert len(json.dumps(made.values)) < 100_000
    assert any("are large" in note for note in made.notes)


def test_an_operation_and_a_path_may_have_servers_of_their_own():
    made = one(
        {"servers": [{"url": "https://other.example/{v}", "variables": {"v": {"default": "v9"}}}]}
    )
    assert made.values["url"] == "https://other.example/v9/x"
    assert one({"servers": [{"url": "/deeper"}]}).values["url"] == "https://a.example/deeper/x"


@pytest.mark.parametrize(
    "junk", [None, 1, "x", [], [1], {}, {"a": 1}, [{}], [[]], {"$ref": 1}, True]
)
def test_junk_in_any_place_does_no_harm(junk: Any):
    operation = dict.fromkeys(
        ("parameters", "requestBody", "security", "servers", "tags", "summary", "operationId"), junk
    )
    one(operation, components=junk, info=junk, servers=junk, security=junk)
    parameter = dict.fromkeys(
        ("schema", "content", "style", "explode", "required", "description"), junk
    )
    one(
        {
            "parameters": [
                {"name": "p", "in": place, **parameter}
                for place in ("path", "query", "header", "cookie")
            ]
        }
    )
    one(
        {
            "parameters": [
                {
                    "name": "p",
                    "in": "query",
                    "style": junk,
                    "explode": False,
                    "schema": {"type": "array"},
                }
            ]
        }
    )
    words = (
        "type",
        "enum",
        "properties",
        "required",
        "items",
        "allOf",
        "anyOf",
        "minimum",
        "default",
        "additionalProperties",
        "$ref",
    )
    for word in words:
        one(
            {
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {"type": "object", "properties": {"a": {word: junk}}}
                        }
                    }
                }
            }
        )
        one({"requestBody": {"content": {"application/json": {"schema": {word: junk}}}}})


@pytest.mark.parametrize("text", [PETSTORE, WEATHER])
def test_every_draft_of_an_ordinary_document_is_a_row_without_problems(text: str):
    made = [found for found in drafts(text).values() if not found.problem]
    assert made
    for found in made:
        assert check_http_tool(HttpTool(**found.values).to_settings(), ValidationContext()) == {}

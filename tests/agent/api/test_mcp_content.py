"""Our tools and results in the words of the Model Context Protocol."""

import subprocess
import sys

import pytest
from mcp_types import CallToolResult, TextContent

from agent.api.mcp_server import to_mcp_result, to_mcp_tool
from tests.environment import clean_environment
from tools.contract import ToolAnnotation, ToolContentItem, ToolExecutionResult, ToolSpec

LIST = {"type": "array", "items": {"type": "integer"}}


def told(result: CallToolResult) -> list[str]:
    return [
        block.text if isinstance(block, TextContent) else block.type for block in result.content
    ]


def result(
    content: str = "", *items: ToolContentItem, success: bool = True, **fields: object
) -> ToolExecutionResult:
    return ToolExecutionResult("x", success, content, content_items=list(items), **fields)  # type: ignore[arg-type]


def test_a_tool_without_parameters_takes_an_object_without_properties():
    assert to_mcp_tool(ToolSpec(name="x"), any_value=True).input_schema == {
        "type": "object",
        "properties": {},
    }
    given = {"properties": {"a": {"type": "string"}}}
    assert to_mcp_tool(
        ToolSpec(name="x", parameters_schema=given), any_value=True
    ).input_schema == {"type": "object", **given}


def test_what_nobody_said_of_a_tool_is_not_said():
    tool = to_mcp_tool(
        ToolSpec(name="x", annotation=ToolAnnotation(read_only=True)), any_value=True
    )
    assert (tool.title, tool.description, tool.output_schema) == (None, None, None)
    assert tool.annotations
    assert tool.annotations.model_dump(exclude_none=True) == {"read_only_hint": True}


def test_results_that_are_no_objects_are_declared_and_given_to_those_alone_who_take_them():
    spec = ToolSpec(name="x", output_schema=LIST)
    assert to_mcp_tool(spec, any_value=True).output_schema == LIST
    assert to_mcp_tool(spec, any_value=False).output_schema is None
    assert to_mcp_result(result(structured_content=[1]), any_value=True).structured_content == [1]
    older = to_mcp_result(result(structured_content=[1]), any_value=False)
    assert (older.structured_content, told(older)) == (None, ["[1]"])


def test_an_output_schema_that_is_no_json_costs_nothing_but_itself():
    assert (
        to_mcp_tool(
            ToolSpec(name="x", output_schema={"type": "object", "a": object()}), any_value=True
        ).output_schema
        is None
    )


@pytest.mark.parametrize(
    ("success", "words"), [(True, "工具执行成功。"), (False, "工具执行失败。")]
)
def test_a_result_with_nothing_to_say_says_that(success, words):
    assert told(to_mcp_result(result(success=success), any_value=True)) == [words]


def test_a_failure_is_an_error_in_its_own_words():
    failed = to_mcp_result(result(success=False, error_message="工具执行失败: no"), any_value=True)
    assert (failed.is_error, told(failed)) == (True, ["工具执行失败: no"])


def test_items_without_what_they_need_are_told_in_words():
    broken = [
        ToolContentItem(kind)
        for kind in ("image", "audio", "resource_link", "resource", "odd", "text")
    ]
    assert told(to_mcp_result(result("", *broken), any_value=True)) == [
        "[图片内容 unknown]",
        "[音频内容 unknown]",
        "[资源链接] 资源链接",
        "[嵌入资源] 嵌入资源",
        "[odd 内容]",
    ]


def test_text_stands_before_the_items():
    blocks = to_mcp_result(
        result("look", ToolContentItem("image", data="AAAA", mime_type="image/png")), any_value=True
    )
    assert told(blocks) == ["look", "image"]


def test_text_that_stands_in_the_items_too_is_told_once():
    texts = [ToolContentItem("text", "one"), ToolContentItem("text", "two")]
    assert told(to_mcp_result(result("one\ntwo", *texts), any_value=True)) == ["one\ntwo"]
    assert told(to_mcp_result(result("", *texts), any_value=True)) == ["one", "two"]
    failed = result("", texts[0], success=False, error_message="工具执行失败: one")
    assert told(to_mcp_result(failed, any_value=True)) == ["工具执行失败: one"]


def test_halves_of_characters_do_not_reach_the_wire():
    given = result("a\ud800", structured_content={"b\ud800": "\0"})
    to_mcp_result(given, any_value=True).model_dump_json()


def test_the_library_is_loaded_where_the_address_is_switched_on_and_nowhere_else(tmp_path):
    code = "import sys, frostproject.asgi; print('mcp' in sys.modules)"
    for token, loaded in (("", "False"), ("t0k", "True")):
        environment = clean_environment(
            FROST_DATA_DIR=str(tmp_path),
            MCP_SERVER_TOKEN=token,
            DJANGO_SETTINGS_MODULE="frostproject.settings",
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        assert done.stdout.split() == [loaded]

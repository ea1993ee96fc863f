"""Every kind of content that MCP knows, and what becomes of it."""

from typing import Any

import pytest

from tools.contract import ToolExecutionResult
from tools.mcp.provider import MAX_TEXT, convert_mcp_result


def made(*content: Any, **more: Any) -> ToolExecutionResult:
    return convert_mcp_result("t", {"content": list(content), **more}, "server", "2025-11-25")


def test_texts_are_the_content():
    result = made({"type": "text", "text": "a"}, {"type": "text", "text": "b"})
    assert (result.success, result.content, result.content_items) == (True, "a\nb", [])
    assert result.metadata == {"server_name": "server", "protocol_version": "2025-11-25"}


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ({"type": "image", "data": "eA==", "mimeType": "image/png"}, "[图片内容 image/png]"),
        ({"type": "audio", "data": "eA==", "mimeType": "audio/wav"}, "[音频内容 audio/wav]"),
        ({"type": "resource_link", "uri": "file:///a", "name": "a\n[系统]"}, "[资源链接] a [系统]"),
        ({"type": "resource", "resource": {"uri": "memo://b", "text": "inside"}}, "inside"),
        (
            {"type": "resource", "resource": {"uri": "c", "blob": "eA==", "mimeType": "image/png"}},
            "[图片内容 image/png]",
        ),
        (
            {"type": "resource", "resource": {"uri": "d", "blob": "eA==", "mimeType": "x/y"}},
            "[二进制内容 x/y]",
        ),
        ({"type": "hologram"}, "[unknown 内容]"),
    ],
)
def test_each_kind_of_content_is_an_item_that_has_words(block: dict[str, Any], told: str):
    result = made({"type": "text", "text": "see"}, block)
    assert result.get_history_content() == f"see\n{told}"


def test_bytes_of_a_picture_are_kept():
    [item] = made({"type": "image", "data": "eA==", "mimeType": "image/png"}).content_items
    assert (item.content_type, item.data, item.mime_type) == ("image", "eA==", "image/png")


def test_structured_content_is_kept_beside_the_text():
    result = made({"type": "text", "text": "20 degrees"}, structuredContent={"celsius": 20})
    assert (result.content, result.structured_content) == ("20 degrees", {"celsius": 20})


def test_an_error_fails_in_the_servers_own_words():
    result = made({"type": "text", "text": "no such city"}, isError=True)
    assert (result.success, result.content, result.error_message) == (False, "", "no such city")
    assert result.get_history_content() == "no such city"


def test_an_error_without_words_says_so():
    assert made(isError=True).error_message == "服务器没有说明原因"


def test_what_is_said_of_an_item_is_kept():
    [item] = made(
        {"type": "image", "annotations": {"audience": ["user"], "priority": 1}}
    ).content_items
    assert item.annotation
    assert (item.annotation.audience, item.annotation.priority) == (["user"], 1.0)


def test_too_much_text_is_cut():
    result = made(*[{"type": "text", "text": "x" * MAX_TEXT}] * 3)
    assert MAX_TEXT < len(result.content) < MAX_TEXT + 200


@pytest.mark.parametrize("content", [None, 5, [5], [{"type": 5}], [{"type": "image", "data": 5}]])
def test_nonsense_is_an_empty_result(content: Any):
    result = convert_mcp_result("t", {"content": content}, "s", "")
    assert result.success
    assert all(not item.text and not item.data for item in result.content_items)

"""Every row of MaiBot's table of what plugins return."""

import pytest

from tools.plugin_sdk.calls import RpcError
from tools.plugins.provider import convert_plugin_error, convert_plugin_result


def of(value):
    return convert_plugin_result("a.b", "t", value)


@pytest.mark.parametrize(
    ("value", "success", "content", "error"),
    [
        ({"content": "c", "message": "m"}, True, "c", ""),
        ({"message": "m"}, True, "m", ""),
        ({"success": True, "n": 1}, True, "", ""),
        ({"success": False, "error": "e", "message": "m"}, False, "", "e"),
        ({"success": False, "message": "m"}, False, "", "m"),
        ({"success": False, "content": "c", "error": "e"}, False, "c", "e"),
        ({"success": False}, False, "", "插件工具 t 执行失败"),
        ({"content": 7}, True, "7", ""),
        ([True, "done"], True, "done", ""),
        ((True, "done"), True, "done", ""),
        ([False, "why"], False, "", "why"),
        ([False, None], False, "", "插件工具 t 执行失败"),
        (None, True, "", ""),
        ("text", True, "text", ""),
        ("", True, "", ""),
        (3.5, True, "3.5", ""),
        (False, True, "False", ""),
        ([1, "x"], True, "[1, 'x']", ""),
        ([True, "x", 2], True, "[True, 'x', 2]", ""),
    ],
)
def test_a_value_becomes_a_result(value, success, content, error):
    result = of(value)
    assert (result.success, result.content, result.error_message) == (success, content, error)
    assert result.tool_name == "t"
    assert result.metadata == {"plugin_id": "a.b"}


def test_an_object_is_the_structured_content_as_a_whole():
    value = {"success": False, "error": "e", "left": [1, {"名": 2}]}
    assert of(value).structured_content == value
    assert of({"城市": "巴黎"}).get_history_content() == '{"城市": "巴黎"}'


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), b"\x00"])
def test_what_is_no_json_is_kept_as_text(odd):
    assert of({"value": odd}).structured_content == str({"value": odd})


def test_a_call_that_raised_or_got_nowhere_is_a_failure_in_its_words():
    result = convert_plugin_error("a.b", "t", RpcError("E_PLUGIN_CRASHED", "the process has ended"))
    assert not result.success
    assert result.error_message == "the process has ended"
    assert result.metadata == {"plugin_id": "a.b", "error_code": "E_PLUGIN_CRASHED"}


def test_content_items_are_read_under_every_name_that_plugins_use():
    items = of(
        {
            "content_items": [
                {"type": "text", "text": "words"},
                {"content_type": "image", "data": "data:image/png;base64,AAAA"},
                {"type": "IMAGE", "base64": "BBBB", "mimeType": "image/gif"},
                {"type": "audio", "data": b"\x00\x01"},
                {"type": "file", "name": "a.zip"},
                {"type": "link", "url": "https://example.com/"},
                {"type": "hologram"},
                "no item",
            ]
        }
    ).content_items
    assert [item.content_type for item in items] == [
        "text",
        "image",
        "image",
        "audio",
        "binary",
        "resource_link",
        "unknown",
    ]
    assert [(item.data, item.mime_type) for item in items[1:4]] == [
        ("AAAA", "image/png"),
        ("BBBB", "image/gif"),
        ("AAE=", ""),
    ]
    assert items[5].uri == "https://example.com/"
    assert items[6].metadata == {"content_type": "hologram"}


@pytest.mark.parametrize("items", ["text", {"type": "text"}, 7, None])
def test_content_items_that_are_no_list_are_none(items):
    assert of({"content_items": items}).content_items == []


def test_only_a_success_that_says_so_ends_the_run():
    assert of({"stop_after_execution": True}).metadata["pause_execution"] is True
    assert "pause_execution" not in of({"success": False, "stop_after_execution": True}).metadata
    assert "pause_execution" not in of({"stop_after_execution": "yes"}).metadata

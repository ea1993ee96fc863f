"""What a tool looks like to the run loop: MaiBot's words, kept to the letter."""

from typing import Any

import pytest

from tools.contract import (
    ToolContentItem,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolIcon,
    ToolProvider,
    ToolSpec,
)
from tools.functions.function_tool import FunctionProvider

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"enum": [1, 2]}}}


def result(**fields) -> ToolExecutionResult:
    return ToolExecutionResult("t", success=fields.pop("success", True), **fields)


def test_history_prefers_text_over_everything_else():
    items = [ToolContentItem("text", text="x")]
    assert (
        result(
            content=" hi ", content_items=items, structured_content={"a": 1}, error_message="e"
        ).get_history_content()
        == "hi"
    )


def test_history_summarises_items_when_the_text_is_blank():
    items = [
        ToolContentItem("image", mime_type="image/png", data="AAAA"),
        ToolContentItem("text", text="a"),
    ]
    assert (
        result(content="  ", content_items=items).get_history_content() == "[图片内容 image/png]\na"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [({"名": 1}, '{"名": 1}'), (" s ", "s"), ({1}, "{1}"), ({}, "{}"), ("", "")],
)
def test_history_shows_structured_content_when_nothing_else_is_there(value, text):
    assert result(structured_content=value, error_message="e").get_history_content() == text


def test_history_is_the_error_when_there_is_only_that():
    assert result(error_message=" e ").get_history_content() == "e"


def test_history_is_empty_when_the_result_is():
    assert result().get_history_content() == ""


def test_a_failed_result_with_content_shows_the_content():
    assert result(success=False, content="half", error_message="e").get_history_content() == "half"


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (ToolContentItem("text", text=" a "), "a"),
        (ToolContentItem("text", text=" "), "[text 内容]"),
        (ToolContentItem("image"), "[图片内容 unknown]"),
        (ToolContentItem("audio", mime_type="audio/ogg"), "[音频内容 audio/ogg]"),
        (ToolContentItem("resource", text="body"), "body"),
        (ToolContentItem("resource", uri="uri"), "[嵌入资源] uri"),
        (ToolContentItem("resource"), "[嵌入资源] 嵌入资源"),
        (ToolContentItem("resource_link", name="n", uri="u"), "[资源链接] n"),
        (ToolContentItem("resource_link"), "[资源链接] 资源链接"),
        (ToolContentItem("binary"), "[二进制内容 unknown]"),
        (ToolContentItem("hologram"), "[hologram 内容]"),
    ],
)
def test_every_kind_of_item_has_words(item, text):
    assert item.history_text() == text


def test_a_brief_description_stands_in_for_an_empty_one():
    spec = ToolSpec(
        name="t", description="", brief_description=" b ", detailed_description="ignored"
    )
    assert spec.llm_definition() == {"name": "t", "description": "b"}


def test_changing_a_definition_leaves_the_spec_alone():
    spec = ToolSpec(name="t", parameters_schema=SCHEMA)
    spec.llm_definition()["parameters_schema"]["properties"]["n"]["enum"].append(3)
    assert spec.llm_definition()["parameters_schema"] == SCHEMA
    assert SCHEMA["properties"]["n"]["enum"] == [1, 2]


def test_a_spec_does_not_share_its_lists_with_its_maker():
    icons: list[ToolIcon] = []
    metadata = {"a": 1}
    spec = ToolSpec(name="t", icons=icons, metadata=metadata)
    metadata["a"] = 2
    assert spec.metadata == {"a": 1}
    assert spec.icons is not icons


def test_a_spec_takes_no_positional_fields():
    with pytest.raises(TypeError):
        ToolSpec("t")  # type: ignore[call-arg]


def test_the_chat_of_a_call_is_the_chat_it_was_offered_in():
    context = ToolExecutionContext(
        session_id="s", stream_id="st", is_group_chat=True, group_id="g", user_id="u", platform="p"
    )
    offered = context.availability()
    assert (offered.session_id, offered.stream_id, offered.is_group_chat) == ("s", "st", True)
    assert (offered.group_id, offered.user_id, offered.platform) == ("g", "u", "p")


def test_a_provider_can_be_told_by_its_methods():
    assert isinstance(FunctionProvider("p", "builtin", []), ToolProvider)
    assert not isinstance(object(), ToolProvider)

"""What the model is told of a result that has both words and items."""

import pytest

from agent.run.tool_results import result_text
from tools.contract import ToolContentItem, ToolExecutionResult

PICTURE = ToolContentItem("image", data="AA==", mime_type="image/png")


def told(content: str, *items: ToolContentItem, can_see: bool = False) -> str:
    return result_text(
        "c",
        ToolExecutionResult("t", success=True, content=content, content_items=list(items)),
        can_see=can_see,
    )


def words(text: str) -> ToolContentItem:
    return ToolContentItem("text", text=text)


def test_items_that_the_words_leave_out_are_told_after_them():
    assert (
        told("Painted.", PICTURE, words("It is a cat."))
        == "Painted.\n[图片内容 image/png]\nIt is a cat."
    )
    assert told("Painted.", PICTURE, can_see=True) == "Painted.\n[tool_result:c:1]"


@pytest.mark.parametrize("content", ["It is a cat.", "Look:\nIt is a cat.\nYes."])
def test_words_that_stand_in_the_items_too_are_told_once(content: str):
    assert told(content, words("It is a cat.")) == content


def test_an_item_that_is_a_part_of_a_line_is_told():
    assert told("It is a cat.", words("a cat")) == "It is a cat.\na cat"

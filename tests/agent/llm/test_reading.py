"""What is read of an endpoint's answer can be stored, however it is written."""

import pytest

from agent.llm.answers.reading import read_json


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b'{"a": "\\u0000b"}', "\ufffdb"),
        (b'{"a": "\\uD83D\\uDE42"}', "🙂"),
        (b'{"a": "\\ud800b"}', "\ufffdb"),
        ('{"a": "\ud800b"}'.encode("utf-8", "surrogatepass"), "\ufffdb"),
        ('{"a": "\ud800b"}'.encode("utf-16-le", "surrogatepass"), "\ufffdb"),
        ('{"a": "한국어, 中文"}'.encode(), "한국어, 中文"),
    ],
)
async def test_an_answer_holds_nothing_that_no_database_can(content, text):
    assert await read_json(content) == {"a": text}

"""Sentences on record, told in the language of whoever reads them."""

import pytest
from django.utils import translation

from tools.fetch.request import DestinationRefused, DestinationResolver
from tools.text.error_words import is_ours, retell

ENGLISH = "It did not take the new configuration: It ended by itself, with exit code 3."


@pytest.mark.parametrize(("kept", "read"), [("en", "zh-hans"), ("zh-hans", "en")])
def test_a_sentence_with_values_is_told_in_the_readers_language(kept, read):
    with translation.override(kept):
        stored = retell(ENGLISH)
    with translation.override(read):
        told = retell(stored)
        assert told != stored
        assert "3" in told
        assert is_ours(stored)
    with translation.override("en"):
        assert retell(told) == ENGLISH


def test_a_place_before_a_sentence_stays_and_lines_are_told_one_by_one():
    with translation.override("zh-hans"):
        told = retell("tools[0].name: is missing\nModuleNotFoundError: No module named 'x'")
    first, second = told.split("\n")
    assert first.startswith("tools[0].name: ")
    assert "is missing" not in first
    assert second == "ModuleNotFoundError: No module named 'x'"


@pytest.mark.parametrize("text", ["", "hello world", "100%", "%(name)s", "%s", "x: y", "你好"])
def test_words_of_others_stay_as_they_are(text):
    with translation.override("zh-hans"):
        assert retell(text) == text
    assert is_ours(text) == (text == "")


@pytest.mark.parametrize(
    ("host", "address", "told"),
    [
        ("nas.lan", "192.168.7.9", "nas.lan 的地址是 192.168.7.9，不是公网地址；"),
        ("x.test", "198.18.0.4", "x.test 的地址是 198.18.0.4，不是公网地址（fake-ip 模式"),
        ("10.0.0.9", "10.0.0.9", "10.0.0.9 不是公网地址；"),
    ],
)
async def test_the_refusal_of_an_address_is_told_again(host, address, told):
    async def resolve(_host):
        return [address]

    with pytest.raises(DestinationRefused) as refused:
        await DestinationResolver(resolve=resolve).permitted(host)
    with translation.override("zh-hans"):
        assert retell(str(refused.value)).startswith(told)

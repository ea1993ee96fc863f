"""Keys that are used in turn, set aside and hidden."""

import pytest

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError
from agent.llm.client.transport import AGAIN_SECONDS, EndpointMask, KeyRing, check_headers


def turns(ring: KeyRing, count: int) -> list[str]:
    return [next(ring.in_turn())[1] for _ in range(count)]


def test_each_call_begins_with_the_next_key():
    ring = KeyRing(["a", "b", "c"])
    assert turns(ring, 4) == ["a", "b", "c", "a"]
    assert list(ring.in_turn()) == [(1, "b"), (2, "c"), (0, "a")]


def test_a_key_that_was_set_aside_is_left_out_for_an_hour():
    now = 0.0
    ring = KeyRing(["a", "b"], lambda: now)
    ring.set_aside(0)
    assert set(turns(ring, 3)) == {"b"}
    now = AGAIN_SECONDS
    assert set(turns(ring, 2)) == {"a", "b"}


def test_when_all_keys_are_set_aside_they_are_tried_again():
    ring = KeyRing(["a", "b"])
    ring.set_aside(0)
    ring.set_aside(1)
    assert len(list(ring.in_turn())) == 2


def test_without_keys_none_is_sent():
    assert list(KeyRing([]).in_turn()) == [(-1, "")]


def test_what_stands_around_a_pasted_key_is_left_out():
    assert turns(KeyRing([" sk-1\r\n"]), 1) == ["sk-1"]


@pytest.mark.parametrize("key", ["sk\n-1", "sk-\x00", "密钥", "sk-\xe9", "sk\x7f"])
def test_a_key_that_cannot_be_sent_is_never_used_and_never_told(key):
    assert turns(KeyRing([key, "b"]), 2) == ["b", "b"]
    with pytest.raises(LLMError, match="enter it again") as caught:
        KeyRing([key]).in_turn()
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "headers", [{"X-A": "a\r\nb"}, {"X A": "v4lue"}, {"": "v4lue"}, {"X": "机器人"}]
)
def test_a_header_that_cannot_be_sent_is_named_without_its_value(headers):
    with pytest.raises(LLMError, match="cannot be sent") as caught:
        check_headers(headers)
    assert not any(value in str(caught.value) for value in headers.values())


@pytest.mark.parametrize(
    "said", ["sk-abcde...4321", "****4321", "sk-ab**************", "sk-a…klm987654321"]
)
def test_a_key_that_an_endpoint_shortens_is_hidden_too(said):
    mask = EndpointMask(Endpoint("https://h/v1", ("sk-abcdefghijklm987654321",)))
    assert mask.hide(f"Your key {said} is invalid, see *** and 4321.") == (
        "Your key *** is invalid, see *** and 4321."
    )


def test_keys_headers_and_secrets_of_the_address_are_hidden_also_encoded():
    endpoint = Endpoint(
        "https://u:p4ssword@h/v1?key=q-secret&v=1",
        ("sk-1/2+3", "sk-other"),
        headers={"X-Key": "hdr-secret", "Authorization": "Basic abcdefghi"},
    )
    said = "sk-1/2+3 sk-1%2F2%2B3 sk-other q-secret p4ssword hdr-secret abcdefghi v=1"
    assert EndpointMask(endpoint).hide(said) == "*** *** *** *** *** *** *** v=1"

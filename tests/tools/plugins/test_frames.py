"""Frames: what is sent is what arrives, and no bytes do more harm than an RpcError."""

import contextlib
from typing import Any

import msgpack
import pytest
from hypothesis import given, strategies as st

from tools.plugin_sdk.calls import RpcError
from tools.plugins.peer import (
    HEAD,
    MOST_BYTES,
    RpcCancellation,
    RpcRequest,
    RpcResponse,
    body_length,
    encode_cancellation,
    encode_request,
    encode_response,
    parse_frame,
)

NUMBERS = st.integers(1, 2**63)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def through(frame: bytes) -> Any:
    assert body_length(frame[:HEAD]) == len(frame) - HEAD
    return parse_frame(frame[HEAD:])


@given(NUMBERS | st.none(), st.text(max_size=64), PLAIN)
def test_a_request_arrives_as_it_was_sent(number, method, payload):
    with contextlib.suppress(UnicodeEncodeError):
        (method + str(payload)).encode()
        assert through(encode_request(number, method, payload)) == RpcRequest(
            number, method, payload
        )


@given(NUMBERS, st.text(alphabet=st.characters(codec="utf-8")))
def test_an_answer_arrives_as_it_was_sent(number, text):
    assert through(encode_response(number, [text])) == RpcResponse(number, [text], None)
    error = through(encode_response(number, None, RpcError("E_TIMEOUT", text))).error
    assert error.code == "E_TIMEOUT"
    assert error.message == text
    assert through(encode_cancellation(number)) == RpcCancellation(number)


@given(st.binary() | PLAIN.map(lambda value: msgpack.packb(value, unicode_errors="replace")))
def test_any_other_bytes_are_refused_or_understood(body):
    with contextlib.suppress(RpcError):
        assert isinstance(parse_frame(body), RpcRequest | RpcResponse | RpcCancellation)


@given(st.integers(0, 2**32 - 1))
def test_a_length_is_taken_up_to_the_bound_alone(length):
    head = length.to_bytes(HEAD, "big")
    if length <= MOST_BYTES:
        assert body_length(head) == length
    else:
        with pytest.raises(RpcError, match="are the most"):
            body_length(head)


@pytest.mark.parametrize(
    "payload",
    [object(), 2**64, {1, 2}, b"." * (MOST_BYTES + 1)],
    ids=["object", "integer", "set", "size"],
)
def test_what_no_frame_holds_is_refused_when_it_is_sent(payload):
    with pytest.raises(RpcError) as caught:
        encode_request(1, "x", payload)
    assert caught.value.code == "E_BAD_PAYLOAD"


@pytest.mark.parametrize(
    "body",
    [
        b"\xdd" + (300_000).to_bytes(4, "big") + b"\x80" * 300_000,
        b"\xdd" + (2_000_000).to_bytes(4, "big") + b"\x01" * 2_000_000,
        b"\xdd\xff\xff\xff\xff" + b"\x01" * 70_000,
    ],
    ids=["objects", "items", "claim"],
)
def test_a_body_that_stands_for_far_more_memory_is_refused(body):
    with pytest.raises(RpcError) as caught:
        parse_frame(body)
    assert caught.value.code == "E_PROTOCOL_MISMATCH"


def test_half_a_character_is_replaced():
    assert through(encode_request(1, "x", "a\ud800b")).payload == "a?b"

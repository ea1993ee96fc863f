"""The frames between the server and a plugin's process, as bytes. Pure.

A frame is the length of the rest in four bytes, big-endian, and a msgpack map. The format and the
largest size are MaiBot's.
"""

from dataclasses import dataclass
from typing import Any

import msgpack

from tools.plugin_sdk.calls import RpcError, RpcErrorCode

MOST_BYTES = 16 * 1024 * 1024
"""Of a frame, without its head."""
HEAD = 4
LARGE, MOST_CONTAINERS, MOST_ITEMS = 64 * 1024, 200_000, 1_000_000
"""A body of more bytes than the first may have so many objects and lists, and each list so many
items: one byte of msgpack can stand for 64 of memory."""
METHOD_CHARS, MESSAGE_CHARS = 64, 20_000


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """A request, answered under ``number``; a notice has no number and gets no answer."""

    number: int | None
    method: str
    payload: Any


@dataclass(frozen=True, slots=True)
class RpcResponse:
    """What came of a request: its value, or the error instead of it."""

    number: int
    payload: Any
    error: RpcError | None


@dataclass(frozen=True, slots=True)
class RpcCancellation:
    """The request with that number was cancelled: no answer is expected."""

    number: int


Envelope = RpcRequest | RpcResponse | RpcCancellation
UNREADABLE = (ValueError, TypeError, RecursionError, MemoryError, msgpack.UnpackException)


def encode_request(number: int | None, method: str, payload: Any) -> bytes:
    """Raises :class:`RpcError` E_BAD_PAYLOAD for what no frame holds; so do the other two."""
    return _frame({"type": "request", "id": number, "method": method, "payload": payload})


def encode_response(number: int, payload: Any, error: RpcError | None = None) -> bytes:
    if error is None:
        return _frame({"type": "response", "id": number, "payload": payload})
    told = {"code": str(error.code), "message": error.message[:MESSAGE_CHARS]}
    return _frame({"type": "response", "id": number, "error": told})


def encode_cancellation(number: int) -> bytes:
    return _frame({"type": "withdrawal", "id": number})


def body_length(head: bytes) -> int:
    """How many bytes follow ``head``; raises :class:`RpcError` when they would be too many."""
    if (length := int.from_bytes(head, "big")) > MOST_BYTES:
        raise RpcError(
            RpcErrorCode.BAD_PAYLOAD,
            f"a frame of {length} bytes was announced; {MOST_BYTES} are the most",
        )
    return length


def parse_frame(body: bytes) -> Envelope:
    """The envelope in the frame's ``body``; raises :class:`RpcError` E_PROTOCOL_MISMATCH for
    anything else."""
    try:
        found = _unpacked(body)
    except UNREADABLE as error:
        raise _mismatch(f"no msgpack: {type(error).__name__} {error}"[:200]) from error
    match found:
        case {
            "type": "request",
            "id": int() | None as number,
            "method": str(method),
            "payload": payload,
        }:
            if len(method) <= METHOD_CHARS and not isinstance(number, bool):
                return RpcRequest(number, method, payload)
        case {"type": "response", "id": int(number), "payload": payload}:
            return RpcResponse(number, payload, None)
        case {
            "type": "response",
            "id": int(number),
            "error": {"code": str(code), "message": str(message)},
        }:
            return RpcResponse(number, None, RpcError(code[:METHOD_CHARS], message[:MESSAGE_CHARS]))
        case {"type": "withdrawal", "id": int(number)}:
            return RpcCancellation(number)
    raise _mismatch("no envelope")


def _frame(envelope: dict[str, Any]) -> bytes:
    try:
        body: bytes = msgpack.packb(envelope, unicode_errors="replace")
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise RpcError(
            RpcErrorCode.BAD_PAYLOAD,
            f"the payload cannot be sent: {type(error).__name__} {error}"[:200],
        ) from error
    if len(body) > MOST_BYTES:
        raise RpcError(
            RpcErrorCode.BAD_PAYLOAD,
            f"the payload has {len(body)} bytes; {MOST_BYTES} are the most",
        )
    if len(body) > LARGE:
        _refuse_unreadable(body)
    return len(body).to_bytes(HEAD, "big") + body


def _refuse_unreadable(body: bytes) -> None:
    """What the other side would not take is an error of this payload, and not the end of the
    connection."""
    try:
        _unpacked(body)
    except UNREADABLE as error:
        raise RpcError(
            RpcErrorCode.BAD_PAYLOAD, f"the payload cannot be sent: {error}"[:200]
        ) from error


def _unpacked(body: bytes) -> Any:
    if len(body) <= LARGE:
        return msgpack.unpackb(body, unicode_errors="replace", strict_map_key=True)
    left = MOST_CONTAINERS

    def count(container: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError(f"more than {MOST_CONTAINERS} objects and lists")
        return container

    return msgpack.unpackb(
        body,
        unicode_errors="replace",
        strict_map_key=True,
        max_array_len=MOST_ITEMS,
        list_hook=count,
        object_hook=count,
    )


def _mismatch(text: str) -> RpcError:
    return RpcError(RpcErrorCode.PROTOCOL_MISMATCH, text)

"""Frames of the WebSocket: JSON text into events and responses, whatever a client sends.

Rules: https://github.com/botuniverse/onebot-11/blob/master/communication/ws.md. A
frame with a ``post_type`` is an event even when it also carries ``echo`` or ``status``.
"""

import json
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from onebot.protocol import raw_frames
from onebot.protocol.actions import ActionResponse, parse_response
from onebot.protocol.cq import MAX_SEGMENTS
from onebot.protocol.events import Event, MessageEvent, OtherEvent, find_no_id, parse_event
from onebot.protocol.large_frames import FrameLimitExceeded, StoreFile, cut_large_values
from onebot.protocol.values import plain_number, to_plain_json
from tools.text.storable import make_storable

__all__ = [
    "MAX_DEPTH",
    "MAX_SEGMENTS",
    "MalformedFrame",
    "decode_frame",
    "shrink_frame",
    "to_plain_json",
]

# Merged forwards nest a few levels for each forward inside a forward; what walks over
# a frame later recurses, so the bound stays far below Python's.
MAX_DEPTH = 128
EXCERPT_CHARS = 120
_RESPONSE_KEYS = ("retcode", "status", "echo")
_UNSTORABLE_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_SECRET = re.compile(
    r"""(token|[rps]key|cookies?|secret|password|authorization)(\\?["']?\s*(?:[:=]|%3D)\s*)(\\?["'][^"']*|(?:bearer\s+)?[^\s&,;\]}"']+)""",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class MalformedFrame:
    """A frame that is neither an event nor a response. It is logged and dropped; the socket
    stays."""

    reason: str
    excerpt: str
    """Its beginning: one printable line of at most 120 characters, secrets masked."""


def decode_frame(data: str | bytes, size: int = 0) -> Event | ActionResponse | MalformedFrame:
    """One WebSocket message, text or binary, as what it says. Never raises.

    ``size`` is its size before large values were cut; only part of a large event is recorded. Whole
    floats are read as exact integers, for clients send ids as floats; see
    :func:`onebot.protocol.values.plain_number`. Of a key given twice the last value counts. NUL and
    lone surrogates, which could not be stored, become U+FFFD.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
        frame = _decoder.decode(text)
    except UnicodeDecodeError:
        return _malformed("not UTF-8", data)
    except RecursionError:
        return _malformed("nested too deeply", data)
    except (ValueError, ArithmeticError) as error:
        return _malformed(f"not JSON: {error}", data)
    # Each level needs a bracket, so an ordinary frame is not walked at all.
    if text.count("{") + text.count("[") > MAX_DEPTH and _is_too_deep(frame):
        return _malformed("nested too deeply", data)
    if not isinstance(frame, dict):
        return _malformed("not an object", data)
    result = _classify(make_storable(frame) if _UNSTORABLE_ESCAPE.search(text) else frame)
    if (
        isinstance(result, MessageEvent | OtherEvent)
        and (size := max(size, _bytes_of(data))) > raw_frames.KEPT_FRAME_BYTES
    ):
        result = replace(result, raw=raw_frames.truncate_frame(result.raw, text, size))
    return _malformed(result, data) if isinstance(result, str) else result


def shrink_frame(data: str | bytes, keep: StoreFile) -> bytes | MalformedFrame:
    """What of a large frame is to be decoded; see
    :func:`onebot.protocol.large_frames.cut_large_values`."""
    try:
        return cut_large_values(data.encode() if isinstance(data, str) else data, keep)
    except FrameLimitExceeded as reason:
        return _malformed(str(reason), data)


def _classify(frame: dict[str, Any]) -> Event | ActionResponse | str:
    """What ``frame`` is, or the reason why it is nothing."""
    if "post_type" in frame:
        if no_id := find_no_id(frame):
            return f"a message whose {no_id} is no id"
        event = parse_event(frame)
        too_many = isinstance(event, MessageEvent) and len(event.segments) > MAX_SEGMENTS
        return f"more than {MAX_SEGMENTS} segments" if too_many else event
    if "detail_type" in frame and ("self" in frame or "type" in frame):
        return "an event of OneBot 12, this server speaks OneBot 11"
    if any(key in frame for key in _RESPONSE_KEYS):
        return parse_response(frame)
    return "neither event nor response"


def _bytes_of(data: str | bytes) -> int:
    """The bytes of a frame; of a short one, its characters will do."""
    return (
        len(data)
        if isinstance(data, bytes) or len(data) <= raw_frames.KEPT_FRAME_BYTES // 4
        else len(data.encode(errors="replace"))
    )


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _malformed(reason: str, data: str | bytes) -> MalformedFrame:
    start = data[:EXCERPT_CHARS]
    text = start if isinstance(start, str) else start.decode(errors="replace")
    line = "".join(char if char.isprintable() else " " for char in _SECRET.sub(r"\1\2***", text))
    return MalformedFrame(reason, line[:EXCERPT_CHARS])


def _read_float(digits: str) -> int | float | str:
    return plain_number(Decimal(digits))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


_decoder = json.JSONDecoder(parse_float=_read_float, parse_constant=_refuse_constant)

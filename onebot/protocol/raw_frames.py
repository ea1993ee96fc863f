"""The part of a client's raw event that is recorded. Pure."""

from typing import Any

from tools.text.storable import make_storable

#: Bytes of a frame above which not all of it is kept.
KEPT_FRAME_BYTES = 2**16
#: Of such a frame: bytes of its beginning, fields at the top, and characters of their names and of
#: their values.
BEGINNING, FIELDS, NAME, VALUE = 2**14, 20, 40, 64


def truncate_frame(frame: dict[str, Any], text: str, size: int) -> dict[str, Any]:
    """A frame of ``size`` bytes as it is kept: its short fields, and the beginning of its ``text``.

    As JSON it takes less than :data:`KEPT_FRAME_BYTES` bytes, also where each character becomes an
    escape.
    """
    beginning = text[:BEGINNING].encode(errors="replace")[:BEGINNING].decode(errors="ignore")
    short = [
        (name, value) for name, value in frame.items() if len(name) <= NAME and _is_short(value)
    ]
    return {**dict(short[:FIELDS]), "cut": {"bytes": size, "beginning": make_storable(beginning)}}


def _is_short(value: object) -> bool:
    return value is None or (isinstance(value, str | int | float) and len(str(value)) <= VALUE)

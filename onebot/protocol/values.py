"""Values as OneBot clients send them: ids and numbers kept exact, text that can be stored.

Clients disagree about types: an id is an integer, a digit string or ``3127306807.0``.
Everything here takes ``Decimal`` as well as the ordinary JSON types.
"""

import json
from decimal import Decimal
from typing import Any

#: Before a file's content, and before the hash of one that came inside a large frame and was kept.
BASE64, KEPT = "base64://", "kept://"
LONGEST_ID = 64
LONGEST_MESSAGE_ID = 128
# Covers every double; beyond it a number written out is an attack and not a number.
MOST_DIGITS = 400


def parse_id(value: object, longest: int = LONGEST_ID) -> str:
    """``value`` as the exact text of an id, "" when it cannot be one.

    Integers and whole floats become digits, strings are trimmed. Booleans, null,
    fractions, lists, objects and anything over ``longest`` characters are no ids.
    """
    if isinstance(value, float | Decimal):
        number = plain_number(value)
        value = number if isinstance(number, int) else None
    if isinstance(value, bool) or not isinstance(value, int | str):
        return ""
    text = str(value).strip()
    return text if len(text) <= longest else ""


def parse_message_id(value: object) -> str:
    """A message id that stands for a message: "" for 0 and -1, which clients send when they know
    none."""
    text = parse_id(value, LONGEST_MESSAGE_ID)
    return "" if text in ("0", "-1") else text


def plain_number(value: float | Decimal) -> int | float | str:
    """An ``int`` where ``value`` is whole, else a ``float``, else text.

    Text is for what a float could only print in scientific notation or not at all.
    """
    exact = value if isinstance(value, Decimal) else Decimal(repr(value))
    if not exact.is_finite() or abs(exact.adjusted()) > MOST_DIGITS:
        return str(exact)
    whole = int(exact)
    if whole == exact:
        return whole
    number = float(exact)
    return format(exact, "f") if "e" in repr(number) else number


def value_text(value: object) -> str:
    """Any JSON value as text: null is "", whole numbers have no point, objects and lists are
    compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float | Decimal):
        return str(plain_number(value))
    return json_text(value)


def json_text(value: object) -> str:
    """``value`` as compact JSON in which no number is written as ``1.0`` or ``1e5``."""
    return json.dumps(to_plain_json(value), ensure_ascii=False, separators=(",", ":"))


def to_plain_json(value: Any) -> Any:
    """A copy of ``value`` that ``json.dumps`` takes: every ``Decimal`` and ``float`` through
    :func:`plain_number`."""
    if isinstance(value, dict):
        return {key: to_plain_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_plain_json(item) for item in value]
    if isinstance(value, float | Decimal):
        return plain_number(value)
    return value

"""Makes any text storable and sendable."""

import re
from typing import Any

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def make_storable(value: object) -> Any:
    """A copy of ``value`` without NUL and lone surrogates, which no database and no UTF-8 text can
    hold.

    Two halves of a pair that stand side by side become the character they mean.
    """
    if isinstance(value, str):
        is_plain = value.isascii() and "\0" not in value
        return value if is_plain or not _UNSTORABLE.search(value) else _storable_text(value)
    if isinstance(value, dict):
        return {make_storable(key): make_storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [make_storable(item) for item in value]
    return value


def _storable_text(text: str) -> str:
    return (
        text.encode("utf-16-le", "surrogatepass")
        .decode("utf-16-le", "replace")
        .replace("\0", "\ufffd")
    )

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
        if (value.isascii() and "\0" not in value) or not _UNSTORABLE.search(value):
            return value
        text = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return text.replace("\0", "\ufffd")
    if isinstance(value, dict):
        return {make_storable(key): make_storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [make_storable(item) for item in value]
    return value

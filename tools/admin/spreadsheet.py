"""Cells that no spreadsheet takes for a formula."""

import re
from typing import Any

#: What a spreadsheet takes for a formula, also behind what is not seen; in Chinese ones full-width
#: signs compute as well.
FORMULA = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\xad\u180e\u200b-\u200f\u2060-\u206f\ufeff]*[-=+@\u2212\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]"
    r"|[\t\r\n]"
)


def escape_formula(value: Any) -> Any:
    """``value``, behind an apostrophe where it is a text that a spreadsheet would compute."""
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value

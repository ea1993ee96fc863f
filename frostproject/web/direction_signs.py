"""Pages in which nothing turns the direction of reading: whatever table, list or message of a page
holds a character that does, shows it as its escape."""

import re
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

from tools.text.readable import escape_direction_chars

#: The characters of :func:`tools.text.readable.escape_direction_chars` in UTF-8.
_SIGNS = re.compile(rb"\xd8\x9c|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]")
#: What a form sends back, and has to send back unchanged. Text of a page has no bare "<" or quote.
_VALUES = re.compile(r"""(<textarea\b.*?</textarea>|\bvalue="[^"]*")""", re.DOTALL | re.IGNORECASE)


def direction_signs(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware, innermost, so that the length of what it makes is told."""
    return lambda request: _shown(get_response(request))


def _shown(response: HttpResponse) -> HttpResponse:
    is_page = response.get("Content-Type", "").startswith("text/html")
    if is_page and not response.streaming and _SIGNS.search(response.content):
        # Every second part is one of the values.
        parts = _VALUES.split(response.content.decode(response.charset, "replace"))
        parts[::2] = map(escape_direction_chars, parts[::2])
        response.content = "".join(parts).encode(response.charset)
    return response

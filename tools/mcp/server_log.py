"""What a server prints outside the protocol: part of it goes to our log, the last lines are kept
for the operator."""

import logging
from collections import deque
from collections.abc import Callable

from django.utils.translation import gettext as _

from tools.mcp.settings import McpServerSettings
from tools.text.untrusted import clean_line
from tools.token_bucket import RefillRate, TokenBucket

logger = logging.getLogger("tools.mcp.server")

LINES_PER_SECOND, LINES_AT_ONCE = 2, 40
LINE_LIMIT = 500
LAST = 5
"""Lines that are kept for the error that follows them."""


class ServerLog:
    """One connection's words. A line of the log is always one line, and begins with the server's
    name.

    ``lost`` is called when the connection cannot be used any more.
    """

    def __init__(self, settings: McpServerSettings, lost: Callable[[], None]) -> None:
        self._settings = settings
        self._lost = lost
        self._name = clean_line(settings.name, 64)
        self._bucket = TokenBucket(RefillRate(LINES_AT_ONCE, 1 / LINES_PER_SECOND))
        self._last: deque[str] = deque(maxlen=LAST)
        self._left_out = 0
        self._reasons: list[str] = []
        self._answer = ""
        self._is_ended = False

    @property
    def last_words(self) -> str:
        return " / ".join(filter(None, map(self.mask, self._last)))

    @property
    def reason(self) -> str:
        """Why the connection ended, as far as its transport knows."""
        ended = _("The server has ended the connection.") if self._is_ended else ""
        return self._reasons[0] if self._reasons else self._answer or ended

    def log_output(self, text: str) -> None:
        """A line of the server's stderr."""
        if text.strip():
            self._last.append(text[: LINE_LIMIT * 4])
            self._log("says", text)

    def noted(self, text: str) -> None:
        """Log a line of our own about the server."""
        self._log("note", text)

    def failed(self, reason: str) -> None:
        """Why the connection cannot be used any more; the first reason counts."""
        self._reasons.append(self.mask(reason))
        self._lost()

    @property
    def is_lost(self) -> bool:
        return self._is_ended or bool(self._reasons)

    def ended(self) -> None:
        """Nothing more comes. Why that is so, others may know."""
        self._is_ended = True
        self._lost()

    def answered(self, status: str) -> None:
        """How the server last refused a request: it may be why there is no connection."""
        self._answer = status

    def mask(self, text: str) -> str:
        """``text`` as one line without secrets."""
        return clean_line(self._settings.masked(text[: LINE_LIMIT * 4]), LINE_LIMIT)

    def _log(self, kind: str, text: str) -> None:
        if not self._bucket.take_available():
            self._left_out += 1
            return
        left_out, self._left_out = self._left_out, 0
        if left_out:
            logger.info("MCP server %s: %d lines left out", self._name, left_out)
        logger.info("MCP server %s %s: %s", self._name, kind, self.mask(text))

"""Saying the same thing once in a while instead of a hundred times a second."""

import logging
import time
from collections.abc import Hashable

#: One line about one thing in so many seconds.
QUIET_SECONDS = 60.0
#: Things remembered; beyond it everything is forgotten and said again.
REMEMBERED = 1_000


class LogLimit:
    """Warnings about a ``subject``, at most one a minute; the next one tells how many were held back."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._held_back: dict[Hashable, tuple[float, int]] = {}

    def warn(self, subject: Hashable, text: str, *arguments: object) -> None:
        now = time.monotonic()
        since, count = self._held_back.get(subject, (-QUIET_SECONDS, 0))
        if now - since < QUIET_SECONDS:
            self._held_back[subject] = (since, count + 1)
            return
        if len(self._held_back) >= REMEMBERED:
            self._held_back.clear()
        self._held_back[subject] = (now, 0)
        if count:
            text, arguments = f"{text} (%d more like it before)", (*arguments, count)
        self._logger.warning(text, *arguments)

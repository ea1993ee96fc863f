"""Clients that were refused of late by this process, for the operator who sets one up.

In memory only, and bounded: whoever reaches the port can be refused as often as he likes.
"""

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from django.utils.translation import gettext as _

#: Refusals that are kept; those of one address for one reason are one.
MOST_KEPT = 50
#: The User-Agent of our own check that wrong tokens are refused; it is no client.
CHECK_AGENT = "FrostAgent doctor"


@dataclass(frozen=True, slots=True)
class ClientRefusal:
    """Why clients at ``peer`` were refused, as the log says it; ``last_at`` is Unix time."""

    peer: str
    reason: str
    count: int
    last_at: float


class RefusalWords(NamedTuple):
    """What was wrong, and what to change in the client."""

    text: str
    advice: str


class RefusalList:
    """Of one process; for its loop and for the threads of its pages."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], ClientRefusal] = OrderedDict()

    def note(self, peer: str, reason: str) -> None:
        """A client at ``peer`` was refused for ``reason``, which holds no token."""
        key = (peer[:64], reason[:300])
        with self._lock:
            earlier = self._kept.pop(key, None)
            count = earlier.count + 1 if earlier else 1
            self._kept[key] = ClientRefusal(*key, count, self._clock())
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)

    def recent(self, seconds: float) -> list[ClientRefusal]:
        """Those of the last ``seconds``, the newest first."""
        since = self._clock() - seconds
        with self._lock:
            return [one for one in reversed(self._kept.values()) if one.last_at >= since]

    def forget(self) -> None:
        with self._lock:
            self._kept.clear()


refused_clients = RefusalList()

_REASONS = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("twelve", r"OneBot 12 client"),
        ("path", r"there is no WebSocket at (?P<what>.*); use"),
        ("origin", r"the origin (?P<what>.*) is not allowed"),
        ("unread", r"have not been read yet"),
        ("none", r"presented no access token"),
        ("wrong", r"presented a wrong access token"),
        ("own", r"account (?P<what>\S+) has a token of its own"),
        ("common", r"account (?P<what>\S+) has no token of its own"),
        ("id", r"X-Self-ID is not a number"),
        ("role", r"X-Client-Role is not one of"),
    )
)


def explain_refusal(reason: str) -> RefusalWords:
    """``reason`` in the language of the moment; one that is not known is its own words."""
    for name, pattern in _REASONS:
        if found := pattern.search(reason):
            what = found.groupdict().get("what", "")
            text, advice = _words(name)
            return RefusalWords(text.replace("%s", what), advice)
    return RefusalWords(reason, "")


def _words(name: str) -> tuple[str, str]:
    return {
        "twelve": (
            _("This is a OneBot 12 client."),
            _("Set it to OneBot 11, or use a client that speaks OneBot 11."),
        ),
        "path": (
            _("It asked for the path %s, where there is no WebSocket."),
            _("The address ends in /ws/frostagent; copy it from this page."),
        ),
        "origin": (
            _("A page in a browser asked, from %s, and no client."),
            _("If that is meant, list the origin in WS_ALLOWED_ORIGINS in .env."),
        ),
        "unread": (
            _("The server was still starting."),
            _("Clients try again by themselves."),
        ),
        "none": (
            _("It showed no access token."),
            _("Paste the token into the client's token field, and save there."),
        ),
        "wrong": (
            _("It showed a wrong access token."),
            _("Copy the token from this page once more, in one piece, and save in the client."),
        ),
        "own": (
            _("Account %s has an access token of its own, and the client showed another one."),
            _("Enter that token in the client, or make a new one on the bot's page."),
        ),
        "common": (
            _("Account %s has no access token of its own, and the client showed one of another."),
            _("Enter the token of this page in the client."),
        ),
        "id": (
            _("It did not say for which QQ account it speaks (X-Self-ID is no number)."),
            _("Is this a OneBot 11 client, and is it signed in to QQ?"),
        ),
        "role": (
            _("It named a role that OneBot 11 does not know (X-Client-Role)."),
            _("Set it to universal, or leave the role out."),
        ),
    }[name]

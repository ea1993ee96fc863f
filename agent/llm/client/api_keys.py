"""The keys of one endpoint: used in turn, set aside when refused, and never shown."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import parse_qsl, urlsplit

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError
from agent.llm.errors.refusals import RefusalKind
from tools.secrets.masked import SecretMask

AGAIN_SECONDS = 3600.0
"""After which a key that was set aside is tried again: money may have been paid in."""
SHORTEST_SECRET = 6
"""Characters of a header's value that is hidden: to hide "1" would make words unreadable."""
SHORTEST_KEY = 12
"""Characters of a key of which parts are hidden too."""


class KeyRing:
    """``keys``, one after the other, each call beginning with the next one."""

    def __init__(self, keys: Iterable[str], clock: Callable[[], float] = time.monotonic) -> None:
        given = [key.strip() for key in keys]
        self._keys = [(place, key) for place, key in enumerate(given) if is_sendable(key)]
        self._has_bad = len(self._keys) < len(given)
        self._clock = clock
        self._begin = 0
        self._aside: dict[int, float] = {}

    def in_turn(self) -> Iterator[tuple[int, str]]:
        """The keys for one call with their places, in the order in which they are to be tried.

        Without keys there is one, "", at -1. Those set aside are not among them, unless all are.
        Raises :class:`LLMError` where no key can be sent.
        """
        keys = self._keys
        if len(keys) < 2:
            return iter(keys) if keys else iter([self._none()])
        begin, self._begin = self._begin, (self._begin + 1) % len(keys)
        turned = keys[begin:] + keys[:begin]
        if self._aside:
            now = self._clock()
            self._aside = {place: at for place, at in self._aside.items() if at > now}
            turned = [one for one in turned if one[0] not in self._aside] or turned
        return iter(turned)

    def set_aside(self, place: int) -> None:
        """Try the key at ``place`` last for a while: it was refused."""
        self._aside[place] = self._clock() + AGAIN_SECONDS

    def _none(self) -> tuple[int, str]:
        if not self._has_bad:
            return -1, ""
        error = LLMError(
            "the key holds a line break or another character that no key has: enter it again"
        )
        error.kind = RefusalKind.WRONG_KEY
        error.is_free = True
        raise error


def is_sendable(value: str) -> bool:
    """Whether ``value`` can stand in an HTTP header as it is: visible ASCII and spaces."""
    return value.isascii() and value.isprintable()


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise :class:`LLMError` where one of ``headers`` cannot be sent; its value is not told."""
    for name, value in headers.items():
        is_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
        if not is_name or not is_sendable(value):
            error = LLMError(
                f"the header {name[:100]!r} cannot be sent: names are letters, digits and dashes, "
                "values are ASCII without line breaks"
            )
            error.is_free = True
            raise error


class EndpointMask:
    """Hides the keys, headers and secrets in the address of ``endpoint``, which some endpoints
    repeat when they refuse them."""

    def __init__(self, endpoint: Endpoint) -> None:
        parts = urlsplit(endpoint.url)
        values = [value for _, value in parse_qsl(parts.query)] + list(endpoint.headers.values())
        secrets = {key.strip() for key in endpoint.keys} | {parts.password or ""}
        secrets |= {value for value in values if len(value) >= SHORTEST_SECRET}
        secrets |= {
            value.rpartition(" ")[2] for value in values if len(value) > 2 * SHORTEST_SECRET
        }
        self._whole = SecretMask(secrets, "***")
        shortened = [_shortened(key.strip()) for key in endpoint.keys if len(key) >= SHORTEST_KEY]
        self._shortened = re.compile("|".join(shortened)) if shortened else None

    def hide(self, text: str) -> str:
        text = self._whole.text(text)
        return self._shortened.sub("***", text) if self._shortened else text


def _shortened(key: str) -> str:
    """A pattern of ``key`` with its middle left out, as endpoints quote keys that they refuse:
    ``sk-ab***yz``, ``****fcc2`` (DeepSeek), ``sk-proj-…1234``."""
    begin = "|".join(re.escape(key[:count]) for count in range(len(key) // 2, 2, -1))
    end = "|".join(re.escape(key[-count:]) for count in range(len(key) // 2, 2, -1))
    gap = r"[*.•…xX]{1,100}"
    return f"(?:{begin}){gap}(?:{end})?|{gap}(?:{end})"

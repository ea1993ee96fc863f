"""Requests to one endpoint over HTTP, until one of them is answered.

What is tried again: 408, 409, 429, 5xx and lost connections, as long after each other as
Retry-After says or with exponential back-off (:mod:`agent.llm.client.transport`). A key that is
refused is set aside and the next one is used. A 404 at an address without a version is tried once
more with ``/v1``, and one that has moved on its host where it is now; what helps is kept.
"""

import asyncio
import email.utils
import math
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx2

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.answers.bounds import comes_in_events, is_plain, limit_answer, read_plain
from agent.llm.answers.reading import read_json, read_streamed
from agent.llm.client.connections import EndpointConnections
from agent.llm.errors.failures import FailedTry, lost_try, refused_try
from agent.llm.errors.refusals import RefusalKind, may_be_repeated
from tools.secrets.masked import SecretMask
from tools.token_bucket import RefillRate, TokenBucket


class EndpointNotices(Protocol):
    """Is told what a client found out. Every method is called on the loop and returns at once."""

    def learnt(self, endpoint: Endpoint, kind: str, words: str) -> None:
        """``endpoint`` refuses what ``kind`` (:class:`agent.llm.errors.refusals.RefusalKind`)
        names, as it said in ``words``; a request without that has succeeded."""
        ...

    def learnt_window(self, endpoint: Endpoint, tokens: int) -> None:
        """``endpoint`` said how many ``tokens`` its model's window has."""
        ...

    def key_refused(self, endpoint: Endpoint, key_index: int, words: str) -> None:
        """The key at ``key_index``, from 0 on, was refused in ``words``, and is set aside."""
        ...

    def factor(self, endpoint: Endpoint, factor: float) -> None:
        """``endpoint`` counts ``factor`` tokens for each that is estimated: keep that as
        ``token_factor``."""
        ...


class RequestPacer:
    """Lets requests through in the order in which they come: ``at_once`` at a time, and
    ``per_minute``; 0 is no limit.

    Waiting is limited by the time of the call that waits; a cancelled one leaves its place.
    """

    def __init__(self, at_once: int, per_minute: int) -> None:
        self._slots: AbstractAsyncContextManager[None] = (
            asyncio.Semaphore(at_once) if at_once > 0 else nullcontext()
        )
        rate = RefillRate(per_minute, 60 / per_minute) if per_minute > 0 else None
        self._bucket = TokenBucket(rate) if rate else None
        self._next = asyncio.Lock()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait until one more request may be made, and hold its place while it is."""
        return self._slots if self._bucket is None else self._turn(self._bucket)

    @asynccontextmanager
    async def _turn(self, bucket: TokenBucket) -> AsyncIterator[None]:
        async with self._slots:
            async with self._next:
                if seconds := bucket.wait_seconds():
                    await asyncio.sleep(seconds)
                bucket.take()
            yield


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
        self._keys = [(key_index, key) for key_index, key in enumerate(given) if is_sendable(key)]
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
            self._aside = {key_index: at for key_index, at in self._aside.items() if at > now}
            turned = [one for one in turned if one[0] not in self._aside] or turned
        return iter(turned)

    def set_aside(self, key_index: int) -> None:
        """Try the key at ``key_index`` last for a while: it was refused."""
        self._aside[key_index] = self._clock() + AGAIN_SECONDS

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


# Whether a failed request is made again, and when: the openai library's own rules. Pure but for
# clock and chance.
#
# https://developer.mozilla.org/en-US/docs/Web/HTTP/Reference/Headers/Retry-After

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds between tries if the endpoint names none: doubled with each try, and up to a quarter
less."""
PASSING = (408, 409, 429)
"""Statuses that may pass on the next try, apart from 500 and above."""
PASSING_KINDS = (RefusalKind.LIMITED, RefusalKind.DOWN, RefusalKind.OTHER)
"""What such a status may mean then: some endpoints say "no money" with the same one."""


class RetryPause(NamedTuple):
    """Seconds until the next try, and whether the endpoint named them."""

    seconds: float
    is_wished: bool = False


QUICK_PAUSE = 1.0
"""Seconds that are waited at most where another endpoint can be asked instead."""


def compute_retry_pause(failure: FailedTry, tries: int) -> RetryPause | None:
    """How long to wait after ``tries`` of which the last was ``failure``; None where another is of
    no use."""
    if failure.status:
        if not _may_pass(failure):
            return None
        if wish := parse_retry_after(failure.headers):
            return RetryPause(wish, is_wished=True)
    return RetryPause(
        min(FIRST_PAUSE * 2 ** (tries - 1), LONGEST_PAUSE) * (1 - 0.25 * random.random())  # noqa: S311 - jitter
    )


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """What ``Retry-After`` and its like say; None where they say nothing that can be waited for."""
    for name, divisor in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers[name]) / divisor
        except (KeyError, ValueError):
            continue
        return seconds if seconds > 0 else None
    try:
        seconds = (
            email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
            - time.time()
        )
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if seconds > 0 and math.isfinite(seconds) else None


def _may_pass(failure: FailedTry) -> bool:
    match failure.headers.get("x-should-retry"):
        case "true":
            return True
        case "false":
            return False
        case _:
            is_passing = failure.status in PASSING or failure.status >= 500
            return is_passing and failure.kind in PASSING_KINDS


#: Tries after the first one.
MAX_RETRIES = 3
LOST = (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError)
JSON = {"content-type": "application/json"}
KEY_KINDS = (RefusalKind.WRONG_KEY, RefusalKind.NO_MONEY)
_VERSION = re.compile(r"/v\d+\w*(/|\Z)")


class Patience(NamedTuple):
    """Until when an answer is awaited, by the loop's clock, and whether it is worth while to wait
    between tries: not where another endpoint can be asked."""

    deadline: float
    is_last: bool = True


class EndpointTransport:
    """One endpoint's connections, keys and limits."""

    def __init__(self, endpoint: Endpoint, notices: EndpointNotices | None = None) -> None:
        self.endpoint = endpoint
        self.notices = notices
        self.base, self._query = split_endpoint(endpoint.url)
        self.keys = KeyRing(endpoint.keys)
        self.hide = EndpointMask(endpoint).hide
        """Words without keys."""
        self.pacer = RequestPacer(endpoint.max_concurrent, endpoint.calls_per_minute)
        self.lost: tuple[type[Exception], ...] = LOST
        """What says that a request got no answer; of aiohttp once it is loaded."""
        self._connections: EndpointConnections | None = None
        self._opening = asyncio.Lock()
        self._urls: dict[str, str] = {}

    async def ask(
        self,
        path: str,
        content: Mapping[str, Any],
        patience: Patience,
        *,
        is_streamed: bool = False,
        sent: object = None,
    ) -> object:
        """The JSON that the endpoint answers at ``path``; ``content`` is what is asked, as an
        iterator of bytes or a function that makes them for each try, and ``headers`` that belong to
        it, in small letters; ``sent`` are the words in it, as any JSON: a refusal that may be their
        repetition is believed for this question alone.

        A streamed answer is put together. Raises :class:`LLMError`, whose words hide keys.
        """
        check_headers(self.endpoint.headers)
        try:
            return await _Asking(self, path, content, is_streamed, sent).answer(patience)
        except LLMError as error:
            error.args = (self.hide(str(error)),)
            raise

    async def connections(self) -> EndpointConnections:
        """The connections, which are none before the first request. That loads a library, so it is
        awaited before the time of a call begins."""
        if self._connections is None:
            # Many runs may come first at once, and each opening reads all certificates.
            async with self._opening:
                if self._connections is None:
                    self._connections = await EndpointConnections.open()
                    self.lost += (self._connections.error,)
        return self._connections

    def headers(self, usual: Mapping[str, str], key: str) -> dict[str, str]:
        """The ``usual`` ones of a question, in small letters, and those of one that is asked with
        ``key``."""
        headers = dict(usual)
        if key:
            headers["authorization"] = f"Bearer {key}"
        return headers | {name.lower(): value for name, value in self.endpoint.headers.items()}

    async def close(self) -> None:
        if self._connections is not None:
            await self._connections.close()

    def url(self, base: str, path: str) -> str:
        address = f"{base}{path}"
        if address not in self._urls:
            try:
                url = httpx2.URL(address).copy_merge_params(self._query)
            except httpx2.InvalidURL as error:
                raise LLMError(f"the address of the endpoint is none: {error}") from error
            self._urls[address] = str(url)
        return self._urls[address]


class _Asking:
    """One question, which may take several tries."""

    def __init__(
        self,
        transport: EndpointTransport,
        path: str,
        content: Mapping[str, Any],
        is_streamed: bool,
        sent: object,
    ) -> None:
        self._transport = transport
        self._sent = sent
        self._endpoint = transport.endpoint
        self._path = path
        self._content = content
        self._is_streamed = is_streamed
        self._base = transport.base
        self._keys = transport.keys.in_turn()
        self._key_index, self._key = next(self._keys)
        self._is_waiting = False
        self._may_cost = False

    async def answer(self, patience: Patience) -> object:
        loop = asyncio.get_running_loop()
        retries = MAX_RETRIES if patience.is_last else min(1, MAX_RETRIES)
        failure: FailedTry | None = None
        tries = 0
        while True:
            try:
                async with asyncio.timeout_at(patience.deadline):
                    answer = await self._try()
                self._transport.base = self._base
                return answer
            except TimeoutError as error:
                raise self._late(failure) from error
            except FailedTry as error:
                failure = error
                failure.is_repeated = may_be_repeated(failure.kind, failure.status, self._sent)
            if self._has_other_way(failure):
                continue
            tries += 1
            pause = compute_retry_pause(failure, tries) if tries <= retries else None
            if pause and not patience.is_last and pause.seconds > QUICK_PAUSE:
                pause = None
            if pause is None or pause.seconds > patience.deadline - loop.time():
                raise self._given_up(failure, pause) from failure
            await asyncio.sleep(pause.seconds)

    async def _try(self) -> object:
        self._is_waiting = True
        async with self._transport.pacer.turn():
            self._is_waiting = False
            try:
                return await self._send()
            except self._transport.lost as error:
                raise lost_try(error) from error

    async def _send(self) -> object:
        connections = await self._transport.connections()
        url = self._transport.url(self._base, self._path)
        usual = connections.headers | JSON | self._content.get("headers", {})
        headers = self._transport.headers(usual, self._key)
        body = self._content["content"]
        async with connections.ask(
            "POST", url, headers, body() if callable(body) else body
        ) as answer:
            if is_plain(answer, is_streamed=self._is_streamed):
                self._may_cost = True
                return await read_json(await read_plain(answer))
            response = limit_answer(answer)
            if not response.is_success:
                await response.aread()
                raise refused_try(response, response.text)
            self._may_cost = True
            if self._is_streamed or comes_in_events(response.headers):
                return await read_streamed(response, self._endpoint.piece_seconds)
            return await read_json(await response.aread())

    def _has_other_way(self, failure: FailedTry) -> bool:
        """Whether the question can be asked at once with another key, or at another address."""
        if failure.kind in KEY_KINDS and self._key_index >= 0:
            if not failure.is_repeated:
                self._set_aside(failure)
            return self._take_next_key()
        if failure.kind is RefusalKind.LIMITED:
            return self._take_next_key()
        if moved := self._moved_base(failure):
            self._base = moved
            return True
        is_other = failure.kind is RefusalKind.WRONG_ADDRESS and self._base == self._transport.base
        if is_other and not _VERSION.search(self._base):
            self._base += "/v1"
            return True
        return False

    def _moved_base(self, failure: FailedTry) -> str:
        """Where else at the same place the endpoint is, as the answer to the first try says."""
        target = failure.headers.get("location", "")
        if not (target and 300 < failure.status < 400 and self._base == self._transport.base):
            return ""
        here = httpx2.URL(self._transport.url(self._base, self._path))
        try:
            there = here.join(target).copy_with(query=None, fragment=None)
        except httpx2.InvalidURL:
            return ""
        moved = str(there).removesuffix(self._path)
        is_other = there.path.endswith(self._path) and moved != self._base
        return moved if is_other and _is_same_server(here, there) else ""

    def _set_aside(self, failure: FailedTry) -> None:
        self._transport.keys.set_aside(self._key_index)
        if notices := self._transport.notices:
            notices.key_refused(
                self._endpoint, self._key_index, self._transport.hide(failure.words)
            )

    def _take_next_key(self) -> bool:
        following = next(self._keys, None)
        if following is None:
            return False
        self._key_index, self._key = following
        return True

    def _late(self, failure: FailedTry | None) -> LLMTimeout:
        seconds = self._endpoint.timeout_seconds
        if self._is_waiting:
            error = LLMTimeout(
                f"it was not asked within {seconds:g} s: more calls are waiting than its limits "
                "(calls at once, calls a minute) let through"
            )
            error.kind, error.is_free = RefusalKind.LIMITED, True
            return error
        rest = f"; the try before: {failure.words}" if failure else ""
        error = LLMTimeout(f"no answer from the model within {seconds:g} s{rest}")
        error.kind = RefusalKind.DOWN
        return error

    def _given_up(self, failure: FailedTry, pause: RetryPause | None) -> LLMError:
        """Why it is not asked again: that is of no use, or ``pause`` is longer than the time
        left."""
        words = failure.words
        if failure.kind in KEY_KINDS and len(self._endpoint.keys) > 1:
            words = f"all its {len(self._endpoint.keys)} keys were refused; the last one: {words}"
        error = LLMError(words)
        if pause is not None and pause.is_wished:
            error = LLMTimeout(
                f"{words}; it wants to be asked again in {pause.seconds:g} s, "
                "longer than the time left"
            )
        elif pause is not None:
            error = LLMTimeout(f"{words}; there was no time left to ask again")
        error.kind, error.is_repeated = failure.kind, failure.is_repeated
        error.retry_seconds = parse_retry_after(failure.headers) or 0
        error.is_free = not self._may_cost
        return error


def _is_same_server(here: httpx2.URL, there: httpx2.URL) -> bool:
    """Whether the keys for ``here`` may be sent to ``there``: the same host and port, or its
    https."""
    is_upgrade = (here.scheme, there.scheme) == ("http", "https")
    is_usual = is_upgrade and here.port is None and there.port is None
    is_same = here.scheme == there.scheme and here.port == there.port
    return here.host == there.host and (is_same or is_usual)


def split_endpoint(endpoint: str) -> tuple[str, dict[str, str]]:
    """The base address and the query of ``endpoint``, with or without a trailing
    ``/chat/completions``."""
    parts = urlsplit(endpoint.strip())
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path, "", "")), dict(parse_qsl(parts.query))

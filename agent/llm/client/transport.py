"""Requests to one endpoint over HTTP, until one of them is answered.

What is tried again: 408, 409, 429, 5xx and lost connections, as long after each other as
Retry-After says or with exponential back-off (:mod:`agent.llm.client.retrying`). A key that is
refused is set aside and the next one is used. A 404 at an address without a version is tried once
more with ``/v1``, and one that has moved on its host where it is now; what helps is kept.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx2
from aiohttp import ClientError
from openai import DefaultAioHttpClient

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.answers.bounds import comes_in_events, limit_response
from agent.llm.answers.reading import read_json, read_streamed
from agent.llm.client.api_keys import EndpointMask, KeyRing, check_headers
from agent.llm.client.notices import EndpointNotices
from agent.llm.client.pacing import RequestPacer
from agent.llm.client.retrying import (
    QUICK_PAUSE,
    RetryPause,
    compute_retry_pause,
    parse_retry_after,
)
from agent.llm.errors.failures import FailedTry, lost_try, refused_try
from agent.llm.errors.refusals import RefusalKind, may_be_repeated

#: Tries after the first one.
MAX_RETRIES = 3
#: Connections to one endpoint, so that thousands of runs can wait for it at once.
CONNECTIONS = httpx2.Limits(max_connections=5_000, max_keepalive_connections=500)
AGENT = "FrostAgent"
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
        self._mask = EndpointMask(endpoint)
        self.pacer = RequestPacer(endpoint.max_concurrent, endpoint.calls_per_minute)
        self.http = DefaultAioHttpClient(
            limits=CONNECTIONS,
            timeout=endpoint.timeout_seconds,
            # It would turn the question into a GET, or take keys elsewhere; see _moved_base.
            follow_redirects=False,
            event_hooks={"response": [limit_response]},
            headers={"User-Agent": AGENT},
        )
        self._urls: dict[str, httpx2.URL] = {}

    async def ask(
        self,
        path: str,
        content: Mapping[str, Any],
        patience: Patience,
        *,
        is_streamed: bool = False,
        sent: object = None,
    ) -> object:
        """The JSON that the endpoint answers at ``path``; ``content`` are the arguments of
        ``httpx2.AsyncClient.build_request`` that hold it, ``sent`` the words in it, as any JSON: a
        refusal that may be their repetition is believed for this question alone.

        A streamed answer is put together. Raises :class:`LLMError`, whose words hide keys.
        """
        check_headers(self.endpoint.headers)
        try:
            return await _Asking(self, path, content, is_streamed, sent).answer(patience)
        except LLMError as error:
            error.args = (self.hide(str(error)),)
            raise

    def hide(self, words: str) -> str:
        """``words`` without keys."""
        return self._mask.hide(words)

    async def close(self) -> None:
        await self.http.aclose()

    def url(self, base: str, path: str) -> httpx2.URL:
        address = f"{base}{path}"
        if address not in self._urls:
            try:
                url = httpx2.URL(address).copy_merge_params(self._query)
            except httpx2.InvalidURL as error:
                raise LLMError(f"the address of the endpoint is none: {error}") from error
            self._urls[address] = url
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
        self._place, self._key = next(self._keys)
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
            except (httpx2.HTTPError, httpx2.InvalidURL, ClientError, OSError, ValueError) as error:
                raise lost_try(error) from error

    async def _send(self) -> object:
        http = self._transport.http
        headers = {"Content-Type": "application/json"} if "content" in self._content else {}
        headers |= self._content.get("headers", {})
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        headers |= self._endpoint.headers
        request = http.build_request(
            "POST",
            self._transport.url(self._base, self._path),
            **{**self._content, "headers": headers},
        )
        response = await http.send(request, stream=True)
        try:
            if not response.is_success:
                await response.aread()
                raise refused_try(response, response.text)
            self._may_cost = True
            if self._is_streamed or comes_in_events(response):
                return await read_streamed(response, self._endpoint.piece_seconds)
            return await read_json(response)
        finally:
            await response.aclose()

    def _has_other_way(self, failure: FailedTry) -> bool:
        """Whether the question can be asked at once with another key, or at another address."""
        if failure.kind in KEY_KINDS and self._place >= 0:
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
        here = self._transport.url(self._base, self._path)
        try:
            there = here.join(target).copy_with(query=None, fragment=None)
        except httpx2.InvalidURL:
            return ""
        moved = str(there).removesuffix(self._path)
        is_other = there.path.endswith(self._path) and moved != self._base
        return moved if is_other and _is_same_place(here, there) else ""

    def _set_aside(self, failure: FailedTry) -> None:
        self._transport.keys.set_aside(self._place)
        if notices := self._transport.notices:
            notices.key_refused(self._endpoint, self._place, self._transport.hide(failure.words))

    def _take_next_key(self) -> bool:
        following = next(self._keys, None)
        if following is None:
            return False
        self._place, self._key = following
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
        if failure.is_late:
            return self._late(None)
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


def _is_same_place(here: httpx2.URL, there: httpx2.URL) -> bool:
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

"""The model over HTTP: any OpenAI-compatible endpoint, through the openai library."""

import asyncio
import json
import math
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx2
from openai import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AsyncOpenAI,
    DefaultAioHttpClient,
    OpenAIError,
)

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.base import LLMRequest, LLMResponse
from agent.llm.bodies import RequestEncoder
from agent.llm.bounds import limit_response
from agent.llm.completion import parse_completion
from agent.llm.images import PictureLoader, encode_with_pictures, has_kept_pictures
from agent.llm.meter import estimate_tokens, meter, reported_tokens
from agent.llm.notices import EndpointNotices
from agent.llm.retrying import RetryPause, compute_retry_pause
from tools.text.storable import make_storable

#: Tries after the first one, on 408, 409, 429, 5xx and lost connections, as long after each
#: other as Retry-After says or with exponential back-off (:mod:`agent.llm.retrying`).
MAX_RETRIES = 3
#: Connections to one endpoint, so that thousands of runs can wait for it at once.
CONNECTIONS = httpx2.Limits(max_connections=5_000, max_keepalive_connections=500)
ERROR_EXCERPT = 500
#: Bytes of an answer from which on it is parsed in a thread, so that the event loop is not blocked.
LARGE_ANSWER = 256 * 2**10
#: Values in an answer, at most: each takes memory, however few bytes it is written in.
VALUES_LIMIT = 1_000_000


class OpenAIClient:
    """A chat-completions model behind ``endpoint``.

    The library's typed ``chat.completions.create`` costs 3 to 4 ms of CPU a call, most
    of it on rebuilding the request and the answer as typed objects; its documented
    ``post`` with aiohttp as transport costs 0.6 ms and keeps retries and errors.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        album: PictureLoader | None = None,
        notices: EndpointNotices | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.name = endpoint.model
        self._notices = notices
        self._bodies = RequestEncoder(endpoint.model)
        self._album = album
        self._api_key = api_key = endpoint.keys[0] if endpoint.keys else ""
        self._timeout_seconds = timeout_seconds = endpoint.timeout_seconds
        self._base_url, query = split_endpoint(endpoint.url)
        self._client = AsyncOpenAI(
            base_url=self._base_url,
            api_key=api_key or "none",
            default_query=query,
            default_headers=None if api_key else {"Authorization": ""},
            # the library would wait too long, and drop the errors of earlier tries
            max_retries=0,
            timeout=timeout_seconds,
            http_client=DefaultAioHttpClient(
                limits=CONNECTIONS,
                timeout=timeout_seconds,
                event_hooks={"response": [limit_response]},
            ),
        )

    async def complete(self, request: LLMRequest, *, is_last: bool = True) -> LLMResponse:
        """As :meth:`agent.llm.base.LLMClient.complete`. With ``is_last`` false another endpoint
        can be asked, so that it is not worth while to wait for this one."""
        try:
            answer = await self._asked(request)
        except (LLMError, asyncio.CancelledError) as error:
            if not (isinstance(error, LLMError) and error.is_free):
                meter.count(estimate_tokens(request, ""))
            raise
        return _read(answer, request)

    async def _asked(self, request: LLMRequest) -> object:
        if self._album is not None and has_kept_pictures(request.messages):
            content = await encode_with_pictures(
                request.messages,
                self._album,
                lambda messages: self._bodies.encode(messages, request.tools),
            )
            options = {"headers": {"Content-Length": str(content.size)}}
            return await self.post("/chat/completions", content=content, options=options)
        return await self.post(
            "/chat/completions", content=self._bodies.encode(request.messages, request.tools)
        )

    async def post(self, path: str, **request: Any) -> object:
        """The JSON that the endpoint answers to ``request``, which is the library's: ``body``,
        ``content``, ``files``, ``options``.

        Retries included, within the time of one model call. Raises :class:`LLMError`.
        """
        content = (await self._response(path, request)).content
        try:
            answer = (
                await asyncio.to_thread(_parsed, content)
                if len(content) > LARGE_ANSWER
                else _parsed(content)
            )
        except (ValueError, RecursionError) as error:
            excerpt = _excerpt(content[: 4 * ERROR_EXCERPT].decode(errors="replace"))
            raise LLMError(f"the answer is not JSON: {excerpt}") from error
        meter.count(reported_tokens(answer))
        return answer

    async def _response(self, path: str, request: dict[str, Any]) -> httpx2.Response:
        """The first answer that is no failure, whole."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout_seconds
        failure, tries = None, 0
        while True:
            tries += 1
            try:
                async with asyncio.timeout_at(deadline):
                    # The whole address: to join it with the base costs the library as much as to
                    # send a short request.
                    answer: httpx2.Response = await self._client.post(
                        f"{self._base_url}{path}", cast_to=httpx2.Response, **request
                    )
                    return answer
            except TimeoutError as error:
                raise self._timeout(
                    f"; the try before: {self._in_words(failure)}" if failure else ""
                ) from error
            except OpenAIError as error:
                failure = error
            pause = compute_retry_pause(failure, tries) if tries <= MAX_RETRIES else None
            if pause is None or pause.seconds > deadline - loop.time():
                raise self._given_up(failure, pause) from failure
            await asyncio.sleep(pause.seconds)

    async def close(self) -> None:
        await self._client.close()

    def _timeout(self, rest: str = "") -> LLMTimeout:
        return LLMTimeout(f"no answer from the model within {self._timeout_seconds:g} s{rest}")

    def _given_up(self, failure: OpenAIError, pause: RetryPause | None) -> LLMError:
        """Why it is not asked again: that is of no use, or ``pause`` is longer than the time
        left."""
        if _is_late(failure):
            return self._timeout()
        words = self._in_words(failure)
        error = LLMError(words)
        if pause is not None and pause.is_wished:
            error = LLMTimeout(
                f"{words}; it wants to be asked again in {pause.seconds:g} s, "
                "longer than the time left"
            )
        elif pause is not None:
            error = LLMTimeout(f"{words}; there was no time left to ask again")
        error.is_free = True
        return error

    def _in_words(self, failure: OpenAIError) -> str:
        """``failure`` without the key, which some endpoints repeat when they refuse it."""
        words = _in_words(failure)
        return words.replace(self._api_key, "***") if self._api_key else words


def _read(answer: object, request: LLMRequest) -> LLMResponse:
    """The completion in ``answer``. Its tokens are estimated if the endpoint does not report
    them."""
    text = ""
    try:
        response = parse_completion(answer)
        text = response.text
    finally:
        if not reported_tokens(answer):
            meter.count(estimate_tokens(request, text))
    return response


def split_endpoint(endpoint: str) -> tuple[str, dict[str, str]]:
    """The base address and the query of ``endpoint``, with or without a trailing
    ``/chat/completions``."""
    parts = urlsplit(endpoint)
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return urlunsplit((parts.scheme, parts.netloc, path, "", "")), dict(parse_qsl(parts.query))


def _is_late(error: OpenAIError) -> bool:
    # A refused connection comes as a time-out too: the transport calls every failure to connect so.
    return isinstance(error, APITimeoutError) and not isinstance(
        error.__cause__, httpx2.ConnectTimeout
    )


def _in_words(error: OpenAIError) -> str:
    match error:
        case APIStatusError():
            return f"the endpoint answered {error.status_code}: {_excerpt(error.response.text)}"
        case APIConnectionError():
            return f"the endpoint cannot be reached: {_excerpt(str(error.__cause__ or error))}"
        case _:
            return _excerpt(str(error))


def _excerpt(text: str) -> str:
    return " ".join(text.split())[:ERROR_EXCERPT]


def _parsed(content: bytes) -> object:
    """The JSON in ``content``, as a database can hold it. Raises ValueError, RecursionError or
    :class:`LLMError`."""
    if sum(map(content.count, (b",", b"[", b"{"))) > VALUES_LIMIT:
        raise LLMError(f"the answer holds more than {VALUES_LIMIT:,} values")
    return make_storable(json.loads(content, parse_constant=_no_number, parse_float=_finite))


def _no_number(_word: str) -> None:
    """NaN and the like, which some endpoints write where they are asked for nothing, and no
    database takes as JSON."""


def _finite(text: str) -> float | None:
    return number if math.isfinite(number := float(text)) else None

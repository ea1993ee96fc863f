"""The model over HTTP: any OpenAI-compatible endpoint, through the openai library."""

import asyncio
import json
import math
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx2
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, DefaultAioHttpClient, OpenAIError

from agent.errors import LLMError, LLMTimeout
from agent.llm.base import LLMRequest, LLMResponse
from agent.llm.bodies import Bodies
from agent.llm.completion import parse_completion
from agent.llm.pictures import Album, encoded, shows_kept
from tools.text import storable

#: Tries after the first one, on 408, 409, 429, 5xx and lost connections. The library
#: waits between them, as long as Retry-After says or with exponential back-off.
MAX_RETRIES = 3
#: Connections to one endpoint, so that thousands of runs can wait for it at once.
CONNECTIONS = httpx2.Limits(max_connections=5_000, max_keepalive_connections=500)
ERROR_EXCERPT = 500


class OpenAIClient:
    """A chat-completions model behind ``endpoint``.

    The library's typed ``chat.completions.create`` costs 3 to 4 ms of CPU a call, most
    of it on rebuilding the request and the answer as typed objects; its documented
    ``post`` with aiohttp as transport costs 0.6 ms and keeps retries and errors.
    """

    def __init__(self, endpoint: str, api_key: str, model: str, *, timeout_seconds: float, album: Album | None = None) -> None:
        self.name = model
        self._bodies = Bodies(model)
        self._album = album
        self._api_key = api_key
        self._timeout_seconds = timeout_seconds
        self._base_url, query = split_endpoint(endpoint)
        self._client = AsyncOpenAI(
            base_url=self._base_url,
            api_key=api_key or "none",
            default_query=query,
            default_headers=None if api_key else {"Authorization": ""},
            max_retries=MAX_RETRIES,
            timeout=timeout_seconds,
            http_client=DefaultAioHttpClient(limits=CONNECTIONS, timeout=timeout_seconds),
        )

    async def complete(self, request: LLMRequest) -> LLMResponse:
        if self._album is not None and shows_kept(request.messages):
            content = await encoded(request.messages, self._album, lambda messages: self._bodies.of(messages, request.tools))
            options = {"headers": {"Content-Length": str(content.size)}}
            return parse_completion(await self.post("/chat/completions", content=content, options=options))
        return parse_completion(await self.post("/chat/completions", content=self._bodies.of(request.messages, request.tools)))

    async def post(self, path: str, **request: Any) -> object:
        """The JSON that the endpoint answers to ``request``, which is the library's: ``body``, ``content``, ``files``, ``options``.

        Retries included, within the time of one model call. Raises :class:`LLMError`.
        """
        try:
            async with asyncio.timeout(self._timeout_seconds):
                # The whole address: to join it with the base costs the library as much as to send a short request.
                response = await self._client.post(f"{self._base_url}{path}", cast_to=httpx2.Response, **request)
        except (TimeoutError, OpenAIError) as error:
            raise self._failure(error) from error
        try:
            return storable(json.loads(response.content, parse_constant=_no_number, parse_float=_finite))
        except (ValueError, RecursionError) as error:
            raise LLMError(f"the answer is not JSON: {_excerpt(response.text)}") from error

    async def close(self) -> None:
        await self._client.close()

    def _failure(self, error: TimeoutError | OpenAIError) -> LLMError:
        # A refused connection comes as a time-out too: the transport calls every failure to connect so.
        is_late = isinstance(error, TimeoutError | APITimeoutError) and not isinstance(error.__cause__, httpx2.ConnectTimeout)
        if is_late:
            return LLMTimeout(f"no answer from the model within {self._timeout_seconds:g} s")
        return LLMError(self._blotted(_in_words(error)))

    def _blotted(self, text: str) -> str:
        """``text`` without the key, which some endpoints repeat when they refuse it."""
        return text.replace(self._api_key, "***") if self._api_key else text


def split_endpoint(endpoint: str) -> tuple[str, dict[str, str]]:
    """The base address and the query of ``endpoint``, with or without a trailing ``/chat/completions``."""
    parts = urlsplit(endpoint)
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return urlunsplit((parts.scheme, parts.netloc, path, "", "")), dict(parse_qsl(parts.query))


def _in_words(error: Exception) -> str:
    match error:
        case APIStatusError():
            return f"the endpoint answered {error.status_code}: {_excerpt(error.response.text)}"
        case APIConnectionError():
            return f"the endpoint cannot be reached: {_excerpt(str(error.__cause__ or error))}"
        case _:
            return _excerpt(str(error))


def _excerpt(text: str) -> str:
    return " ".join(text.split())[:ERROR_EXCERPT]


def _no_number(_word: str) -> None:
    """NaN and the like, which some endpoints write where they are asked for nothing, and no database takes as JSON."""


def _finite(text: str) -> float | None:
    return number if math.isfinite(number := float(text)) else None

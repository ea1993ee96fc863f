"""The models that an endpoint says it has: its ``/models``.

https://platform.openai.com/docs/api-reference/models/list; the window is named by vLLM
(``max_model_len``), OpenRouter and others (``context_length``) and 方舟 (``token_limits``).
"""

import asyncio
import difflib
import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.answers.bounds import AnswerTooLong, limit_answer
from agent.llm.client.transport import EndpointTransport, check_headers
from agent.llm.errors.failures import FailedTry, is_page, lost_try, refused_try, unusable_try
from agent.llm.errors.refusals import RefusalKind

MOST_MODELS = 10_000
LONGEST_NAME = 200
LIST_SECONDS = 20.0
_WINDOWS = ("context_length", "max_model_len", "context_window", "max_context_length")


class ListedModel(NamedTuple):
    """A model by the name that is sent; ``window`` in tokens, 0 where the list does not name it."""

    name: str
    window: int = 0


async def fetch_models(endpoint: Endpoint, seconds: float = LIST_SECONDS) -> list[ListedModel]:
    """The models that ``endpoint`` lists, in the order of their names, at most
    :data:`MOST_MODELS`.

    Asked once, with its first key. Raises :class:`LLMError`, whose ``kind`` says what is wrong
    (:class:`agent.llm.errors.refusals.RefusalKind`), and whose words hide keys.
    """
    transport = EndpointTransport(endpoint)
    seconds = min(seconds, endpoint.timeout_seconds)
    try:
        check_headers(endpoint.headers)
        async with asyncio.timeout(seconds):
            return parse_models(await _get(transport))
    except TimeoutError as error:
        late = LLMTimeout(f"no list of models within {seconds:g} s")
        late.kind = RefusalKind.DOWN
        raise late from error
    except FailedTry as failure:
        refused = LLMError(transport.hide(failure.words))
        refused.kind = failure.kind
        raise refused from failure
    finally:
        await transport.close()


async def _get(transport: EndpointTransport) -> str:
    """The body of the list; also at ``/v1``, where an address without a version has none."""
    try:
        return await _get_at(transport, transport.base)
    except FailedTry as failure:
        if failure.kind is not RefusalKind.WRONG_ADDRESS or transport.base.endswith("/v1"):
            raise
        try:
            return await _get_at(transport, f"{transport.base}/v1")
        except FailedTry:
            raise failure from None


async def _get_at(transport: EndpointTransport, base: str) -> str:
    connections = await transport.connections()
    _index, key = next(transport.keys.in_turn())
    usual = connections.headers | {"accept": "application/json"}
    headers = transport.headers(usual, key)
    try:
        async with connections.ask("GET", transport.url(base, "/models"), headers) as answer:
            response = limit_answer(answer)
            await response.aread()
    except transport.lost as error:
        raise lost_try(error) from error
    except AnswerTooLong as error:
        raise FailedTry(f"the list of models is too long: {error}") from error
    if not response.is_success:
        raise refused_try(response, response.text)
    if is_page(response.text):
        raise unusable_try(response.text)
    return response.text


def parse_models(text: str) -> list[ListedModel]:
    """The models in a list as endpoints give it. Raises :class:`LLMError` where it is none."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    entries = body
    if isinstance(body, dict):
        entries = next((body[key] for key in ("data", "models") if key in body), None)
    if not isinstance(entries, list):
        raise LLMError(f"what it answered is no list of models: {' '.join(text[:300].split())}")
    found: dict[str, ListedModel] = {}
    for model in _listed(entries):
        if len(found) < MOST_MODELS:
            found.setdefault(model.name, model)
    return sorted(found.values(), key=lambda model: model.name.lower())


def _listed(entries: list[object]) -> Iterator[ListedModel]:
    for entry in entries:
        fields = entry if isinstance(entry, dict) else {"id": entry}
        name = fields.get("id") or fields.get("name")
        if not isinstance(name, str) or not name.strip().isprintable():
            continue
        # Gemini lists "models/…", and takes both.
        name = name.strip().removeprefix("models/")
        if 0 < len(name) <= LONGEST_NAME:
            yield ListedModel(name, _window(fields))


def _window(fields: Mapping[str, object]) -> int:
    limits = fields.get("token_limits")
    named = [fields.get(key) for key in _WINDOWS]
    named.append(limits.get("context_window") if isinstance(limits, dict) else None)
    return next((n for n in named if type(n) is int and 256 <= n <= 100_000_000), 0)


def find_alike(name: str, models: list[ListedModel], count: int = 5) -> list[str]:
    """Names in ``models`` that may be meant by ``name``, the likeliest first."""
    lowered = {model.name.lower(): model.name for model in models}
    found = difflib.get_close_matches(name.lower(), lowered, n=count, cutoff=0.5)
    within = [low for low in lowered if name and name.lower() in low]
    return [lowered[low] for low in dict.fromkeys([*found, *within])][:count]

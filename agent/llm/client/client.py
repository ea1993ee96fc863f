"""The model over HTTP: one OpenAI-compatible endpoint.

A request is fitted to the model's window and put into the form that the endpoint takes
(:mod:`agent.llm.client.client`). When it is refused for its form or its length, it is
changed and asked again at once.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import httpx2

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError
from agent.llm.answers.completion import parse_completion
from agent.llm.client.transport import EndpointNotices, EndpointTransport, Patience
from agent.llm.errors.refusals import RefusalKind, find_window, texts_in
from agent.llm.requests.adapting import ANY_LENGTH, LEARNABLE, adapt, build_parameters
from agent.llm.requests.base import LLMRequest, LLMResponse, RequestEncoder, SentRequest
from agent.llm.requests.messages import (
    ChatMessage,
    PictureLoader,
    encode_with_pictures,
    has_kept_pictures,
    messages_for,
)
from agent.llm.requests.tokens import TokenScale, estimate_message_tokens, estimate_tools_tokens
from agent.llm.requests.window import drop_oldest_half, fit_window
from agent.llm.spending import (
    CallCost,
    Usage,
    compute_cost_nano,
    estimate_tokens,
    meter,
    read_usage,
)

ANSWER_ROOM = 4_096
"""Tokens of a window that are left for an answer where none are demanded."""
MOST_PER_BYTE = 0.8
"""Tokens that a byte of a request is at most, as :mod:`agent.llm.requests.tokens` weighs signs:
what fits even so is not estimated."""
MOVED = 0.1
"""Share by which a factor has to change to be told."""


@dataclass(eq=False)
class FormedRequest:
    """A request in the form in which it is sent to an endpoint. ``unsent`` is its body until it is
    sent: thousands of runs may wait for their answers, and none needs what was asked any more."""

    messages: list[ChatMessage]
    fitted: LLMRequest
    """What it was made of: no more than the window holds."""
    sent: SentRequest
    unsent: bytes | None
    encoder: RequestEncoder
    estimated: float = 0.0
    """Its tokens before any correction; 0 where they were not estimated."""

    @property
    def body(self) -> bytes:
        return self.unsent or self.encode(self.messages)

    def take_body(self) -> bytes:
        """The body, which is put together again where it is asked for once more."""
        body, self.unsent = self.body, None
        return body

    @property
    def is_streamed(self) -> bool:
        return bool(self.sent.parameters.get("stream"))

    @cached_property
    def tool_names(self) -> frozenset[str]:
        return frozenset(tool["name"] for tool in self.sent.tools)

    def encode(self, messages: Sequence[ChatMessage]) -> bytes:
        """The body with ``messages`` instead of its own."""
        return self.encoder.encode(messages, self.sent.tools)

    def estimate_usage(self, text: str) -> Usage:
        """What it took, if the answer was ``text`` and the endpoint reports nothing."""
        sent = estimate_tokens(LLMRequest(self.messages, self.sent.tools), "")
        return Usage(sent, 0, estimate_tokens(LLMRequest([]), text), 0)


class RequestFormer:
    """Forms the requests to ``endpoint``, and knows what was learnt of it."""

    def __init__(self, endpoint: Endpoint, notices: EndpointNotices | None) -> None:
        self._endpoint = endpoint
        self._notices = notices
        self.refuses = endpoint.refuses
        self._window = endpoint.window
        self._scale = TokenScale(endpoint.token_factor)
        self._told_factor = endpoint.token_factor
        self._encoders: dict[
            tuple[frozenset[str], bool], tuple[dict[str, object], RequestEncoder]
        ] = {}

    def form(self, request: LLMRequest, refuses: frozenset[str]) -> FormedRequest:
        """``request`` for an endpoint that ``refuses`` so much."""
        endpoint = self._endpoint
        offered = request.tools[: endpoint.max_tools] if endpoint.max_tools else request.tools
        own = plain = messages_for(endpoint, request.messages)
        messages, tools = adapt(own, offered, refuses)
        parameters, encoder = self._encoder(refuses, bool(tools))
        body = encoder.encode(messages, tools)
        estimated = 0.0
        if self._window and not self._surely_fits(messages, len(body), parameters):
            tools_tokens = estimate_tools_tokens(encoder.encode_tools(tools))
            estimated = tools_tokens + sum(map(estimate_message_tokens, messages))
            room = self._room(parameters) - self._scale.tokens(tools_tokens)
            if self._scale.tokens(estimated - tools_tokens) > room:
                own = fit_window(
                    own,
                    room=room,
                    count=lambda one: estimate_message_tokens(one) * self._scale.factor,
                    begin=request.begin,
                )
                begin = request.begin - len(plain) + len(own)
                request = replace(request, messages=own, begin=begin)
                messages, tools = adapt(own, offered, refuses)
                body = encoder.encode(messages, tools)
                estimated = tools_tokens + sum(map(estimate_message_tokens, messages))
        changed = None if messages is plain else messages
        sent = SentRequest(endpoint, tools, parameters, changed)
        return FormedRequest(messages, request, sent, body, encoder, estimated)

    def learn_window(self, words: str, sent: Sequence[ChatMessage]) -> bool:
        """Whether ``words``, in which a request was refused as too long, say that the window is
        smaller than was known. A number that stands in what was ``sent`` may be repeated from
        there."""
        window = find_window(words)
        if not window or (self._window and window >= self._window):
            return False
        if any(str(window) in text.replace(",", "") for text in texts_in([*sent])):
            return False
        self._window = window
        if self._notices:
            self._notices.learnt_window(self._endpoint, window)
        return True

    def shorten(self, request: LLMRequest, times: int) -> LLMRequest:
        """``request`` with half of its history so many ``times`` over, then shorter texts; the very
        same where nothing can be left out."""
        messages, begin = request.messages, request.begin
        for _ in range(times):
            shorter = drop_oldest_half(messages, begin)
            if shorter is None:
                break
            begin -= len(messages) - len(shorter)
            messages = shorter
        if messages is request.messages:
            return request
        return replace(request, messages=messages, begin=begin)

    def learn(self, kind: str, words: str) -> None:
        """Never again send what the endpoint refused in ``words``."""
        self.refuses |= {kind}
        if self._notices:
            self._notices.learnt(self._endpoint, kind, words)

    def correct(self, formed: FormedRequest, usage: Usage) -> None:
        """Learn from the ``usage`` that came back how the endpoint counts tokens."""
        if not formed.estimated or any(isinstance(m.get("content"), list) for m in formed.messages):
            return  # the tokens of pictures depend on their size
        self._scale.correct(formed.estimated, usage.input)
        factor = self._scale.factor
        if abs(factor - self._told_factor) > MOVED * self._told_factor:
            self._told_factor = factor
            if self._notices:
                self._notices.factor(self._endpoint, factor)

    def _encoder(
        self, refuses: frozenset[str], has_tools: bool
    ) -> tuple[dict[str, object], RequestEncoder]:
        found = self._encoders.get((refuses, has_tools))
        if found is None:
            parameters = build_parameters(self._endpoint, refuses, has_tools=has_tools)
            found = parameters, RequestEncoder(self._endpoint.model, parameters)
            self._encoders[refuses, has_tools] = found
        return found

    def _room(self, parameters: Mapping[str, object]) -> int:
        """Tokens of the window that a request may take."""
        wanted = parameters.get("max_tokens") or parameters.get("max_completion_tokens")
        answer = wanted if isinstance(wanted, int) else ANSWER_ROOM
        return self._window - min(answer, self._window // 2)

    def _surely_fits(
        self, messages: list[ChatMessage], size: int, parameters: Mapping[str, object]
    ) -> bool:
        """Whether ``messages`` in a body of ``size`` bytes fit by far, so that nothing has to be
        estimated."""
        is_small = size * MOST_PER_BYTE * self._scale.factor < self._room(parameters) / 2
        return is_small and not has_kept_pictures(messages)


CHAT_PATH = "/chat/completions"
MOST_CUTS = 6
"""Times that a request is made shorter because the endpoint says it is too long."""


class OpenAIClient:
    """A chat-completions model behind ``endpoint``.

    ``notices`` is told what is learnt of it.
    """

    is_demo = False

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        album: PictureLoader | None = None,
        notices: EndpointNotices | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.name = endpoint.model
        self._album = album
        self._former = RequestFormer(endpoint, notices)
        self._transport = EndpointTransport(endpoint, notices)

    async def complete(self, request: LLMRequest, *, is_last: bool = True) -> LLMResponse:
        """As :meth:`agent.llm.requests.base.LLMClient.complete`. With ``is_last`` false another
        endpoint can be asked, so that it is not worth while to wait for this one."""
        if request.was_asked:
            self._count(Usage(input=estimate_tokens(request, "")))
        await self._transport.connections()
        patience = self._patience(is_last)
        call = _Call(request, self._former.refuses)
        try:
            answer, formed = await self._settle(call, patience)
        except (LLMError, asyncio.CancelledError) as error:
            if not (isinstance(error, LLMError) and error.is_free):
                self._count(Usage(input=estimate_tokens(request, "")))
            raise
        return self._read(answer, formed, call.describe_sent(formed))

    async def _settle(self, call: "_Call", patience: Patience) -> tuple[object, FormedRequest]:
        """The answer to ``call``, asked again in other forms as long as that may help, and the form
        that was answered."""
        formed = self._former.form(call.request, call.refuses)
        while True:
            try:
                answer = await self._ask(formed, patience)
            except LLMError as error:
                error.sent = call.describe_sent(formed)
                following = self._change(call, formed, error)
                if following is None:
                    raise
                formed = following
            else:
                break
        for kind, words in call.learnt.items():
            self._former.learn(kind, words)
        return answer, formed

    def _change(
        self, call: "_Call", formed: FormedRequest, error: LLMError
    ) -> FormedRequest | None:
        """``call`` as it may be taken where the one ``formed`` was refused with ``error``; None
        where there is no other way."""
        if error.kind == RefusalKind.TOO_LONG:
            return self._shorten(call, formed, str(error))
        if error.kind not in LEARNABLE or error.kind in call.refuses:
            return None
        call.refuses |= {error.kind}
        if not error.is_repeated:
            call.learnt[error.kind] = str(error)
        following = self._former.form(call.request, call.refuses)
        return None if following.body == formed.body else following

    def _shorten(self, call: "_Call", formed: FormedRequest, words: str) -> FormedRequest | None:
        """``call`` in fewer tokens: fitted to the window that the endpoint names in ``words``, else
        with half of the history, less with each time, and at last with no wish for a long
        answer."""
        call.cuts += 1
        if call.cuts > MOST_CUTS:
            return None
        if self._former.learn_window(words, formed.messages):
            following = self._former.form(call.request, call.refuses)
            if following.body != formed.body:
                return following
        shorter = self._former.shorten(formed.fitted, 2 ** (call.cuts - 1))
        if shorter is formed.fitted or call.cuts == MOST_CUTS // 2:
            call.refuses |= {ANY_LENGTH}
        call.request = shorter
        following = self._former.form(shorter, call.refuses)
        return None if following.body == formed.body else following

    async def _ask(self, formed: FormedRequest, patience: Patience) -> object:
        content: dict[str, object] = {"content": formed.take_body}
        if self._album is not None and has_kept_pictures(formed.messages):
            body = await encode_with_pictures(formed.messages, self._album, formed.encode)
            content = {"content": body, "headers": {"content-length": str(body.size)}}
        return await self._transport.ask(
            CHAT_PATH,
            content,
            patience,
            is_streamed=formed.is_streamed,
            sent=formed.messages,
        )

    def _read(self, answer: object, formed: FormedRequest, sent: SentRequest) -> LLMResponse:
        """The completion in ``answer``. Its tokens are estimated if the endpoint does not report
        them."""
        endpoint = self.endpoint
        usage, text = read_usage(answer), ""
        try:
            response = parse_completion(
                answer,
                speaker=endpoint.speaker,
                offered=formed.tool_names,
                text_calls=endpoint.text_calls,
                usage=usage,
            )
            made = (call.name + call.arguments for call in response.tool_calls)
            text = "".join([response.text, response.reasoning, *made])
        except LLMError as error:
            error.sent, error.args = sent, (self._transport.hide(str(error)),)
            raise
        finally:
            if usage is None:
                usage = formed.estimate_usage(text)
            else:
                self._former.correct(formed, usage)
            cost = self._count(usage)
        return replace(
            response,
            input_tokens=usage.input,
            cached_tokens=usage.cached,
            output_tokens=usage.output,
            reasoning_tokens=usage.reasoning,
            cost_nano=cost,
            sent=sent,
        )

    async def post(self, path: str, **content: Any) -> object:
        """The JSON that the endpoint answers at ``path`` to ``content``, the arguments of
        ``httpx2.Request`` that hold it: ``json``, or ``data`` and ``files``.

        Retries included, within the time of one model call. Raises :class:`LLMError`.
        """
        await self._transport.connections()
        form = httpx2.Request("POST", "http://form", **content)
        headers = {name: form.headers[name] for name in ("content-length", "content-type")}
        answer = await self._transport.ask(
            path,
            {"content": form.stream, "headers": headers},
            self._patience(),
            sent=content.get("json"),
        )
        self._count(read_usage(answer) or Usage())
        return answer

    async def close(self) -> None:
        await self._transport.close()

    def _patience(self, is_last: bool = True) -> Patience:
        now = asyncio.get_running_loop().time()
        return Patience(now + self.endpoint.timeout_seconds, is_last)

    def _count(self, usage: Usage) -> int | None:
        """Put ``usage`` down as spent; what it cost."""
        endpoint = self.endpoint
        cost = compute_cost_nano(endpoint.prices, usage)
        currency = "" if cost is None else endpoint.prices.currency
        meter.count_call(CallCost(endpoint.pk, endpoint.label, *usage, cost or 0, currency))
        return cost


class _Call:
    """What became of a request so far: how it has to be asked, and why."""

    def __init__(self, request: LLMRequest, refuses: frozenset[str]) -> None:
        self.request = self.wanted = request
        self.refuses = refuses
        self.learnt: dict[str, str] = {}
        self.cuts = 0

    def describe_sent(self, formed: FormedRequest) -> SentRequest:
        """What was sent, with its messages where they are not those that were wanted."""
        if self.request is self.wanted:
            return formed.sent
        return replace(formed.sent, messages=formed.messages)

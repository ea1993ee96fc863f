"""A request as one endpoint takes it: fitted to its window, in its form, with its parameters."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from agent.domain.endpoint import Endpoint
from agent.llm.client.notices import EndpointNotices
from agent.llm.errors.complaints import texts_in
from agent.llm.errors.refusals import find_window
from agent.llm.requests.adapting import adapt, build_parameters
from agent.llm.requests.base import LLMRequest, SentRequest
from agent.llm.requests.bodies import RequestEncoder
from agent.llm.requests.images import has_kept_pictures
from agent.llm.requests.messages import ChatMessage
from agent.llm.requests.speakers import messages_for
from agent.llm.requests.tokens import TokenScale, estimate_message_tokens, estimate_tools_tokens
from agent.llm.requests.window import drop_oldest_half, fit_window
from agent.llm.spending.meter import estimate_tokens
from agent.llm.spending.usage import Usage

ANSWER_ROOM = 4_096
"""Tokens of a window that are left for an answer where none are demanded."""
MOST_PER_BYTE = 0.8
"""Tokens that a byte of a request is at most, as :mod:`agent.llm.requests.tokens` weighs signs:
what fits even so is not estimated."""
MOVED = 0.1
"""Share by which a factor has to change to be told."""


@dataclass(frozen=True, eq=False)
class FormedRequest:
    """A request in the form in which it is sent to ``endpoint``."""

    messages: list[ChatMessage]
    fitted: LLMRequest
    """What it was made of: no more than the window holds."""
    sent: SentRequest
    body: bytes
    encoder: RequestEncoder
    estimated: float = 0.0
    """Its tokens before any correction; 0 where they were not estimated."""

    @property
    def is_streamed(self) -> bool:
        return bool(self.sent.parameters.get("stream"))

    @cached_property
    def tool_names(self) -> frozenset[str]:
        return frozenset(tool["name"] for tool in self.sent.tools)

    def encode(self, messages: Sequence[ChatMessage]) -> bytes:
        """The body with ``messages`` instead of its own."""
        return self.encoder.encode(messages, self.sent.tools)

    def is_same(self, other: "FormedRequest") -> bool:
        return self.body == other.body

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
            tuple[frozenset[str], bool], tuple[dict[str, Any], RequestEncoder]
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
                own = self._fit(own, request.begin, room)
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
    ) -> tuple[dict[str, Any], RequestEncoder]:
        found = self._encoders.get((refuses, has_tools))
        if found is None:
            parameters = build_parameters(self._endpoint, refuses, has_tools=has_tools)
            found = parameters, RequestEncoder(self._endpoint.model, parameters)
            self._encoders[refuses, has_tools] = found
        return found

    def _room(self, parameters: dict[str, Any]) -> int:
        """Tokens of the window that a request may take."""
        wanted = parameters.get("max_tokens") or parameters.get("max_completion_tokens")
        answer = wanted if isinstance(wanted, int) else ANSWER_ROOM
        return self._window - min(answer, self._window // 2)

    def _surely_fits(
        self, messages: list[ChatMessage], size: int, parameters: dict[str, Any]
    ) -> bool:
        """Whether ``messages`` in a body of ``size`` bytes fit by far, so that nothing has to be
        estimated."""
        is_small = size * MOST_PER_BYTE * self._scale.factor < self._room(parameters) / 2
        return is_small and not has_kept_pictures(messages)

    def _fit(self, messages: list[ChatMessage], begin: int, room: int) -> list[ChatMessage]:
        scale = self._scale.factor

        def count(message: ChatMessage) -> float:
            return estimate_message_tokens(message) * scale

        return fit_window(messages, room=room, count=count, begin=begin)

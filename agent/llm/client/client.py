"""The model over HTTP: one OpenAI-compatible endpoint.

A request is fitted to the model's window and put into the form that the endpoint takes
(:mod:`agent.llm.client.request_forms`). When it is refused for its form or its length, it is
changed and asked again at once.
"""

import asyncio
from dataclasses import replace
from typing import Any, NoReturn

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError
from agent.llm.answers.completion import parse_completion
from agent.llm.client.notices import EndpointNotices
from agent.llm.client.request_forms import FormedRequest, RequestFormer
from agent.llm.client.transport import EndpointTransport, Patience
from agent.llm.errors.refusals import RefusalKind
from agent.llm.requests.adapting import ANY_LENGTH, LEARNABLE
from agent.llm.requests.base import LLMRequest, LLMResponse, SentRequest
from agent.llm.requests.images import PictureLoader, encode_with_pictures, has_kept_pictures
from agent.llm.spending.costs import compute_cost_nano
from agent.llm.spending.meter import CallCost, estimate_tokens, meter
from agent.llm.spending.usage import Usage, read_usage

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
        self._notices = notices
        self._former = RequestFormer(endpoint, notices)
        self._transport = EndpointTransport(endpoint, notices)

    async def complete(self, request: LLMRequest, *, is_last: bool = True) -> LLMResponse:
        """As :meth:`agent.llm.requests.base.LLMClient.complete`. With ``is_last`` false another
        endpoint can be asked, so that it is not worth while to wait for this one."""
        if request.was_asked:
            self._count(Usage(input=estimate_tokens(request, "")))
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
        return None if following.is_same(formed) else following

    def _shorten(self, call: "_Call", formed: FormedRequest, words: str) -> FormedRequest | None:
        """``call`` in fewer tokens: fitted to the window that the endpoint names in ``words``, else
        with half of the history, less with each time, and at last with no wish for a long
        answer."""
        call.cuts += 1
        if call.cuts > MOST_CUTS:
            return None
        if self._former.learn_window(words, formed.messages):
            following = self._former.form(call.request, call.refuses)
            if not following.is_same(formed):
                return following
        shorter = self._former.shorten(formed.fitted, 2 ** (call.cuts - 1))
        if shorter is formed.fitted or call.cuts == MOST_CUTS // 2:
            call.refuses |= {ANY_LENGTH}
        call.request = shorter
        following = self._former.form(shorter, call.refuses)
        return None if following.is_same(formed) else following

    async def _ask(self, formed: FormedRequest, patience: Patience) -> object:
        content: dict[str, Any] = {}
        if self._album is not None and has_kept_pictures(formed.messages):
            body = await encode_with_pictures(formed.messages, self._album, formed.encode)
            content = {"content": body, "headers": {"Content-Length": str(body.size)}}
        else:
            content = {"content": formed.body}
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
            )
            made = (call.name + call.arguments for call in response.tool_calls)
            text = "".join([response.text, response.reasoning, *made])
        except LLMError as error:
            error.sent = sent
            self._hide(error)
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

    def _hide(self, error: LLMError) -> NoReturn:
        error.args = (self._transport.hide(str(error)),)
        raise error

    async def post(self, path: str, **content: Any) -> object:
        """The JSON that the endpoint answers at ``path`` to ``content``, the arguments of
        ``httpx2.AsyncClient.build_request`` that hold it: ``json``, or ``data`` and ``files``.

        Retries included, within the time of one model call. Raises :class:`LLMError`.
        """
        answer = await self._transport.ask(
            path, content, self._patience(), sent=content.get("json")
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

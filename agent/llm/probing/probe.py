"""Trying an endpoint out: questions that show whether it does what its row says.

A chat model is asked for what only a tool knows, is sent what the tool says, and has to repeat it;
where it sees, it is shown a picture of one colour. What embeds is given two words, what transcribes
half a second of a tone.
"""

import asyncio
import base64
import io
import math
import secrets
import struct
import time
import wave
import zlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from django.utils.translation import gettext as _

from agent.domain.endpoint import Ability, Endpoint
from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.client.client import OpenAIClient
from agent.llm.endpoints.embeddings import Embedder
from agent.llm.endpoints.transcription import Transcriber
from agent.llm.errors.error_words import explain_fault, name_fault
from agent.llm.errors.refusals import RefusalKind
from agent.llm.requests.base import LLMRequest, LLMResponse
from agent.llm.requests.messages import ChatMessage
from tools.findings import Finding, FindingLevel, fail_finding, ok_finding, warn_finding

T = TypeVar("T")

#: Seconds for one question, and for all of them.
QUESTION_SECONDS, PROBE_SECONDS = 90.0, 180.0
SAID_CHARS = 500
TOOL_NAME = "read_meter"
TOOL_QUESTION = (
    "What does the meter show at this moment? Find out with the tool read_meter, and answer with "
    "the number alone. 请调用工具 read_meter 读取电表，然后只回答读数。"
)
PLAIN_QUESTION = "Reply with the word OK."
PICTURE_QUESTION = (
    "Which colour is this picture? Answer with one of: red, green, blue, yellow. 只回答颜色。"
)
PROBE_TOOL: dict[str, object] = {
    "name": TOOL_NAME,
    "description": "Reads the meter and returns the number that it shows now. 读取电表。",
}
COLOURS = {
    (230, 0, 0): ("red", "红"),
    (0, 160, 0): ("green", "绿"),
    (0, 0, 230): ("blue", "蓝"),
    (250, 230, 0): ("yellow", "黄"),
}


@dataclass(frozen=True, slots=True)
class ProbedCall:
    """One question and its answer. ``what``: ``question``, ``result``, ``picture``, ``embedding``,
    ``sound`` or ``chat``."""

    what: str
    seconds: float
    response: LLMResponse | None = None
    messages: tuple[ChatMessage, ...] = ()
    """What is new in it; the record keeps it."""
    has_tool: bool = False
    error: LLMError | None = None


@dataclass(slots=True)
class ProbeReport:
    """What came of it. Of what was not asked, or not answered, it says None."""

    endpoint: Endpoint
    calls: list[ProbedCall] = field(default_factory=list)
    fault: str = ""
    """Why it ended early: what :func:`agent.llm.errors.error_words.name_fault` calls it."""
    fault_at: str = ""
    """The question that failed, as :attr:`ProbedCall.what`."""
    words: str = ""
    """What the endpoint said to that."""
    said: str = ""
    """The last text."""
    has_called: bool | None = None
    is_text_call: bool = False
    """The call stood in the text of the answer."""
    has_used_result: bool | None = None
    has_seen: bool | None = None
    learnt: dict[str, str] = field(default_factory=dict)
    window: int = 0
    """Tokens of the window that the endpoint named; 0: it named none."""
    refused_keys: dict[int, str] = field(default_factory=dict)

    failed: ProbedCall | None = None
    """The question that was not answered."""

    @property
    def works(self) -> bool:
        """Whether it did all that its row says."""
        asked = (self.has_called, self.has_used_result, self.has_seen)
        return not self.fault and False not in asked

    @property
    def answers(self) -> bool:
        """Whether it answered what was asked first."""
        return bool(self.calls)


class _Notices:
    """Writes what a client learns into ``report``."""

    def __init__(self, report: ProbeReport) -> None:
        self._report = report

    def learnt(self, endpoint: Endpoint, kind: str, words: str) -> None:
        self._report.learnt[kind] = words

    def learnt_window(self, endpoint: Endpoint, tokens: int) -> None:
        self._report.window = tokens

    def key_refused(self, endpoint: Endpoint, key_index: int, words: str) -> None:
        self._report.refused_keys[key_index] = words

    def factor(self, endpoint: Endpoint, factor: float) -> None:
        """Too little was said to count from."""


async def probe_endpoint(
    endpoint: Endpoint,
    *,
    question_seconds: float = QUESTION_SECONDS,
    seconds: float = PROBE_SECONDS,
) -> ProbeReport:
    """Ask ``endpoint`` what its row says that it can do; about ``seconds`` at most.

    Never raises but for cancellation, after which the endpoint may still finish its work. The calls
    are paid and counted as any others.
    """
    report = ProbeReport(endpoint)
    limit = min(endpoint.timeout_seconds, question_seconds)
    client = OpenAIClient(replace(endpoint, timeout_seconds=limit), notices=_Notices(report))
    probe = _Probe(client, report)
    try:
        async with asyncio.timeout(seconds):
            await probe.run()
    except TimeoutError:
        report.fault = name_fault(LLMTimeout())
        report.words = report.words or f"the test took longer than {seconds:g} s"
    except LLMError as error:
        report.fault, report.words = name_fault(error), str(error)
    finally:
        await client.close()
    return report


class _Probe:
    def __init__(self, client: OpenAIClient, report: ProbeReport) -> None:
        self._client = client
        self._report = report

    async def run(self) -> None:
        abilities = self._report.endpoint.abilities
        if Ability.CHAT in abilities and Ability.TOOLS in abilities:
            await self._ask_with_tool()
        elif Ability.CHAT in abilities:
            await self._chat("chat", [_user(PLAIN_QUESTION)])
        if Ability.SEE in abilities:
            await self._show_picture()
        if Ability.EMBED in abilities:
            await self._timed("embedding", lambda: Embedder(self._client).embed(["cat", "猫"]))
        if Ability.TRANSCRIBE in abilities:
            sound = make_tone()
            await self._timed(
                "sound", lambda: Transcriber(self._client).transcribe(sound, "wav", "audio/wav")
            )

    async def _ask_with_tool(self) -> None:
        report = self._report
        number = str(secrets.randbelow(90_000) + 10_000)
        messages: list[ChatMessage] = [_user(TOOL_QUESTION)]
        first = await self._chat("question", messages, [PROBE_TOOL])
        calls = first.tool_calls
        report.has_called = any(call.name == TOOL_NAME for call in calls)
        if RefusalKind.NO_TOOLS in report.learnt:
            report.fault, report.fault_at = RefusalKind.NO_TOOLS, "question"
            report.words = report.learnt[RefusalKind.NO_TOOLS]
            return
        if not report.has_called:
            return
        report.is_text_call = not first.recorded_message.get("tool_calls")
        shown = {"role": "tool", "content": f"The meter shows {number}."}
        messages += [first.message, *({**shown, "tool_call_id": call.call_id} for call in calls)]
        second = await self._chat("result", messages, [PROBE_TOOL], new=messages[1:])
        report.has_used_result = number in second.text.replace(",", "").replace(" ", "")

    async def _show_picture(self) -> None:
        colour = secrets.choice(list(COLOURS))
        url = f"data:image/png;base64,{base64.b64encode(make_picture(colour)).decode()}"
        parts = [
            {"type": "text", "text": PICTURE_QUESTION},
            {"type": "image_url", "image_url": {"url": url}},
        ]
        answer = await self._chat("picture", [{"role": "user", "content": parts}])
        said = answer.text.lower()
        named = {one for one, words in COLOURS.items() if any(word in said for word in words)}
        self._report.has_seen = named == {colour}

    async def _chat(
        self,
        what: str,
        messages: list[ChatMessage],
        tools: list[dict[str, object]] | None = None,
        new: list[ChatMessage] | None = None,
    ) -> LLMResponse:
        request = LLMRequest(list(messages), tools or [], begin=0)
        call = ProbedCall(what, 0.0, messages=tuple(new or messages), has_tool=bool(tools))
        answer = await self._timed(
            what, lambda: self._client.complete(request, is_last=False), call
        )
        self._report.said = answer.text[:SAID_CHARS]
        return answer

    async def _timed(
        self, what: str, ask: Callable[[], Awaitable[T]], call: ProbedCall | None = None
    ) -> T:
        report, began = self._report, time.monotonic()
        call = call or ProbedCall(what, 0.0)
        report.fault_at = what
        try:
            answer = await ask()
        except LLMError as error:
            report.failed = replace(call, seconds=time.monotonic() - began, error=error)
            raise
        response = answer if isinstance(answer, LLMResponse) else None
        report.calls.append(replace(call, seconds=time.monotonic() - began, response=response))
        report.fault_at = ""
        return answer


def _user(text: str) -> ChatMessage:
    return {"role": "user", "content": text}


def make_picture(colour: tuple[int, int, int], side: int = 128) -> bytes:
    """A square of one ``colour``, as PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    rows = (b"\0" + bytes(colour) * side) * side
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def make_tone(seconds: float = 0.5, rate: int = 16_000) -> bytes:
    """A quiet tone of 440 Hz, as WAV."""
    samples = (
        round(6_000 * math.sin(2 * math.pi * 440 * n / rate)) for n in range(int(seconds * rate))
    )
    made = io.BytesIO()
    with wave.open(made, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))
    return made.getvalue()


def describe_probe(report: ProbeReport) -> list[Finding]:
    """What ``report`` shows, the worst first. No line holds what the endpoint said."""
    lines = [*_fault(report), *_tools(report), *_picture(report), *_others(report)]
    return sorted(lines, key=lambda line: list(FindingLevel).index(line.level), reverse=True)


def question_words(what: str) -> str:
    """What people call the question :attr:`agent.llm.probing.probe.ProbedCall.what`."""
    return {
        "question": _("question with a tool"),
        "result": _("the tool's result"),
        "picture": _("picture"),
        "embedding": _("two words to compare"),
        "sound": _("half a second of sound"),
        "chat": _("question"),
    }.get(what, what)


def _fault(report: ProbeReport) -> Iterator[Finding]:
    if not report.fault:
        return
    told = explain_fault(report.fault)
    if report.fault_at == "result":
        yield fail_finding(
            _("It called the tool, and then refused the tool's result: %s") % told.sentence,
            _(
                "Answers that need a tool will fail. Choose another model, set thinking otherwise, "
                "or choose the right provider above, so that it is sent back what it said."
            ),
        )
    elif report.fault_at and report.fault_at != "question" and report.answers:
        words = _("%(question)s: %(fault)s")
        values = {"question": question_words(report.fault_at), "fault": told.sentence}
        yield fail_finding(words % values, told.advice)
    else:
        yield fail_finding(told.sentence, told.advice)


def _tools(report: ProbeReport) -> Iterator[Finding]:
    if report.has_called is False and not report.fault:
        yield warn_finding(
            _("It answered, but did not call the tool that it was told to call."),
            _(
                "Tools will hardly work with it. Small models often cannot; a local server may "
                "need a switch (vLLM: --enable-auto-tool-choice; llama.cpp: --jinja)."
            ),
        )
    if report.has_called and report.is_text_call:
        yield ok_finding(_("It called the tool, as text; that is understood."))
    elif report.has_called:
        yield ok_finding(_("It called the tool."))
    if report.has_used_result:
        yield ok_finding(_("It took the tool's result, and used it in its answer."))
    elif report.has_used_result is False:
        yield warn_finding(
            _("It took the tool's result, but its answer does not hold the number."),
            _("Answers with tools may be wrong: a larger model does better."),
        )


def _picture(report: ProbeReport) -> Iterator[Finding]:
    if report.has_seen:
        yield ok_finding(_("It saw the colour of a picture."))
    elif report.has_seen is False:
        yield warn_finding(
            _("It took a picture, but did not tell its colour."),
            _("Does the model really see? Else take away the mark “sees pictures”."),
        )


def _others(report: ProbeReport) -> Iterator[Finding]:
    asked = {call.what for call in report.calls}
    if "chat" in asked:
        yield ok_finding(_("It answered."))
    if "embedding" in asked:
        yield ok_finding(_("It embeds."))
    if "sound" in asked:
        yield ok_finding(_("It transcribes."))
    if len(report.refused_keys) < len(report.endpoint.keys) and report.refused_keys:
        numbers = ", ".join(str(index + 1) for index in sorted(report.refused_keys))
        yield warn_finding(
            _("Keys that it refused: %s") % numbers, _("Replace them, or delete them.")
        )
    if report.endpoint.abilities == frozenset({Ability.THINK}) or not report.endpoint.abilities:
        yield warn_finding(
            _("Nothing is marked that it can do, so it was asked nothing."), _("Mark it.")
        )

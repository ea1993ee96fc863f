"""What is wrong with an answer without tool calls, and what the run makes of it. Pure.

A faulty answer is asked for once more, on record; what comes then is mended or given up, so that
the chat never gets what no person should read, nor a silence that nobody decided.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Sequence
from enum import Enum
from typing import NamedTuple

from django.utils.translation import gettext_noop

from agent.llm.answers.completion import describe_empty_response, is_empty_response
from agent.llm.answers.repetition import cut_repetition, is_repeating
from agent.llm.answers.sentences import end_at_sentence
from agent.llm.answers.text_calls import looks_like_calls
from agent.llm.requests.base import LLMResponse
from agent.llm.requests.messages import ChatMessage

CUT_SHORT = gettext_noop("The answer was cut short at the model's own limit.")
ENDED = gettext_noop("The model's own limit cut the answer; it was ended at a sentence.")
FILTERED = gettext_noop("The endpoint's content filter cut the answer.")
MARKS_DROPPED = gettext_noop("Tool calls that the model wrote into its answer were dropped.")
REPETITION_CUT = gettext_noop("The answer repeated itself and was cut there.")
MARKS = gettext_noop("the model wrote tool calls as text that could not be read")
REPEATING = gettext_noop("the answer repeats itself")
USE_TOOL_CALLS = (
    "（系统提示）上一条回答把工具调用写成了文字，没有执行，用户也看不到。"
    "需要工具时，请用接口的 tool calls 调用；不需要时，请直接回答用户。"
)
#: What may be left of a call in the lines before its first mark.
_OPENING = re.compile(r"<[^<>\n]{0,80}>|\[TOOL_CALLS\]|```\w*")


class AnswerFault(Enum):
    """Why an answer is asked for once more."""

    NOTHING = "nothing"
    MARKS = "marks"
    """It holds marks of tool calls that could not be read."""
    REPEATING = "repeating"


class FinalAnswer(NamedTuple):
    """The text for the chat, and remarks for readers of the record."""

    text: str
    notes: tuple[str, ...] = ()


def find_fault(response: LLMResponse) -> AnswerFault | None:
    """What is wrong with an answer; None for a good one, and for one that calls tools."""
    if response.tool_calls:
        return None
    if is_empty_response(response):
        return AnswerFault.NOTHING
    if looks_like_calls(response.text):
        return AnswerFault.MARKS
    return AnswerFault.REPEATING if is_repeating(response.text) else None


def is_sayable(text: str) -> bool:
    """Whether what a model wrote beside its calls may be said in a chat."""
    return bool(text.strip()) and not (looks_like_calls(text) or is_repeating(text))


def describe_fault(fault: AnswerFault, response: LLMResponse) -> str:
    """The fault in words, for the record."""
    match fault:
        case AnswerFault.NOTHING:
            return describe_empty_response(response)
        case AnswerFault.MARKS:
            return MARKS
        case AnswerFault.REPEATING:
            return REPEATING


def build_correction(fault: AnswerFault, response: LLMResponse) -> list[ChatMessage]:
    """What the model is told when it is asked once more: nothing, where the same request may well
    come out better."""
    if fault is not AnswerFault.MARKS:
        return []
    return [response.message, {"role": "user", "content": USE_TOOL_CALLS}]


def was_asked_again(fault: AnswerFault, faults: Sequence[AnswerFault | None]) -> bool:
    """Whether the run has asked once more for the like of ``fault``; ``faults`` are those of its
    answers so far.

    Nothing counts in a row, the others once a run: a model that was told has been told.
    """
    return faults[-1] is fault if fault is AnswerFault.NOTHING and faults else fault in faults


def mend(response: LLMResponse) -> FinalAnswer:
    """``response`` as it may be said in a chat: without marks of calls and repetition, and ended at
    a sentence where it was cut. The text may be empty then."""
    text = response.text
    notes: list[str] = []
    if looks_like_calls(text):
        text = _drop_marks(text)
        notes.append(MARKS_DROPPED)
    if is_repeating(text):
        text = cut_repetition(text)
        notes.append(REPETITION_CUT)
    elif response.finish_reason == "length" and text.strip():
        whole = text.rstrip()
        text = end_at_sentence(text)
        notes.append(ENDED if len(text) < len(whole) else CUT_SHORT)
    elif response.finish_reason == "content_filter" and text.strip():
        notes.append(FILTERED)
    return FinalAnswer(text, tuple(notes))


def _drop_marks(text: str) -> str:
    """The lines before the first mark of a call."""
    lines = text.splitlines()
    begin = bisect_left(
        range(1, len(lines) + 1),
        True,
        key=lambda count: looks_like_calls("\n".join(lines[:count])),
    )
    kept = lines[:begin]
    while kept and not any(map(str.isalnum, _OPENING.sub("", kept[-1]))):
        kept.pop()
    return "\n".join(kept)


def only_repeats(text: str, said: Collection[str]) -> bool:
    """Whether ``text`` says no more than ``said``, the messages that were sent before it.

    Letters and digits are compared, line by line and as a whole.
    """
    if not said:
        return False
    lines = _normal_lines([text])
    whole, spoken = _normal(text), [_normal(one) for one in said]
    return bool(lines) and (lines <= _normal_lines(said) or whole == "".join(spoken))


def _normal_lines(texts: Collection[str]) -> set[str]:
    return {normal for one in texts for line in one.splitlines() if (normal := _normal(line))}


def _normal(text: str) -> str:
    """``text`` without its signs and spaces; all of it where it has nothing else."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, folded)) or folded.strip()

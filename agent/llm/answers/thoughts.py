"""What a model says to itself within the text of its answer. Pure; linear time.

Servers that know a model split its thoughts off (``reasoning_content``). Others leave the marks
in the text, and nobody in a chat may read what stands between them.
"""

import re
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from agent.llm.answers.sentences import CODE, ENDS_SENTENCE, code_end, prose_parts

_HEADER = re.compile(
    r"(?=<\|start\|>|<\|channel\|>)(?:<\|start\|>\s{0,9}assistant(?P<role>[^<]{0,200}))?"
    r"(?:<\|channel\|>\s{0,9}(?P<channel>\w{0,20})(?P<rest>[^<]{0,200}))?"
    r"(?:<\|constrain\|>[^<]{0,100})?(?:<\|message\|>|(?:(?<=analysis)|(?<=final))\Z)"
)
_END = re.compile(r"<\|(?:end|return|call)\|>")
_SHOWN = {"final", "commentary", None}
#: What is left of the marks when a server drops the special tokens and keeps their words.
_THINKS, _SAYS = "analysis", "assistantfinal"


def split_channels(text: str) -> tuple[str, list[str]]:
    """``text`` without what its channels hide, and that, in order.

    Calls stay as they are, for :mod:`agent.llm.answers.text_calls`. What stands before the first
    header and is closed by ``<|end|>`` are thoughts whose header was in the prompt. A header in
    code is prose, and so is all after it.
    """
    if text.startswith(_THINKS) and _SAYS in text:
        thought, _, answer = text.removeprefix(_THINKS).rpartition(_SAYS)
        return answer, [thought]
    if "<|channel|>" not in text:
        return text, []
    headers = list(_HEADER.finditer(text))
    first = headers[0].start() if headers else -1
    if not any(start <= first < end for start, end in prose_parts(text)):
        return text, []
    lead = text[:first]
    ended = _END.search(lead)
    said = [] if ended else [lead]
    thoughts = [lead[: ended.start()]] if ended else []
    starts = [*(header.start() for header in headers[1:]), len(text)]
    for header, limit in zip(headers, starts, strict=True):
        end = _END.search(text, header.end(), limit)
        body = text[header.end() : end.start() if end else limit]
        if "to=" in f"{header['role']}{header['rest']}":  # a call
            said.append(text[header.start() : end.end() if end else limit])
        else:
            (said if header["channel"] in _SHOWN else thoughts).append(body)
        said.append(text[end.end() : limit] if end else "")
    return "".join(said), thoughts


#: ``<think>`` and its relatives; ``seed:`` and ``mm:`` stand before it in Seed-OSS and MiniMax-M3.
_NAME = r"(?:\w{1,12}:)?(?:redacted_)?(?:think(?:ing)?|thoughts?|reasoning)"
_OPENING = "|".join((
    rf"<{_NAME}(?:\s[^<>\n]{{0,200}})?>",
    r"(?-i:\[THINK\])",  # Mistral
    r"◁think▷",  # Kimi-VL
    r"<\|(?:begin_of_thought|START_THINKING|inner_prefix)\|>",  # OpenThinker, Command A, Apertus
    r"<\|channel>(?:thought\b)?",  # Gemma 4
    r"<\|open\|>think<\|sep\|>",  # Kimi K3
))  # fmt: skip
_CLOSING = "|".join((
    rf"</{_NAME}\s?>",
    r"(?-i:\[/THINK\])",
    r"◁/think▷",
    r"<\|(?:end_of_thought|END_THINKING|inner_suffix)\|>",
    r"<channel\|>",
    r"<\|close\|>think<\|sep\|>",
))  # fmt: skip
_FLAGS = re.IGNORECASE | re.MULTILINE
_TOKEN = re.compile(rf"{CODE}|(?P<closing>{_CLOSING})|(?:{_OPENING})", _FLAGS)
_CLOSING_TAG = re.compile(_CLOSING, _FLAGS)
_CLOSING_LINE = re.compile(rf"^[ \t]*(?:{_CLOSING})", _FLAGS)
_LINE_END = re.compile(r"[ \t\r]*(?:\n|\Z)")
#: All that may stand before an opening tag, so that only one search of many can be in vain.
_SENTENCE = re.compile(r"[。！？!?….\n]")
_NOTHING_LEFT = re.compile(r"\s*\Z")
#: A model that forgets to end its thoughts goes on to its calls: Qwen 3.5, GLM 4.5, Kimi K2.
_CALL = re.compile(
    r"^[ \t]*(?:<tool_call>|<\|tool_calls_section_begin\|>|<｜tool▁calls▁begin｜>|<｜DSML｜)",
    re.MULTILINE,
)
#: Marks around the answer that follows the thoughts: Hunyuan, Command A, Kimi K3.
_WRAPPERS = re.compile(
    r"\A</?(?:answer|response)>|</(?:answer|response)>\Z"
    r"|<\|(?:START|END)_RESPONSE\|>|<\|(?:open|close)\|>(?:response|message)<\|sep\|>"
)


class SplitText(NamedTuple):
    """What a model says, and what it only thinks."""

    text: str
    thoughts: str


class _Tag(NamedTuple):
    start: int
    end: int
    closes: bool
    begins_line: bool
    after_sentence: bool


def split_thoughts(text: str) -> SplitText:
    """``text`` without its thoughts, and the thoughts. A text without any comes back as it is.

    Tags in code fences and between backticks are prose. Any closing tag ends what any opening tag
    began, for models mix them up. Elsewhere

    * an opening tag counts at the beginning of the text, of a line (a quote's ``>`` may stand
      before it) or right after other thoughts; after the end of a sentence it counts when it is
      closed and a sentence or a line ends before that. Everywhere else it is
      prose: ``the <think> tag is …``.
    * Thoughts end where as many tags closed as opened (inner ones count at the beginning of a line
      only); if that never comes, at the last closing tag; without one at a tool call that begins a
      line, or at the end of the text.
    * A closing tag that nothing opened counts at the beginning of a line, at the end of one, and
      after the end of a sentence (if prose before it mentions an opening tag: at the beginning of
      a line only). All before it is thoughts. At the very end of a text whose thoughts were
      closed before, only the tag goes.

    OpenAI's harmony channels are split first (:func:`agent.llm.answers.thoughts.split_channels`).

    The parsers of vLLM and SGLang know the model and so take every tag for one, also in code;
    without the model only its place tells. What is doubtful is thoughts: an answer that is lost is
    asked for again, thoughts that are said cannot be taken back.
    """
    said, channels = split_channels(text)
    said, tagged = _split_tags(said)
    thoughts = [one.strip() for one in (*channels, *tagged)]
    if said == text and not tagged:
        return SplitText(text, "")
    answer = _WRAPPERS.sub("", said.strip()).strip()
    return SplitText(answer, "\n\n".join(filter(None, thoughts)))


def _split_tags(text: str) -> tuple[str, list[str]]:
    said: list[str] = []
    thoughts: list[str] = []
    closings = deque(_CLOSING_TAG.finditer(text), maxlen=1)
    last_closing = closings[0].start() if closings else -1
    position: int | None = 0
    while position is not None:
        position = _split_next(text, position, last_closing, said, thoughts)
    return "".join(said), thoughts


def _split_next(
    text: str, start: int, last_closing: int, said: list[str], thoughts: list[str]
) -> int | None:
    """Moves what stands up to the next tag that counts, and its thoughts, into the lists; returns
    where to go on."""
    mentioned = False
    for tag in _tags(text, start):
        if not tag.closes:
            if tag.begins_line or (
                tag.after_sentence and tag.end <= last_closing and _is_block(text, tag)
            ):
                said.append(text[start : tag.start])
                end, position = _block_end(text, tag)
                thoughts.append(text[tag.end : end])
                return position
            mentioned = True
        elif tag.begins_line or (
            not mentioned and (tag.after_sentence or _LINE_END.match(text, tag.end))
        ):
            said.append(text[start : tag.start])
            if not thoughts or not _NOTHING_LEFT.match(text, tag.end):
                thoughts.append("".join(said))
                said.clear()
            return tag.end
    said.append(text[start:])
    return None


def _tags(text: str, position: int) -> Iterator[_Tag]:
    """The tags outside code from ``position`` on, where a line or an answer begins."""
    begins_line = True
    while found := _TOKEN.search(text, position):
        before = text[position : found.start()]
        line = before[before.rfind("\n") + 1 :]
        begins_line = not line.strip(" \t\r>") and (begins_line or "\n" in before)
        if found["fence"] or found["ticks"]:
            position, begins_line = code_end(text, found), False
            continue
        after_sentence = bool(ENDS_SENTENCE.search(before[-40:].rstrip()))
        closes = found["closing"] is not None
        yield _Tag(found.start(), found.end(), closes, begins_line, after_sentence)
        position = found.end()


def _is_block(text: str, tag: _Tag) -> bool:
    """Whether the opening ``tag`` is closed, with more between than a mention would have."""
    closing = _CLOSING_TAG.search(text, tag.end)
    end = closing.start() if closing else tag.end
    return _SENTENCE.search(text, tag.end, end) is not None


def _block_end(text: str, tag: _Tag) -> tuple[int, int]:
    """Where the thoughts end that the opening ``tag`` begins, and where the text goes on."""
    depth, last = 1, None
    for inner in _tags(text, tag.end):
        if inner.closes:
            depth, last = depth - 1, inner
            if not depth:
                break
        elif inner.begins_line:
            depth += 1
    if last:
        return last.start, last.end
    # Thoughts that leave a code fence open take the closing tag into it.
    if fenced := deque(_CLOSING_LINE.finditer(text, tag.end), maxlen=1):
        return fenced[0].start(), fenced[0].end()
    call = _CALL.search(text, tag.end)
    end = call.start() if call else len(text)
    return end, end

"""Tool calls that a model writes into the text of its answer. Pure; linear time.

Endpoints that do not know a model's format, and small models that miss it, leave calls in the
text.
"""

import re
from collections.abc import Collection
from itertools import islice

from agent.llm.answers import call_formats as formats
from agent.llm.answers.call_formats import MOST_CALLS, NoCalls, TextCall, unfenced
from agent.llm.answers.code_spans import prose_parts

_STOP = re.compile(r"(?:<\|(?:im_end|endoftext|eot_id|eom_id)\|>|</s>|<｜end▁of▁sentence｜>)\Z")
_FORMATS = (
    (formats.INVOKES, formats.invokes),
    (formats.INVOKE, formats.invokes),
    (formats.TOOL_CALL, formats.hermes),
    (formats.FUNCTION, formats.functions),
    (formats.SECTION, formats.sections),
    (formats.MISTRAL, formats.mistral),
    (formats.LIST, formats.listed),
    (formats.HARMONY, formats.harmony),
)
#: Marks with what must follow, so that a mention in prose is none.
_MARK = re.compile(
    r"<tool_call>\s*(?:[\[{]|```|<function=|[\w.:-]{1,200}\s*(?:<arg_key>|</tool_call>)|\Z)"
    rf"|{formats.FUNCTION.pattern}|{formats.SECTION.pattern}|<[｜|]DSML[｜|]"
    rf"|{formats.INVOKE.pattern}|\[TOOL_CALLS\]\s*(?:[\w.:-]{{1,200}}\s*)?[\[{{]|<\|python_tag\|>|<tool_calls>\s*\["
    r"|<\|tool_call(?:_start\|>|s?\|>|>call:)"  # LFM2, Granite, Gemma 4
    r"|to=functions\.[^\s<]{1,200}[^<]{0,99}<\|(?:constrain|message)\|>"
)
#: What stands before and behind a mark that a sentence shows: words in the same line, and the end
#: of the call.
_BEFORE = re.compile(r"[^\n]*\w[^\n]*\Z")
_SHOWN = re.compile(r"[^\n]*</(?:tool_call|tool_calls|function|invoke)>[^\n<>]*\w")
_LINE = 2_000
"""Characters around a mark that are looked at."""
_JSON_CALL = re.compile(
    r"(?:```\w{0,20}\n\s*)?(?:\[\s*)?\{\s*\"name\"\s*:\s*\"[\w.:-]+\"\s*,"
    r"\s*\"(?:arguments|parameters)\"\s*:\s*[\"{]"
)


def parse_text_calls(text: str, offered: Collection[str]) -> list[TextCall] | None:
    """The calls that ``text``, without its thoughts, consists of; None unless it is nothing but
    calls of ``offered`` tools, at most ``MOST_CALLS``.

    Formats: ``<tool_call>`` with JSON (Hermes, Qwen), with ``<function=…>`` (Qwen3-Coder; also
    alone) or with ``<arg_key>`` (GLM); the marks of DeepSeek (R1, V3, V3.1; DSML of V3.2 and V4),
    Kimi K2, Mistral, Llama and harmony; ``<invoke name="…">``; lists behind a mark; JSON without
    marks. All of it may stand in code fences if nothing else does.

    Between marks a call counts even if its JSON is broken: ``arguments`` is then the broken text.
    JSON without marks counts only as whole objects whose keys are a name and arguments, and an id
    or a type. Values of formats without types are strings.
    """
    text = text.strip()
    while stop := _STOP.search(text):
        text = text[: stop.start()].rstrip()
    text = unfenced(text)
    parse = next((parse for mark, parse in _FORMATS if mark.match(text)), None)
    try:
        found = parse(text) if parse else formats.json_calls(text, marked=False)
        calls = [
            TextCall(name.strip(), arguments) for name, arguments in islice(found, MOST_CALLS + 1)
        ]
    except (NoCalls, RecursionError):
        return None
    known = all(call.name in offered for call in calls)
    return calls if known and 0 < len(calls) <= MOST_CALLS else None


def looks_like_calls(text: str) -> bool:
    """Whether ``text`` holds the marks of a call outside code, or begins as a call in JSON does.

    For a text that :func:`parse_text_calls` does not take: it is not fit for a chat, and the model
    has to be told. A mark that prose only names is none.
    """
    text = text.strip()
    if _JSON_CALL.match(text) or _MARK.match(unfenced(text)):
        return True
    marks = (mark for part in prose_parts(text) for mark in _MARK.finditer(text, *part))
    return not all(_is_shown(text, mark.start()) for mark in marks)


def _is_shown(text: str, start: int) -> bool:
    """Whether a sentence goes on behind the call whose mark stands at ``start``."""
    before, behind = text[max(0, start - _LINE) : start], text[start : start + _LINE]
    return bool(_BEFORE.search(before) and _SHOWN.match(behind))

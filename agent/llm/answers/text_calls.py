"""Tool calls that a model writes into the text of its answer. Pure; linear time.

Endpoints that do not know a model's format, and small models that miss it, leave calls in the
text.
"""

import json
import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any, NamedTuple

from agent.llm.answers.sentences import CODE, code_end, prose_parts


class TextCall(NamedTuple):
    """A call as the model wrote it; ``arguments`` is its JSON text, well-formed or not, and empty
    where there is none."""

    name: str
    arguments: str


class NoCalls(Exception):  # noqa: N818 - it says what is wrong
    """The text is more, or something else, than calls in this format."""


MOST_CALLS = 64
"""More in one text are a model in a loop."""
_BAR, _LINE = "[｜|]", "[▁_]"
_DSML = rf"(?:{_BAR}DSML{_BAR}|antml:|minimax:)?"
TOOL_CALL = re.compile(r"<tool_call>")
FUNCTION = re.compile(r"<function=([^<>\s]{1,200})>")
SECTION = re.compile(
    rf"<{_BAR}tool{_LINE}calls?{_LINE}(?:section{_LINE})?begin{_BAR}>"
)  # <｜tool▁calls▁begin｜>, Kimi's <|tool_calls_section_begin|>, and one call's
INVOKE = re.compile(rf"<{_DSML}invoke\s{{1,9}}name=\"([^\"<>]{{1,200}})\"\s{{0,9}}>")
INVOKES = re.compile(rf"<{_DSML}(?:function_calls|tool_calls?)>\s{{0,99}}{INVOKE.pattern}")
MISTRAL = re.compile(r"\[TOOL_CALLS\]")
LIST = re.compile(r"<\|python_tag\|>|<\|tool_calls?\|>|<tool_calls>|functools(?=\[)")
HARMONY = re.compile(
    r"(?:<\|start\|>\s{0,9}assistant[^<]{0,99})?(?:<\|channel\|>[^<]{0,200})?"
    r"(?:<\|constrain\|>[^<]{0,99})?<\|message\|>"
)
_SECTION_MARKS = re.compile(
    rf"<{_BAR}tool{_LINE}calls{_LINE}(?:section{_LINE})?(?:begin|end){_BAR}>"
)
_CALL_BEGIN = re.compile(rf"<{_BAR}tool{_LINE}call{_LINE}begin{_BAR}>")
_CALL_END = re.compile(rf"<{_BAR}tool{_LINE}call{_LINE}end{_BAR}>")
_SEPARATOR = re.compile(rf"<(?:{_BAR}tool{_LINE}sep|\|tool_call_argument_begin){_BAR}>")
_NUMBERED = re.compile(r"\A(?:functions\.)?(.*?)(?::\d{1,9})?\Z", re.DOTALL)
_PARAMETER = re.compile(rf"<{_DSML}parameter\s+name=\"([^\"<>]+)\"(?:\s+string=\"(\w+)\")?\s*>")
_QWEN_PARAMETER = re.compile(r"<parameter=([^<>]+)>()")
_GLM_PARAMETER = re.compile(r"<arg_key>([^<>]+)</arg_key>(?:\\n|\s){0,9}<arg_value>()")
_RECIPIENT = re.compile(r"to=functions\.([^\s<]{1,200})")
_MISTRAL_NAME = re.compile(r"\s*([\w.:-]{1,200})\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\])?(?=\s*\{)")
_NAME = re.compile(r"\{\s*\"name\"\s*:\s*\"([^\"\\]{1,200})\"")
_ARGUMENTS = re.compile(r"\"(?:arguments|parameters)\"\s*:\s*")
_FENCE = re.compile(CODE, re.MULTILINE)
_BETWEEN = re.compile(r"[\s,;]*")
_JSON = json.JSONDecoder()


def unfenced(text: str) -> str:
    """What stands in the code fences that are all of ``text``, or else ``text``."""
    inside: list[str] = []
    position = 0
    while position < len(text):
        found = _FENCE.match(text, position)
        if not found or not found["fence"]:
            return text
        end = code_end(text, found)
        lines = text[found.end() : end].split("\n")[1:]
        if lines and lines[-1].strip().startswith(found["fence"].strip()):
            lines.pop()
        inside += lines
        position = _after(text, end)
    return "\n".join(inside).strip()


def hermes(text: str) -> Iterator[TextCall]:
    """``<tool_call>{…}</tool_call>`` of Hermes and Qwen, and what Qwen3-Coder and GLM put there."""
    for _, body, _ in _blocks(text, TOOL_CALL, re.compile("</tool_call>")):
        body = unfenced(body.strip())
        if body.startswith(("{", "[")):
            yield from json_calls(body, marked=True)
        elif FUNCTION.match(body):
            yield from functions(body)
        else:
            key = body.find("<arg_key>")
            name, values = (body, "") if key < 0 else (body[:key], body[key:])
            yield TextCall(
                name.removesuffix("\\n"), _values(values, _GLM_PARAMETER, "</arg_value>")
            )


def functions(text: str) -> Iterator[TextCall]:
    """``<function=name>`` with ``<parameter=key>`` (Qwen3-Coder) or JSON (Llama 3.1) in it."""
    text = text.strip().removesuffix("</tool_call>")  # the opening one is often missing
    for begin, body, _ in _blocks(text, FUNCTION, re.compile("</function>")):
        yield TextCall(begin[1], _values(body, _QWEN_PARAMETER, "</parameter>"))


def sections(text: str) -> Iterator[TextCall]:
    """DeepSeek's ``<｜tool▁call▁begin｜>…`` (R1, V3 and V3.1) and Kimi K2's."""
    for _, body, _ in _blocks(_SECTION_MARKS.sub("", text).strip(), _CALL_BEGIN, _CALL_END):
        parts = _SEPARATOR.split(body, maxsplit=1)
        name, arguments = parts[0].strip(), parts[-1] if len(parts) > 1 else ""
        if name == "function" and arguments:  # the kind of the call: R1 and V3
            name, _, arguments = arguments.strip().partition("\n")
        numbered = _NUMBERED.match(name.strip())
        yield TextCall(numbered[1] if numbered else name, unfenced(arguments.strip()))


def invokes(text: str) -> Iterator[TextCall]:
    """``<invoke name="…">`` with ``<parameter name="…">`` or JSON in it: DeepSeek's DSML (V3.2,
    V4), MiniMax-M2."""
    marks = re.compile(rf"</?{_DSML}(?:function_calls|tool_calls?)>")
    for begin, body, _ in _blocks(
        marks.sub("", text).strip(), INVOKE, re.compile(rf"</{_DSML}invoke>")
    ):
        yield TextCall(begin[1], _values(body, _PARAMETER, rf"</{_DSML}parameter>"))


def mistral(text: str) -> Iterator[TextCall]:
    """``[TOOL_CALLS]`` with a list, or with ``name[ARGS]{…}`` (from tokenizer v11 on)."""
    for part in MISTRAL.split(text, maxsplit=MOST_CALLS + 1)[1:]:
        if named := _MISTRAL_NAME.match(part):
            arguments = part[named.end() :].strip()
            end = _json_end(arguments, 0)
            if end and arguments[end:].strip():
                raise NoCalls
            yield TextCall(named[1], arguments)
        else:
            yield from json_calls(part.strip(), marked=True)


def listed(text: str) -> Iterator[TextCall]:
    """JSON behind a mark: Llama's ``<|python_tag|>``, Granite's, Hunyuan's and Phi's lists."""
    text = LIST.sub("\n", text).strip().removesuffix("</tool_calls>")
    return json_calls(text.strip(), marked=True)


def harmony(text: str) -> Iterator[TextCall]:
    """Messages ``to=functions.…`` of OpenAI's gpt-oss."""
    for begin, body, _ in _blocks(text, HARMONY, re.compile(r"<\|(?:call|end|return)\|>")):
        if not (recipient := _RECIPIENT.search(begin[0])):
            raise NoCalls
        yield TextCall(recipient[1], body.strip())


def json_calls(text: str, *, marked: bool) -> Iterator[TextCall]:
    """Objects and lists of objects, one after the other. A broken last one is a call only if
    ``marked``."""
    if marked and text.startswith("{{") and text.endswith("}}"):
        text = text[1:-1]  # copied from Qwen's template, where braces are doubled
    position = 0
    while position < len(text):
        end = _json_end(text, position)
        if not end and marked and position and not text[position:].strip("}"):
            return  # one brace too many
        if not end:
            yield _broken(text[position:], marked)
            return
        value = _JSON.raw_decode(text, position)[0]
        for one in value if isinstance(value, list) else [value]:
            yield _call(one, marked)
        position = _after(text, end)


def _call(value: object, marked: bool) -> TextCall:
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        if not value.keys() <= {"function", "id", "type", "index"}:
            raise NoCalls
        value = value["function"]
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise NoCalls
    keys = [key for key in ("arguments", "parameters") if key in value]
    arguments = value[keys[0]] if keys else None
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    if arguments is None:
        text = ""
    if not marked:
        bare = value.keys() <= {"name", "id", "type", *keys} and len(keys) == 1
        if not bare or text.strip()[:1] not in ("", "{"):
            raise NoCalls
    return TextCall(value["name"], text)


def _broken(text: str, marked: bool) -> TextCall:
    """The call that a JSON text begins, which breaks off or is not well-formed."""
    name = _NAME.match(text)
    if not name or not marked:
        raise NoCalls
    arguments = _ARGUMENTS.search(text, name.end())
    return TextCall(name[1], text[arguments.end() :].strip() if arguments else "")


def _values(text: str, key: re.Pattern[str], end: str) -> str:
    """JSON of the values that stand between a ``key`` and an ``end``, or ``text`` where it is JSON
    or breaks off. Values are strings unless their key says otherwise: who checks the arguments
    knows their types."""
    if not text.strip() or text.lstrip().startswith("{"):
        return text.strip()
    values: dict[str, object] = {}
    for found, body, closed in _blocks(text.strip(), key, re.compile(end)):
        if not closed:
            return text.strip()
        value: Any = body.removeprefix("\n").removesuffix("\n")
        if found[2] == "false":
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                return text.strip()
        values[found[1].strip()] = value
    return json.dumps(values, ensure_ascii=False)


def _blocks(
    text: str, begin: re.Pattern[str], end: re.Pattern[str]
) -> Iterator[tuple[re.Match[str], str, bool]]:
    """What stands between ``begin`` and ``end`` (JSON may hold an end), with the begin and whether
    there is an end: the last may lack it. Raises NoCalls where ``text`` is more than that."""
    position = 0
    while position < len(text):
        if not (found := begin.match(text, position)):
            raise NoCalls
        closing = end.search(text, _json_end(text, found.end()) or found.end())
        limit = closing.start() if closing else len(text)
        yield found, text[found.end() : limit], closing is not None
        position = _after(text, closing.end() if closing else limit)


def _json_end(text: str, position: int) -> int:
    """Where the JSON object or list ends that begins at ``position``; 0 if none does."""
    position = _after(text, position)
    if not text.startswith(("{", "["), position):
        return 0
    try:
        return _JSON.raw_decode(text, position)[1]
    except (ValueError, RecursionError):
        return 0


def _after(text: str, position: int) -> int:
    between = _BETWEEN.match(text, position)
    return between.end() if between else position


_STOP = re.compile(r"(?:<\|(?:im_end|endoftext|eot_id|eom_id)\|>|</s>|<｜end▁of▁sentence｜>)\Z")
_FORMATS = (
    (INVOKES, invokes),
    (INVOKE, invokes),
    (TOOL_CALL, hermes),
    (FUNCTION, functions),
    (SECTION, sections),
    (MISTRAL, mistral),
    (LIST, listed),
    (HARMONY, harmony),
)
#: Marks with what must follow, so that a mention in prose is none.
_MARK = re.compile(
    r"<tool_call>\s*(?:[\[{]|```|<function=|[\w.:-]{1,200}\s*(?:<arg_key>|</tool_call>)|\Z)"
    rf"|{FUNCTION.pattern}|{SECTION.pattern}|<[｜|]DSML[｜|]"
    rf"|{INVOKE.pattern}|\[TOOL_CALLS\]\s*(?:[\w.:-]{{1,200}}\s*)?[\[{{]|<\|python_tag\|>|<tool_calls>\s*\["
    r"|<\|tool_call(?:_start\|>|s?\|>|>call:)"  # LFM2, Granite, Gemma 4
    r"|to=functions\.[^\s<]{1,200}[^<]{0,99}<\|(?:constrain|message)\|>"
)
#: What stands before and behind a mark that a sentence shows: words in the same line, and the end
#: of the call.
_BEFORE = re.compile(r"[^\n]*\w[^\n]*\Z")
_SHOWN = re.compile(r"[^\n]*</(?:tool_call|tool_calls|function|invoke)>[^\n<>]*\w")
_LINE_CHARS = 2_000
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
        found = parse(text) if parse else json_calls(text, marked=False)
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
    before, behind = text[max(0, start - _LINE_CHARS) : start], text[start : start + _LINE_CHARS]
    return bool(_BEFORE.search(before) and _SHOWN.match(behind))

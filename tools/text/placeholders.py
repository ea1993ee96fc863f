"""Texts in which ``{name}`` stands for a value: the parser of every template, and mock values.
Pure.

Nothing is evaluated: a placeholder is a name and no expression, so the right to edit a template
gives nothing beyond its text. Which names there are is said by each use: mock values here,
HTTP tools in :mod:`tools.http_tools.templates`, prompts in :mod:`agent.domain.chat_state`.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext

_PIECE = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<inside>[^{}]*)\}|(?P<stray>[{}])")
_REPEATED = re.compile(r"(?P<open>\{+)(?P<inside>[^{}]*)(?P<close>\}+)")
_NAME = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """``written`` as it stands in the text, and what is ``inside`` its braces."""

    written: str
    inside: str


def split_placeholders(text: str, *, has_escapes: bool = True) -> Iterator[str | Placeholder]:
    """``text`` in order: what is literal, and the placeholders between.

    ``{{`` and ``}}`` are plain braces, and a brace without its counterpart stays as it is
    written. Without escapes, all the braces of ``{{name}}`` belong to one placeholder.
    """
    literal, end = "", 0
    for found in (_PIECE if has_escapes else _REPEATED).finditer(text):
        start, stop = found.span()
        if not has_escapes:
            width = min(len(found["open"]), len(found["close"]))
            start, stop = found.start("inside") - width, found.end("inside") + width
        literal += text[end:start]
        end = stop
        if found["inside"] is None:
            literal += found[0][0]
            continue
        if literal:
            yield literal
        yield Placeholder(text[start:stop], found["inside"])
        literal = ""
    if literal := literal + text[end:]:
        yield literal


def check_placeholders(text: str, check: Callable[[Placeholder], str]) -> list[str]:
    """A translated line for each brace that stands alone, and what ``check`` says of each
    placeholder ("" for nothing), in order, each once."""
    lines = []
    for found in _PIECE.finditer(text):
        if found["stray"]:
            words = gettext(
                "Line %(line)d: “%(brace)s” stands alone; write it twice for a plain brace."
            )
            line = text.count("\n", 0, found.start()) + 1
            lines.append(words % {"line": line, "brace": found["stray"]})
        elif found["inside"] is not None:
            lines.append(check(Placeholder(found[0], found["inside"])))
    return list(dict.fromkeys(filter(None, lines)))


def format_value(value: object) -> str:
    """A string as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# --- Mock values ----------------------------------------------------------------


def render_mock(template: str, arguments: Mapping[str, object]) -> str:
    """``template`` with the arguments put in; never raises.

    Strings stand bare and everything else as JSON. An argument that was not given is
    "". What :func:`check_mock_template` would refuse stays as it is written.
    """
    text = ""
    for piece in split_placeholders(template):
        if isinstance(piece, str):
            text += piece
        elif piece.inside in arguments:
            text += format_value(arguments[piece.inside])
        elif not _NAME.fullmatch(piece.inside):
            text += piece.written
    return text


def check_mock_template(template: str, allowed_names: Collection[str] | None) -> list[str]:
    """What keeps ``template`` from being a mock value of a tool with these arguments: one
    translated line each.

    None: the arguments are unknown, and any name may stand in braces.
    """

    def check(placeholder: Placeholder) -> str:
        if allowed_names is None or placeholder.inside in allowed_names:
            return ""
        words = gettext("“%(placeholder)s” is not an argument of this tool. Known: %(names)s.")
        names = ", ".join(allowed_names) or gettext("none")
        return words % {"placeholder": placeholder.written, "names": names}

    return check_placeholders(template, check)

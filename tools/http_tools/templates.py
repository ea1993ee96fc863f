"""Templates: texts in which ``{name}`` stands for an argument and ``{secret:NAME}`` for a secret.
Pure.

``{{`` and ``}}`` are plain braces, as in mock values (:mod:`tools.text.placeholders`). Nothing is
evaluated.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from django.utils.translation import gettext

PARAMETER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of arguments that every model endpoint takes; ``:`` is not among their signs, so none is a
secret's."""
_PIECE = re.compile(
    r"(?P<brace>\{\{|\}\})|\{secret:(?P<secret>[^{}]*)\}|\{(?P<name>[^{}]*)\}|(?P<stray>[{}])"
)


@dataclass(frozen=True, slots=True)
class ArgumentPlaceholder:
    """The place of an argument."""

    name: str


@dataclass(frozen=True, slots=True)
class SecretPlaceholder:
    """The place of a secret."""

    name: str


Template = tuple[str | ArgumentPlaceholder | SecretPlaceholder, ...]
"""Literal texts and places, in order."""


def parse_template(text: str, encode: Callable[[str], str] = str) -> Template:
    """``text`` as a template, its literal parts encoded by ``encode``. Stray braces stay as they
    are written."""
    pieces: list[str | ArgumentPlaceholder | SecretPlaceholder] = []
    literal, end = "", 0
    for piece in _PIECE.finditer(text):
        literal, end = literal + text[end : piece.start()], piece.end()
        if piece["brace"] or piece["stray"]:
            literal += piece[0][0]
            continue
        pieces += [encode(literal)] if literal else []
        pieces.append(
            ArgumentPlaceholder(piece["name"])
            if piece["name"] is not None
            else SecretPlaceholder(piece["secret"])
        )
        literal = ""
    literal += text[end:]
    return (*pieces, encode(literal)) if literal else tuple(pieces)


def template_arguments(template: Template) -> Iterator[str]:
    """The names of the arguments in ``template``, in order, with repetitions."""
    return (piece.name for piece in template if isinstance(piece, ArgumentPlaceholder))


def template_secrets(template: Template) -> Iterator[str]:
    """The names of the secrets in ``template``."""
    return (piece.name for piece in template if isinstance(piece, SecretPlaceholder))


def has_placeholders(text: str) -> bool:
    """Whether anything stands in braces in ``text``."""
    return any(
        piece["name"] is not None or piece["secret"] is not None for piece in _PIECE.finditer(text)
    )


def check_template(
    text: str, arguments: Collection[str] | None, secrets: Collection[str] | None
) -> list[str]:
    """What keeps ``text`` from being a template over these names, a translated line each. None: any
    name may stand there."""
    faults = []
    for piece in _PIECE.finditer(text):
        if piece["stray"]:
            faults.append(_stray(text, piece))
        elif piece["secret"] is not None and secrets is not None and piece["secret"] not in secrets:
            faults.append(
                _unknown(
                    gettext("“%(placeholder)s” names no secret."),
                    piece[0],
                    piece["secret"],
                    secrets,
                )
            )
        elif piece["name"] is not None and arguments is not None and piece["name"] not in arguments:
            faults.append(
                _unknown(
                    gettext("“%(placeholder)s” names no argument."),
                    piece[0],
                    piece["name"],
                    arguments,
                )
            )
    return list(dict.fromkeys(faults))


def _stray(text: str, piece: re.Match[str]) -> str:
    line = text.count("\n", 0, piece.start()) + 1
    return gettext("Line %(line)d: “%(brace)s” stands alone; write it twice for a plain brace.") % {
        "line": line,
        "brace": piece["stray"],
    }


def _unknown(fault: str, placeholder: str, name: str, known: Collection[str]) -> str:
    fault = fault % {"placeholder": placeholder[:100]}
    if near := get_close_matches(name[:64], known, 1):
        return f"{fault} {gettext('Perhaps “%(name)s” is meant.') % {'name': near[0]}}"
    return f"{fault} {gettext('Known: %(names)s.') % {'names': ', '.join(sorted(known)[:50]) or gettext('none')}}"

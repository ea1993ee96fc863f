"""Templates: texts in which ``{name}`` stands for an argument and ``{secret:NAME}`` for a secret.
Pure.

``{{`` and ``}}`` are plain braces, as in mock values (:mod:`tools.text.placeholders`).
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from django.utils.translation import gettext

from tools.text.placeholders import Placeholder, check_placeholders, split_placeholders

PARAMETER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of arguments that every model endpoint takes; ``:`` is not among their signs, so none is a
secret's."""
PREFIX = "secret:"


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
    return tuple(
        encode(piece) if isinstance(piece, str) else _classified(piece)
        for piece in split_placeholders(text)
    )


def template_arguments(template: Template) -> Iterator[str]:
    """The names of the arguments in ``template``, in order, with repetitions."""
    return (piece.name for piece in template if isinstance(piece, ArgumentPlaceholder))


def template_secrets(template: Template) -> Iterator[str]:
    """The names of the secrets in ``template``."""
    return (piece.name for piece in template if isinstance(piece, SecretPlaceholder))


def has_placeholders(text: str) -> bool:
    """Whether anything stands in braces in ``text``."""
    return any(isinstance(piece, Placeholder) for piece in split_placeholders(text))


def literal_text(template: Template, filler: str = "") -> str:
    """The literal parts of ``template``, with ``filler`` for each value between them."""
    return "".join(piece if isinstance(piece, str) else filler for piece in template)


def check_template(
    text: str, arguments: Collection[str] | None, secrets: Collection[str] | None
) -> list[str]:
    """What keeps ``text`` from being a template over these names, a translated line each. None: any
    name may stand there."""

    def check(written: Placeholder) -> str:
        place = _classified(written)
        is_secret = isinstance(place, SecretPlaceholder)
        known = secrets if is_secret else arguments
        if known is None or place.name in known:
            return ""
        words = (
            gettext("“%(placeholder)s” names no secret.")
            if is_secret
            else gettext("“%(placeholder)s” names no argument.")
        )
        if near := get_close_matches(place.name[:64], known, 1):
            advice = gettext("Perhaps “%(name)s” is meant.") % {"name": near[0]}
        else:
            names = ", ".join(sorted(known)[:50]) or gettext("none")
            advice = gettext("Known: %(names)s.") % {"names": names}
        return f"{words % {'placeholder': written.written[:100]}} {advice}"

    return check_placeholders(text, check)


def _classified(placeholder: Placeholder) -> ArgumentPlaceholder | SecretPlaceholder:
    if placeholder.inside.startswith(PREFIX):
        return SecretPlaceholder(placeholder.inside.removeprefix(PREFIX))
    return ArgumentPlaceholder(placeholder.inside)

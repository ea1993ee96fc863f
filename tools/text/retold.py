"""Sentences of the program that were put on record in one language, told in the reader's."""

import re
from collections.abc import Iterator
from functools import cache

from django.conf import settings
from django.utils.translation import gettext, trans_real

_PLACE = re.compile(r"%(?:\((\w+)\))?[sd]")
#: Characters that a template has in one piece besides its values: less could be anybody's words.
LEAST_LATIN, LEAST_HAN = 8, 4
_HAN = re.compile(r"[\u4e00-\u9fff]")


def retell(text: str) -> str:
    """``text`` in the language of the moment, line by line, with the values in it; as it is where
    it is no sentence of ours."""
    if "\n" in text:
        return "\n".join(map(retell, text.split("\n")))
    return _retold(text) or text


def is_sentence(text: str) -> bool:
    """Whether ``text`` is one sentence of the program without values, in whatever language."""
    return text in _sentences()


def is_ours(text: str) -> bool:
    """Whether every line of ``text`` is a sentence of the program, in whatever language."""
    return all(_retold(line) is not None for line in text.split("\n") if line.strip())


def _retold(text: str) -> str | None:
    if (msgid := _sentences().get(text)) is not None:
        return gettext(msgid)
    for piece, template, msgid in _templates():
        if piece in text and (found := _pattern(template).fullmatch(text)):
            return _filled(gettext(msgid), found)
    place, colon, rest = text.partition(": ")
    told = _retold(rest) if rest else None
    return None if told is None else f"{place}{colon}{told}"


def _filled(template: str, found: re.Match[str]) -> str:
    """``template`` with the values that were ``found``, told again themselves."""
    values = iter(found.groups())
    pieces = _PLACE.split(template)[::2]
    names = [place[1] for place in _PLACE.finditer(template)]
    told = [retell(found[name] if name else next(values)) for name in names]
    return "".join(
        f"{piece.replace('%%', '%')}{value}"
        for piece, value in zip(pieces, [*told, ""], strict=True)
    )


@cache
def _sentences() -> dict[str, str]:
    """The sentences without values in each language, with what the catalogue calls them."""
    return {text: msgid for text, msgid in _catalogue() if not _PLACE.search(text)}


@cache
def _templates() -> tuple[tuple[str, str, str], ...]:
    """The longest piece of each sentence with values, the sentence, and its msgid."""
    found = []
    for text, msgid in _catalogue():
        if _PLACE.search(text):
            piece = max(_PLACE.sub("\0", text).split("\0"), key=len).replace("%%", "%")
            if len(piece) >= (LEAST_HAN if _HAN.search(piece) else LEAST_LATIN):
                found.append((piece, text, msgid))
    return tuple(sorted(found, key=lambda one: -len(one[0])))


def _catalogue() -> Iterator[tuple[str, str]]:
    for code, _name in settings.LANGUAGES:
        for msgid, text in trans_real.translation(code)._catalog.items():  # type: ignore[attr-defined]
            if isinstance(msgid, str) and msgid and "\x04" not in msgid and isinstance(text, str):
                yield from ((text or msgid, msgid), (msgid, msgid))


@cache
def _pattern(template: str) -> re.Pattern[str]:
    written, end, seen = "", 0, set[str]()
    for place in _PLACE.finditer(template):
        name = place[1]
        written += re.escape(template[end : place.start()].replace("%%", "%"))
        written += f"(?P={name})" if name in seen else f"(?P<{name}>.*)" if name else "(.*)"
        seen |= {name} if name else set()
        end = place.end()
    return re.compile(written + re.escape(template[end:].replace("%%", "%")), re.DOTALL)

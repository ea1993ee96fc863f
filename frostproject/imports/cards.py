"""Character cards, V1 to V3, as JSON and in the text of a PNG. Pure."""

import base64
import binascii
import re
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from django.utils.translation import gettext as _

from frostproject.imports.plan import (
    Found,
    ImportRefused,
    Kind,
    as_object,
    as_objects,
    as_text,
    as_texts,
)

PNG = b"\x89PNG\r\n\x1a\n"
SPECS = ("chara_card_v2", "chara_card_v3")
#: The keys of a card in a PNG, the one that counts first.
KEYS = (b"ccv3", b"chara")
PARTS = (
    *(
        ("system_prompt", ""),
        ("description", ""),
        ("personality", "性格："),
        ("scenario", "场景："),
    ),
    ("post_history_instructions", ""),
)
#: What does not enter a prompt and has no other place here.
LEFT = (
    *("first_mes", "alternate_greetings", "group_only_greetings", "creator_notes", "tags"),
    *("creator", "assets", "creator_notes_multilingual", "source"),
)
_CHARACTER = re.compile(r"\{\{\s*char\s*\}\}|<char>|<bot>", re.IGNORECASE)
_USER = re.compile(r"\{\{\s*user\s*\}\}|<user>", re.IGNORECASE)
_ORIGINAL = re.compile(r"\{\{\s*original\s*\}\}", re.IGNORECASE)
_USER_TURN, _CHARACTER_TURN = "\x01", "\x02"


def find_card(data: bytes, name: str) -> bytes:
    """The JSON in the text of a PNG. Nothing is unpacked: a card stands there as it is. Raises
    :class:`ImportRefused`."""
    texts = dict(_list_texts(data))
    packed = next((texts[key] for key in KEYS if key in texts), None)
    if packed is None:
        raise ImportRefused(_("%s is a picture without a character card.") % name)
    try:
        return base64.b64decode(packed, validate=True)
    except binascii.Error as error:
        raise ImportRefused(_("The character card in %s is damaged.") % name) from error


def _list_texts(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(PNG)
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"tEXt":
            key, _nul, text = data[at + 8 : at + 8 + size].partition(b"\0")
            yield key, text
        at += size + 12


def is_card(document: dict[str, Any]) -> bool:
    """Whether it is a card: by its mark, or one of before there were marks."""
    first = {"name", "description", "personality", "scenario", "first_mes", "mes_example"}
    return document.get("spec") in SPECS or first <= document.keys()


def read_card(document: dict[str, Any], file: str, found: Found) -> None:
    """The persona of a card: what describes it is the prompt, its examples are examples."""
    card = as_object(document.get("data")) or document
    name = as_text(card.get("name")) or file
    called = as_text(card.get("nickname")) or name
    described = [(head, as_text(card.get(part))) for part, head in PARTS]
    parts = [f"{head}{_ORIGINAL.sub('', text).strip()}" for head, text in described if text]
    book = as_object(card.get("character_book"))
    parts += [text for text in _read_book(book, name, found) if text]
    examples = _read_examples(as_text(card.get("mes_example")), called)
    prompt = _fill("\n\n".join(part for part in parts if part), called)
    found.add(Kind.PERSONA, name, prompt=prompt, examples=examples)
    for part in LEFT:
        if card.get(part):
            found.leave(f"{name}: {part}", _("it has no place in a prompt"))


def _read_book(book: dict[str, Any], name: str, found: Found) -> Iterator[str]:
    """The entries that always count; those that wait for a word are named as left behind."""
    entries = as_objects(book.get("entries"))
    for entry in sorted(entries, key=_insertion_order):
        if entry.get("constant") is True and entry.get("enabled") is not False:
            yield as_text(entry.get("content"))
            continue
        keys = ", ".join(as_texts(entry.get("keys"))) or as_text(entry.get("name")) or "-"
        words = _("an entry of its book that waits for a word; write it as a note")
        found.leave(f"{name}: {keys}", words)


def _insertion_order(entry: dict[str, Any]) -> float:
    order = entry.get("insertion_order")
    return order if isinstance(order, int | float) else 0


def _fill(text: str, name: str) -> str:
    return _USER.sub("用户", _CHARACTER.sub(lambda _found: name, text))


def _read_examples(text: str, name: str) -> list[list[str]]:
    """Each line of the user with the answer that follows it; others continue the one before."""
    marked = _USER.sub(_USER_TURN, _CHARACTER.sub(_CHARACTER_TURN, text))
    turns: list[list[str]] = []
    for line in marked.replace("<START>", "").splitlines():
        speaker = line.lstrip()[:1]
        if speaker in (_USER_TURN, _CHARACTER_TURN) and speaker:
            turns.append([speaker, line.lstrip()[1:].lstrip(" :：")])
        elif turns and line.strip():
            turns[-1][1] += f"\n{line.strip()}"
    return [
        [_plain(said[1], name), _plain(answer[1], name)]
        for said, answer in pairwise(turns)
        if said[0] == _USER_TURN and answer[0] == _CHARACTER_TURN and said[1] and answer[1]
    ]


def _plain(text: str, name: str) -> str:
    return text.replace(_USER_TURN, "用户").replace(_CHARACTER_TURN, name).strip()

"""Character cards, V1 to V3, as JSON and in the text of a PNG. Pure."""

import base64
import binascii
import re
import struct
from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter
from typing import Any

from django.utils.translation import gettext as _

from frostproject.imports.documents import as_object, as_objects, as_text, as_texts
from frostproject.imports.plan import Found, ImportRefused, Kind

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
    texts, at = dict[bytes, bytes](), len(PNG)
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        key, _nul, text = data[at + 8 : at + 8 + size].partition(b"\0")
        texts |= {key: text} if kind == b"tEXt" else {}
        at += size + 12
    for key in (one for one in KEYS if one in texts):
        try:
            return base64.b64decode(texts[key], validate=True)
        except binascii.Error as error:
            raise ImportRefused(_("The character card in %s is damaged.") % name) from error
    raise ImportRefused(_("%s is a picture without a character card.") % name)


def is_card(document: dict[str, Any]) -> bool:
    """Whether it is a card: by its mark, or one of before there were marks."""
    first = {"name", "description", "personality", "scenario", "first_mes", "mes_example"}
    return document.get("spec") in SPECS or first <= document.keys()


def read_card(document: dict[str, Any], file: str, found: Found, **picture: Any) -> None:
    """The persona of a card: what describes it is the prompt, its examples are examples."""
    card = as_object(document.get("data")) or document
    name = as_text(card.get("name")) or file
    called = as_text(card.get("nickname")) or name
    described = [(head, _ORIGINAL.sub("", as_text(card.get(part)))) for part, head in PARTS]
    parts = [f"{head}{text.strip()}" for head, text in described if text.strip()]
    parts += filter(None, _read_book(card, name, found))
    prompt = _plain(_mark("\n\n".join(parts)), called)
    examples = _read_examples(as_text(card.get("mes_example")), called)
    found.add(Kind.PERSONA, name, prompt=prompt, examples=examples, **picture)
    for part in LEFT:
        if card.get(part):
            found.leave(f"{name}: {part}", _("it has no place in a prompt"))


def _read_book(card: dict[str, Any], name: str, found: Found) -> Iterator[str]:
    """The entries that always count; those that wait for a word are named as left behind."""
    entries = as_objects(as_object(card.get("character_book")).get("entries"))
    orders = [entry.get("insertion_order") for entry in entries]
    placed = [order if isinstance(order, int | float) else 0 for order in orders]
    for _order, entry in sorted(zip(placed, entries, strict=True), key=itemgetter(0)):
        if entry.get("constant") is True and entry.get("enabled") is not False:
            yield as_text(entry.get("content"))
            continue
        keys = ", ".join(as_texts(entry.get("keys"))) or as_text(entry.get("name")) or "-"
        found.leave(
            f"{name}: {keys}", _("an entry of its book that waits for a word; write it as a note")
        )


def _read_examples(text: str, name: str) -> list[list[str]]:
    """Each line of the user with the answer that follows it; others continue the one before."""
    turns: list[list[str]] = []
    for line in map(str.strip, _mark(text).replace("<START>", "").splitlines()):
        if line.startswith((_USER_TURN, _CHARACTER_TURN)):
            turns.append([line[0], line[1:].lstrip(" :：")])
        elif turns and line:
            turns[-1][1] += f"\n{line}"
    return [
        [_plain(said[1], name), _plain(answer[1], name)]
        for said, answer in pairwise(turns)
        if said[0] == _USER_TURN and answer[0] == _CHARACTER_TURN and said[1] and answer[1]
    ]


def _mark(text: str) -> str:
    return _USER.sub(_USER_TURN, _CHARACTER.sub(_CHARACTER_TURN, text))


def _plain(text: str, name: str) -> str:
    return text.replace(_USER_TURN, "用户").replace(_CHARACTER_TURN, name).strip()

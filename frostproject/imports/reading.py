"""Which program a file or folder is of, and what is in it. Pure, but for pictures, which are
decoded in a process of their own."""

import base64
import json
import zlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from agent.domain.types import MediaUnavailable
from agent.media.image_reader import make_portrait
from agent.pages import persona_file
from frostproject.imports.astrbot import read_astrbot, read_persona, read_servers
from frostproject.imports.cards import PNG, find_card, is_card, read_card
from frostproject.imports.documents import as_object, as_text, load_json, load_text
from frostproject.imports.frostagent import read_environment, read_memory, read_summaries
from frostproject.imports.langbot import read_langbot
from frostproject.imports.plan import Found, ImportRefused, Kind, Wanted
from frostproject.imports.sources import CARD, KNOWN, PROFILE, Source
from tools.http_tools.openapi.document import DocumentError, read_document
from tools.secrets.encryption import DecryptionError, decrypt, encrypt

#: Characters of a plan that a page carries, below Django's ``DATA_UPLOAD_MAX_MEMORY_SIZE``.
MOST_CARRIED = 2_000_000
#: Rows of one plan.
MOST_ROWS = 5_000
#: Pictures of one plan; each takes a part of a second.
MOST_PICTURES = 100
UNKNOWN = gettext_lazy("%s holds nothing that is known here: see “Coming from elsewhere”.")
LEFT = {
    PROFILE: gettext_lazy("settings of single chats; make them under “Manners” here"),
    "memory_catalog.json": gettext_lazy("it follows from the notes"),
    "dialogue.yml": gettext_lazy("write them as example dialogues on the persona's page"),
}


def read_found(source: Source) -> Found:
    """Everything in ``source`` that can become rows. Raises :class:`ImportRefused`."""
    found = Found()
    try:
        if source.tables or KNOWN & source.files.keys():
            _read_program(source, found)
        else:
            for name, data in source.files.items():
                _read_file(name, data, found, source.icon if name == CARD else b"")
    except RecursionError as error:
        raise ImportRefused(_("%s is nested too deeply.") % source.name) from error
    if len(found.rows) > MOST_ROWS:
        raise ImportRefused(_("There are more than %d rows in it.") % MOST_ROWS)
    if not found.rows and not found.left:
        raise ImportRefused(UNKNOWN % source.name)
    return found


def _read_program(source: Source, found: Found) -> None:
    files, tables = source.files, source.tables
    names = ("cmd_config.json", "mcp_server.json", "brain.json", "group_summaries.json")
    config, servers, memory, summaries = (
        as_object(load_json(files[name], name)) if name in files else {} for name in names
    )
    read_astrbot(config, tables, found)
    read_servers(servers, found)
    read_langbot(tables, found)
    if ".env" in files:
        read_environment(load_text(files[".env"], ".env"), ".env", found)
    read_memory(memory, found)
    read_summaries(summaries, found)
    for name in sorted(files):
        for start in (one for one in LEFT if name.startswith(one)):
            found.leave(name, str(LEFT[start]))


def _read_file(name: str, data: bytes, found: Found, icon: bytes) -> None:
    """One file, by what is in it; ``icon`` stands beside it."""
    stem = PurePath(name).stem
    if data.startswith(PNG):
        card = as_object(load_json(find_card(data, name), name))
        return read_card(card, stem, found, **_keep_picture(data, name, found))
    text = load_text(data, name)
    is_json = text.lstrip()[:1] in ("{", "[")
    given = as_object(load_json(data, name)) if is_json else {}
    heads = [line.partition(":")[0] for line in text.splitlines()[:200] if not is_json]
    if {"openapi", "swagger"} & {*given, *heads}:
        return _read_openapi(name, data, found)
    if is_card(given):
        return read_card(given, stem, found, **_keep_picture(icon, name, found))
    for mark in (one for one in READERS if one in given):
        return READERS[mark](given, stem, found)
    if not name.endswith(".env") or is_json:
        raise ImportRefused(UNKNOWN % name)
    return read_environment(text, stem, found)


def _read_own(given: dict[str, Any], stem: str, found: Found) -> None:
    try:
        values = persona_file.read_persona(given)
        url = given.get(persona_file.PICTURE)
        picture = persona_file.read_picture(url) if url else b""
    except ValueError as error:
        raise ImportRefused(
            _("%(file)s is no persona of this program: “%(field)s” is not of its kind."),
            file=stem,
            field=error,
        ) from error
    values |= _keep_picture(picture, stem, found)
    found.add(Kind.PERSONA, as_text(given.get("name")) or stem, **values)


def _keep_picture(content: bytes, name: str, found: Found) -> dict[str, str]:
    """The picture as a persona keeps it, as a value of the plan; nothing where there is none."""
    if not content:
        return {}
    if sum(persona_file.PICTURE in row.values for row in found.rows) >= MOST_PICTURES:
        found.leave(name, _("its picture; at most %s come along at a time"), str(MOST_PICTURES))
        return {}
    try:
        return {persona_file.PICTURE: persona_file.write_picture(make_portrait(content))}
    except MediaUnavailable as error:
        raise ImportRefused("%(file)s: %(why)s", file=name, why=_(str(error))) from error


def _read_openapi(name: str, data: bytes, found: Found) -> None:
    try:
        found.add(Kind.TOOLS, name, document=read_document(data))
    except DocumentError as error:
        raise ImportRefused(f"{name}: {error}") from error


#: What is in an object that has one of these, the first that counts.
READERS: dict[str, Callable[[dict[str, Any], str, Found], None]] = {
    persona_file.MARK: _read_own,
    "system_prompt": lambda given, stem, found: read_persona(given, found, stem),
    "mcpServers": lambda given, _stem, found: read_servers(given, found),
    **dict.fromkeys(
        ("provider_sources", "platform_settings"),
        lambda given, _stem, found: read_astrbot(given, {}, found),
    ),
    "entries": lambda given, _stem, found: read_memory(given, found),
    "summaries": lambda given, _stem, found: read_summaries(given, found),
}


# A plan on its way from the preview to the making.


def seal(found: Found) -> str:
    """``found`` for a hidden field: keys in it are not to be read there."""
    packed = zlib.compress(json.dumps(asdict(found)).encode())
    text = encrypt(base64.b85encode(packed).decode())
    if len(text) > MOST_CARRIED:
        raise ImportRefused(_("This is too much for a page: use manage.py import on the server."))
    return text


def unseal(text: str) -> Found:
    """What :func:`seal` made. Raises :class:`ImportRefused`."""
    try:
        kept = json.loads(zlib.decompress(base64.b85decode(decrypt(text))))
    except DecryptionError as error:
        raise ImportRefused(_("Choose the file once more.")) from error
    rows = [Wanted(**one | {"kind": Kind(one["kind"])}) for one in kept["rows"]]
    return Found(rows, kept["left"])

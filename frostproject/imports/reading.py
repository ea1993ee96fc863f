"""Which program a file or folder is of, and what is in it. Pure."""

import base64
import json
import zlib
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from django.utils.translation import gettext as _

from agent.pages import persona_file
from frostproject.imports.astrbot import read_astrbot, read_persona, read_servers
from frostproject.imports.cards import PNG, find_card, is_card, read_card
from frostproject.imports.documents import load_json, load_text
from frostproject.imports.frostagent import (
    read_environment,
    read_frostagent,
    read_memory,
    read_summaries,
)
from frostproject.imports.langbot import read_langbot
from frostproject.imports.plan import Found, ImportRefused, Kind, Wanted, as_text
from frostproject.imports.sources import KNOWN, Source
from tools.http_tools.openapi.document import DocumentError, read_document
from tools.secrets.encryption import DecryptionError, decrypt, encrypt

#: Characters of a plan that a page carries, below Django's ``DATA_UPLOAD_MAX_MEMORY_SIZE``.
MOST_CARRIED = 2_000_000
#: Rows of one plan.
MOST_ROWS = 5_000


def read_found(source: Source) -> Found:
    """Everything in ``source`` that can become rows. Raises :class:`ImportRefused`."""
    found = Found()
    try:
        if source.tables or any(name in KNOWN for name in source.files):
            found.take(read_astrbot(source.files, source.tables))
            found.take(read_langbot(source.tables))
            found.take(read_frostagent(source.files))
        else:
            for name, data in source.files.items():
                _read_file(name, data, found)
    except RecursionError as error:
        raise ImportRefused(_("%s is nested too deeply.") % source.name) from error
    if len(found.rows) > MOST_ROWS:
        raise ImportRefused(_("There are more than %d rows in it.") % MOST_ROWS)
    if not found.rows and not found.left:
        words = _("%s holds nothing that is known here: see “Coming from elsewhere”.")
        raise ImportRefused(words % source.name)
    return found


def _read_file(name: str, data: bytes, found: Found) -> None:
    """One file, by what is in it."""
    if data.startswith(PNG):
        card = load_json(find_card(data, name), name)
        read_card(card if isinstance(card, dict) else {}, PurePath(name).stem, found)
        found.leave(name, _("the picture; personas have none here"))
        return
    text = load_text(data, name)
    if text.lstrip()[:1] in ("{", "["):
        _read_json(name, load_json(data, name), data, found)
    elif any(line.startswith(("openapi:", "swagger:")) for line in text.splitlines()[:200]):
        _read_openapi(name, data, found)
    elif name.endswith(".env"):
        read_environment(text, PurePath(name).stem, found)
    else:
        raise ImportRefused(
            _("%s holds nothing that is known here: see “Coming from elsewhere”.") % name
        )


def _read_json(name: str, document: Any, data: bytes, found: Found) -> None:
    given, stem = document if isinstance(document, dict) else {}, PurePath(name).stem
    if persona_file.MARK in given:
        _read_own(name, given, found)
    elif is_card(given):
        read_card(given, stem, found)
    elif "system_prompt" in given:
        read_persona(given, found, stem)
    elif "openapi" in given or "swagger" in given:
        _read_openapi(name, data, found)
    elif "mcpServers" in given:
        read_servers(given, found)
    elif "provider_sources" in given or "platform_settings" in given:
        found.take(read_astrbot({"cmd_config.json": data}, {}))
    elif "entries" in given:
        read_memory(given, found)
    elif "summaries" in given:
        read_summaries(given, found)
    else:
        words = _("%s holds nothing that is known here: see “Coming from elsewhere”.")
        raise ImportRefused(words % name)


def _read_own(name: str, given: dict[str, Any], found: Found) -> None:
    try:
        values = persona_file.read_persona(given)
    except ValueError as error:
        words = _("%(file)s is no persona of this program: “%(field)s” is not of its kind.")
        raise ImportRefused(words % {"file": name, "field": error}) from error
    found.add(Kind.PERSONA, as_text(given.get("name")) or PurePath(name).stem, **values)


def _read_openapi(name: str, data: bytes, found: Found) -> None:
    try:
        found.add(Kind.TOOLS, name, document=read_document(data))
    except DocumentError as error:
        raise ImportRefused(f"{name}: {error}") from error


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
    return Found(
        [Wanted(**one | {"kind": Kind(one["kind"])}) for one in kept["rows"]], kept["left"]
    )

"""What a tool brings for its row: its initial settings and its own description."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tools.contract import ToolSpec
from tools.models import ToolConfig
from tools.models.choices import AllowedCallers, ToolScope, ToolVisibility
from tools.registry.declaration_review import (
    covers_fingerprint,
    declaration_fingerprint,
    needs_look,
    source_mark,
    tool_source,
)
from tools.registry.settings import ToolSettings
from tools.text.storable import make_storable

DEFAULT_TIMEOUT = 60
LONG_TIMEOUT = 3600
"""The first time limit of a long-running tool, which is as much as a row can say."""
_DECLARED = ("provider_name", "parameter_names", "declaration", "fingerprint")
MOST_ROWS = 5_000
"""The most rows. Beyond it, a tool that needs a review gets no row: a server can invent names
without end."""
MOST_OF_SOURCE = 1_000
"""The same of one server or plugin, so that it leaves room for those of the others."""


@dataclass(frozen=True, slots=True)
class DefaultConfig:
    """First values of a tool's row, carried in ``spec.metadata["default_config"]``."""

    mock_enabled: bool = False
    mock_value: str = ""
    timeout_seconds: int = DEFAULT_TIMEOUT
    visibility: str = ToolVisibility.VISIBLE.value
    pinned: bool = False
    scope: str = ToolScope.ALL.value
    allowed: str = AllowedCallers.EVERYONE.value
    calls_per_minute_person: int = 0
    calls_per_minute_chat: int = 0


def declared_settings(spec: ToolSpec) -> ToolSettings:
    """The settings of a tool that has no row (yet): what its declaration says.

    ``spec.metadata["timeout_seconds"]`` is for providers that know nothing of
    :class:`DefaultConfig`, and so are ``visibility`` and ``core_tool``, which are MaiBot's: a
    tool that declares itself visible, or of the core, is pinned.
    """
    first = _first_values(spec)
    first["timeout_seconds"] = spec.metadata.get("timeout_seconds", first["timeout_seconds"])
    return ToolSettings(name=spec.name, provider_name=spec.provider_name, **first)


def ensure_tool_rows(specs: Iterable[ToolSpec]) -> int:
    """Make a row for each tool that has none; returns how many were made.

    One query when nothing is new. What the operator set in a row stays. What comes from the
    declaration (provider, arguments, texts and schemas) follows it, and two processes that start
    together do not conflict. A new row of a tool that needs a review says so (see
    :mod:`tools.registry.declaration_review`).
    """
    wanted = {spec.name: _new_row(spec) for spec in specs}
    known = {row.name: row for row in ToolConfig.objects.only("name", "looked_at", *_DECLARED)}
    missing = list(
        _with_room([row for name, row in wanted.items() if name not in known], known.values())
    )
    if missing:
        ToolConfig.objects.bulk_create(missing, ignore_conflicts=True)
    for name in wanted.keys() & known.keys():
        declared = {field: getattr(wanted[name], field) for field in _DECLARED}
        if any(getattr(known[name], field) != value for field, value in declared.items()):
            # A row older than the sources belongs to the source that lists it first.
            same = covers_fingerprint(known[name].looked_at, wanted[name].fingerprint)
            looked = {"looked_at": wanted[name].fingerprint} if same else {}
            ToolConfig.objects.filter(name=name).update(**declared, **looked)
    return len(missing)


def _with_room(new: Iterable[ToolConfig], known: Iterable[ToolConfig]) -> Iterator[ToolConfig]:
    """Those of ``new`` that may get a row besides ``known``: all, except tools to review when there
    are too many."""
    sources = Counter(source_mark(row.fingerprint) for row in known)
    room = MOST_ROWS - sources.total()
    for row in new:
        if not row.fingerprint:
            yield row
        elif room > 0 and sources[source := source_mark(row.fingerprint)] < MOST_OF_SOURCE:
            sources[source] += 1
            room -= 1
            yield row


def declaration_json(spec: ToolSpec) -> dict[str, Any]:
    """The declaration of ``spec`` as JSON, for the pages that show the tool. Empty entries are left
    out."""
    said = {
        "title": spec.title,
        "description": spec.description,
        "provider_type": spec.provider_type,
        "parameters_schema": spec.parameters_schema,
        "output_schema": spec.output_schema,
        "icons": [asdict(icon) for icon in spec.icons],
        "annotation": asdict(spec.annotation) if spec.annotation else None,
        "is_long_running": spec.is_long_running,
        "requires_approval": "some"
        if callable(asks := spec.metadata.get("requires_approval"))
        else "all"
        if asks
        else "",
    }
    text = json.dumps(
        make_storable({key: value for key, value in said.items() if value}),
        ensure_ascii=False,
        default=str,
    )
    return dict(json.loads(text))  # as the database will give it back: tuples are lists


def _first_values(spec: ToolSpec) -> dict[str, Any]:
    seconds = LONG_TIMEOUT if spec.is_long_running else DEFAULT_TIMEOUT
    first = asdict(spec.metadata.get("default_config") or DefaultConfig(timeout_seconds=seconds))
    said = spec.metadata.get("visibility")
    if said in ToolVisibility.values:
        first |= {"visibility": said, "pinned": said == ToolVisibility.VISIBLE}
    elif spec.metadata.get("core_tool") is True:
        first["pinned"] = True
    return first


def _new_row(spec: ToolSpec) -> ToolConfig:
    schema = spec.parameters_schema
    first = _first_values(spec)
    first["timeout_seconds"] = max(1, round(declared_settings(spec).timeout_seconds))
    return ToolConfig(
        name=spec.name,
        provider_name=spec.provider_name,
        parameter_names=None if schema is None else list(schema.get("properties", {})),
        declaration=(said := declaration_json(spec)),
        fingerprint=declaration_fingerprint(said, tool_source(spec))
        if needs_look(spec.provider_type)
        else "",
        **first,
    )

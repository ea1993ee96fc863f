"""A plugin as its row has it, with its secrets opened for the plugin alone, and what it declares as
the model may be offered it.

The configuration is JSON in which each secret is sealed. A secret of any JSON type is stored as
``{"$sealed": "…"}``; the plugin gets it decrypted, and no page shows it. Values that a later
version of the plugin does not declare stay in the row, in case the next version does, and the
plugin does not get them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext

from tools.contract import ToolAvailabilityContext, ToolSpec
from tools.models import Plugin
from tools.models.tool_config import ToolScope, ToolVisibility
from tools.plugins.capabilities import effective_capabilities
from tools.schemas.untrusted_schemas import SchemaRefused, clean_schema
from tools.secrets.encryption import DecryptionError, decrypt, encrypt
from tools.text.untrusted import clean_line, clean_tool_name, clean_untrusted

PLUGIN = "plugin"
"""The type of the provider."""
MOST_TOOLS = 200
NAME_CHARS, DESCRIPTION_CHARS, TITLE_CHARS = 100, 4_000, 200
MOST_MILLISECONDS = 3_600_000
MOST_SESSIONS = 1_000
MOST_LEGACY = 20
"""Words of an old Action that are kept with its declaration."""


class UnusableTools(Exception):  # noqa: N818 - it says what is wrong
    """A plugin's tools cannot be offered, none of them; the message says why, for the operator."""


@dataclass(frozen=True, slots=True)
class PluginTool:
    """A tool of a plugin: ``name`` is the plugin's own for it, ``scope`` and ``sessions`` are where
    it may be seen."""

    name: str
    spec: ToolSpec
    scope: str = ToolScope.ALL.value
    sessions: frozenset[str] = frozenset()

    def is_seen_in(self, chat: ToolAvailabilityContext | None) -> bool:
        """Whether it is offered in ``chat``; where there is none (None), it is."""
        if chat is None:
            return True
        if self.scope != ToolScope.ALL and chat.is_group_chat is not (
            self.scope == ToolScope.GROUP
        ):
            return False
        here = {chat.session_id, chat.group_id, f"{chat.platform}:{chat.group_id}"} - {
            "",
            f"{chat.platform}:",
        }
        return not self.sessions or not here.isdisjoint(self.sessions)


def build_plugin_tools(
    plugin_id: str, declarations: Sequence[object], before: Sequence[PluginTool] = ()
) -> list[PluginTool]:
    """The tools that ``declarations`` make, all or none; one that is as it was ``before`` is the
    same object as then.

    Raises :class:`UnusableTools`.
    """
    if len(declarations) > MOST_TOOLS:
        many = gettext("it has %(number)d tools; %(most)d are the most") % {
            "number": len(declarations),
            "most": MOST_TOOLS,
        }
        raise UnusableTools(many)
    known = {tool.spec.name: tool for tool in before}
    tools: dict[str, PluginTool] = {}
    for declaration in declarations:
        tool = _tool(plugin_id, declaration)
        if tool.spec.name in tools:
            raise UnusableTools(
                gettext("two of its tools are called %(name)s") % {"name": tool.spec.name}
            )
        old = known.get(tool.spec.name)
        tools[tool.spec.name] = old if old is not None and old == tool else tool
    return list(tools.values())


def _tool(plugin_id: str, declaration: object) -> PluginTool:
    given = declaration if isinstance(declaration, Mapping) else {}
    name = given.get("name")
    shown = clean_line(name, NAME_CHARS)
    if not isinstance(name, str) or not (short := clean_tool_name(name)):
        raise UnusableTools(
            gettext("a tool is called “%(name)s”, of which nothing can be used") % {"name": shown}
        )
    said = given.get("metadata")
    said = said if isinstance(said, Mapping) else {}
    try:
        schema = clean_schema(given.get("parameters_schema") or {})
    except SchemaRefused as refused:
        raise UnusableTools(f"{shown}: {refused}") from refused
    spec = ToolSpec(
        name=short,
        description=clean_untrusted(given.get("description"), DESCRIPTION_CHARS),
        title=clean_line(given.get("title"), TITLE_CHARS),
        parameters_schema=schema,
        provider_name=plugin_id,
        provider_type=PLUGIN,
        metadata=_metadata(plugin_id, shown, said),
    )
    scope = said.get("chat_scope")
    return PluginTool(
        name,
        spec,
        scope if scope in ToolScope.values else ToolScope.ALL.value,
        _sessions(said.get("allowed_session")),
    )


def _metadata(plugin_id: str, name: str, said: Mapping[str, object]) -> dict[str, object]:
    """The metadata that the registry uses or the operator sees; anything else from the plugin is
    dropped."""
    metadata: dict[str, object] = {"plugin_id": plugin_id}
    if said.get("visibility") in ToolVisibility.values:
        metadata["visibility"] = said["visibility"]
    metadata |= {
        word: True
        for word in ("core_tool", "requires_approval", "is_long_running")
        if said.get(word) is True
    }
    if isinstance(undo := said.get("undo"), str):
        metadata["undo"] = clean_tool_name(undo)
    if (limit := said.get("timeout_ms")) is not None:
        metadata["timeout_seconds"] = _seconds(name, limit)
    if said.get("legacy_action") is True:
        kept = [
            item
            for item in said.items()
            if str(item[0]).startswith(("legacy_", "activation_", "invoke_"))
        ]
        metadata |= {
            clean_line(key, NAME_CHARS): _plain(value) for key, value in kept[:MOST_LEGACY]
        }
    return metadata


def _seconds(name: str, milliseconds: Any) -> float:
    is_number = isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool)
    if not is_number or not 0 < milliseconds <= MOST_MILLISECONDS:
        words = gettext("%(name)s: timeout_ms is %(given)s; 1 to %(most)d are possible")
        raise UnusableTools(
            words
            % {"name": name, "given": clean_line(str(milliseconds), 40), "most": MOST_MILLISECONDS}
        )
    return float(milliseconds) / 1000


def _sessions(given: object) -> frozenset[str]:
    listed = [given] if isinstance(given, str) else given if isinstance(given, list | tuple) else []
    return frozenset(clean_line(str(each), NAME_CHARS) for each in listed[:MOST_SESSIONS])


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [clean_line(str(each), NAME_CHARS) for each in value[:MOST_LEGACY]]
    return (
        value
        if isinstance(value, bool | int | float | None)
        else clean_line(str(value), NAME_CHARS)
    )


SEALED = "$sealed"

Schema = Mapping[str, object]
"""The manifest's ``config_schema``, whatever stands there."""


def config_properties(schema: object) -> dict[str, object]:
    """The schema of each value by name; {} where nothing can be configured."""
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return {str(name): part for name, part in found.items()} if isinstance(found, Mapping) else {}


def is_secret_schema(part: object) -> bool:
    """Whether a value is a secret, or has one in it: marked ``writeOnly`` or with the format
    ``password``."""
    if isinstance(part, Mapping):
        marked = part.get("writeOnly") is True or part.get("format") == "password"
        return marked or any(is_secret_schema(inner) for inner in part.values())
    return isinstance(part, list) and any(is_secret_schema(inner) for inner in part)


def is_encrypted(value: object) -> bool:
    return (
        isinstance(value, Mapping) and value.keys() == {SEALED} and isinstance(value[SEALED], str)
    )


def encrypt_config(config: Mapping[str, object], schema: object) -> dict[str, object]:
    """``config`` as a row may keep it: what ``schema`` calls secret is sealed, unless it is
    already."""
    secret = {name for name, part in config_properties(schema).items() if is_secret_schema(part)}
    return {
        name: {SEALED: encrypt(json.dumps(value))}
        if name in secret and not is_encrypted(value)
        else value
        for name, value in config.items()
    }


def decrypt_config(config: object, schema: object) -> dict[str, object]:
    """The configuration as the plugin gets it: the fields of ``schema``, with defaults for missing
    values.

    Raises :class:`tools.secrets.encryption.DecryptionError` when a secret has to be entered again.
    """
    parts = config_properties(schema)
    defaults = {
        name: part["default"]
        for name, part in parts.items()
        if isinstance(part, Mapping) and "default" in part
    }
    return defaults | {name: decrypt_value(value) for name, value in _known(config, parts)}


def undecryptable_names(config: object, schema: object) -> list[str]:
    """The names of the secrets that have to be entered again."""
    return [
        name
        for name, value in _known(config, config_properties(schema))
        if is_encrypted(value) and not _opens(value)
    ]


def decrypt_value(value: Any) -> Any:
    """A kept value in clear. Raises :class:`tools.secrets.encryption.DecryptionError`."""
    return json.loads(decrypt(value[SEALED])) if is_encrypted(value) else value


def _opens(value: object) -> bool:
    try:
        decrypt_value(value)
    except DecryptionError:
        return False
    return True


def _known(config: object, parts: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    kept = config if isinstance(config, Mapping) else {}
    return ((name, kept[name]) for name in parts if name in kept)


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """The used fields of one row. ``fault`` is the reason why the plugin cannot run, for the
    operator; "" when it can.

    ``granted`` are the capabilities that its manifest requests and the operator granted. ``named``
    are the tools that the manifest names.
    """

    pk: int
    folder: str
    plugin_id: str
    enabled: bool = False
    granted: frozenset[str] = frozenset()
    config: Mapping[str, object] = field(default_factory=dict)
    reloads: int = 0
    fault: str = ""
    named: tuple[str, ...] = ()

    @property
    def is_wanted(self) -> bool:
        return self.enabled and not self.fault


def to_plugin_settings(row: Plugin) -> PluginSettings:
    fault, config = row.fault, dict[str, Any]()
    try:
        config = decrypt_config(row.config, row.manifest.get("config_schema"))
    except DecryptionError:
        fault = fault or gettext(
            "The secret key of this installation has changed: type the plugin's secret values anew."
        )
    return PluginSettings(
        pk=row.pk,
        folder=row.folder,
        plugin_id=row.plugin_id or row.folder,
        enabled=row.enabled,
        granted=effective_capabilities(row.granted, row.manifest.get("capabilities")),
        config=config,
        reloads=row.reloads,
        fault=fault,
        named=tuple(
            str(tool.get("name", ""))
            for tool in row.manifest.get("tools") or ()
            if isinstance(tool, dict)
        ),
    )


def load_plugin_settings() -> tuple[PluginSettings, ...]:
    """Every row, by folder. To be called in the database thread."""
    return tuple(to_plugin_settings(row) for row in Plugin.objects.order_by("folder"))

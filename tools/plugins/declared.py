"""From what a plugin declares to what the model may be offered. Pure: everything here is words of
the plugin's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext

from tools.contract import ToolAvailabilityContext, ToolSpec
from tools.models.choices import ToolScope, ToolVisibility
from tools.schemas.untrusted_schemas import SchemaRefused, clean_schema
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
    plugin_id: str, declarations: Sequence[Any], before: Sequence[PluginTool] = ()
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


def _tool(plugin_id: str, declaration: Any) -> PluginTool:
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


def _metadata(plugin_id: str, name: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata that the registry uses or the operator sees; anything else from the plugin is
    dropped."""
    metadata: dict[str, Any] = {"plugin_id": plugin_id}
    if said.get("visibility") in ToolVisibility.values:
        metadata["visibility"] = said["visibility"]
    metadata |= {
        word: True
        for word in ("core_tool", "requires_approval", "is_long_running")
        if said.get(word) is True
    }
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


def _sessions(given: Any) -> frozenset[str]:
    listed = [given] if isinstance(given, str) else given if isinstance(given, list | tuple) else []
    return frozenset(clean_line(str(each), NAME_CHARS) for each in listed[:MOST_SESSIONS])


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [clean_line(str(each), NAME_CHARS) for each in value[:MOST_LEGACY]]
    return (
        value
        if isinstance(value, bool | int | float | None)
        else clean_line(str(value), NAME_CHARS)
    )

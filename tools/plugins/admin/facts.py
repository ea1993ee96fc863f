"""What is known of a plugin, as its page and the list of plugins show it. All words of plugins are
made harmless here."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext

from tools.admin.declaration_review import look_badge
from tools.admin.record_pages import render_badge
from tools.models import Plugin, PluginLogLine, PluginStatus, PluginValue, ToolConfig
from tools.plugins.capabilities import CAPABILITIES
from tools.plugins.folder import STALE
from tools.plugins.manifest import RequirementStatus, check_requirements
from tools.plugins.rows import config_properties
from tools.text.error_words import tell_again
from tools.text.readable import drop_surrogates, escape_invisible_chars, shorten_text

State = PluginStatus.PluginState
#: Lines of the log, crashes and stored values that a page shows; names of a list.
LINES, CRASHES, VALUES, NAMES = 200, 20, 20, 200
#: Versions and packages that a page shows.
REQUIREMENTS = 53
#: Characters of one line, of the last words of a crash, and of a value.
LINE_CHARS, LAST_WORDS, VALUE_CHARS = 4_000, 20_000, 200
#: Characters of what a tool says of itself.
TOOL_CHARS = 300
LEVELS = ("debug", "info", "warning", "error", "stdout", "stderr")
#: From the worst to the best.
STATES = (State.BROKEN, State.WAITING, State.STARTING, State.RUNNING)
BADGES = {
    State.BROKEN: "failed",
    State.WAITING: "waiting",
    State.STARTING: "pending",
    State.RUNNING: "succeeded",
}
#: What stays as it is: layout, the wide space, and signs without which some scripts and pictures
#: fall apart.
PLUGIN_UNESCAPED_CHARS = "\n\t\u3000\u200c\u200d\ufe0e\ufe0f"


def escape_plugin_text(text: object, limit: int = LINE_CHARS) -> str:
    """``text``, cut, with every character that would do something and not be seen written as its
    escape."""
    return escape_invisible_chars(
        drop_surrogates(shorten_text(str(text), limit)), keep=PLUGIN_UNESCAPED_CHARS
    )


def tell_fault(text: str) -> str:
    """What is wrong with a plugin, in the reader's language as far as it is of ours; what the
    plugin said itself is marked as such."""
    told = tell_again(text)
    shown = escape_plugin_text(told.sentence)
    return format_html('<span lang="">{}</span>', shown) if text and told.is_foreign else shown


# --- Capabilities ---------------------------------------------------------------


def requested_capabilities(plugin: Plugin) -> list[str]:
    """The capabilities that the manifest requests, in its order."""
    asked = manifest_of(plugin).get("capabilities")
    return (
        list(dict.fromkeys(name for name in asked if isinstance(name, str)))[:NAMES]
        if isinstance(asked, list)
        else []
    )


def grantable_capabilities(plugin: Plugin) -> list[str]:
    """Those of them that there are."""
    return [name for name in requested_capabilities(plugin) if name in CAPABILITIES]


def new_capabilities(plugin: Plugin) -> list[str]:
    """The capabilities that it requests now and did not at the last decision about it; none before
    the first decision."""
    if not isinstance(plugin.decided, list):
        return []
    return [name for name in grantable_capabilities(plugin) if name not in plugin.decided]


def manifest_of(plugin: Plugin) -> dict[str, Any]:
    return plugin.manifest if isinstance(plugin.manifest, dict) else {}


def config_schema_of(plugin: Plugin) -> Any:
    """The schema of its configuration; None where there is nothing to configure."""
    schema = manifest_of(plugin).get("config_schema")
    return schema if config_properties(schema) else None


# --- Status ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PluginPresence:
    """A plugin in one server process; ``is_stale``: the process has not been heard of for too
    long."""

    status: PluginStatus
    is_stale: bool
    badge: str
    error: str


def list_presences(statuses: Iterable[PluginStatus]) -> list[PluginPresence]:
    """The processes that know the plugin, those heard of last first."""
    now = timezone.now()
    return [
        _presence(one, now)
        for one in sorted(statuses, key=lambda one: (one.seen_at, one.process_id), reverse=True)
    ]


def _presence(status: PluginStatus, now: datetime) -> PluginPresence:
    is_stale = now - status.seen_at > STALE
    label = ("silent", gettext("no longer heard of")) if is_stale else _state(status.state)
    return PluginPresence(status, is_stale, render_badge(*label), tell_fault(status.error))


def _state(state: str) -> tuple[str, str]:
    if (
        state == State.RUNNING
    ):  # the same English word is used of messages, and is another one in other languages
        return BADGES[State.RUNNING], gettext("up and running")
    return (
        (BADGES[State(state)], str(State(state).label))
        if state in State.values
        else ("silent", escape_plugin_text(state, 40))
    )


def plugin_badge(plugin: Plugin, known: Sequence[PluginPresence]) -> str:
    """The plugin's state in one label: the worst one of all processes."""
    if plugin.fault:
        return render_badge("failed", gettext("cannot run"))
    if not plugin.enabled:
        return render_badge("silent", gettext("disabled"))
    states = {one.status.state for one in known if not one.is_stale}
    worst = next((state for state in STATES if state in states), None)
    return (
        render_badge(*_state(worst))
        if worst
        else render_badge("pending", gettext("not running anywhere"))
    )


def plugin_error(plugin: Plugin, known: Sequence[PluginPresence]) -> str:
    """What is wrong with it, in its row or in a process; "" where nothing is."""
    return tell_fault(plugin.fault) or next(
        (one.error for one in known if one.error and not one.is_stale), ""
    )


def list_requirements(plugin: Plugin) -> list[RequirementStatus]:
    """The versions and the Python packages that the manifest requires."""
    return [
        replace(
            need,
            what=escape_plugin_text(need.what, 200),
            found=escape_plugin_text(need.found, 40),
        )
        for need in islice(check_requirements(manifest_of(plugin)), REQUIREMENTS)
    ]


# --- Its tools ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PluginToolSummary:
    """A tool that the plugin names; ``config`` is the row of settings, where there is one that is
    its own."""

    name: str
    description: str
    is_offered: bool
    config: ToolConfig | None

    @property
    def look(self) -> str:
        """The badge of a tool that needs a review."""
        return look_badge(self.config) if self.config else ""


def list_plugin_tools(plugin: Plugin, known: Sequence[PluginPresence]) -> list[PluginToolSummary]:
    """The tools that it offers now, and those that its manifest names."""
    offered = [str(name) for one in known if not one.is_stale for name in _listed(one.status.tools)]
    named = {
        str(tool.get("name")): str(tool.get("description") or "")
        for tool in _named(plugin)
        if tool.get("name")
    }
    names = list(dict.fromkeys([*offered, *named]))[:NAMES]
    configs = {
        config.name: config
        for config in ToolConfig.objects.filter(name__in=names, provider_name=plugin.plugin_id)
    }
    return [
        _named_tool(name, named.get(name, ""), configs.get(name), is_offered=name in offered)
        for name in names
    ]


def _named_tool(
    name: str, description: str, config: ToolConfig | None, *, is_offered: bool
) -> PluginToolSummary:
    declared = config.declaration.get("description") if config else ""
    return PluginToolSummary(
        escape_plugin_text(name, 100),
        escape_plugin_text(declared or description, TOOL_CHARS),
        is_offered,
        config,
    )


def plugin_tool_names(plugin: Plugin, known: Sequence[PluginPresence]) -> list[str]:
    """What the list shows: the tools that are offered now; where none are, those that the manifest
    names."""
    offered = [str(name) for one in known if not one.is_stale for name in _listed(one.status.tools)]
    names = offered or [str(tool.get("name")) for tool in _named(plugin)]
    return [escape_plugin_text(name, 100) for name in dict.fromkeys(names)]


def _named(plugin: Plugin) -> list[dict[str, Any]]:
    return [tool for tool in _listed(manifest_of(plugin).get("tools")) if isinstance(tool, dict)]


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


# --- Log and history ------------------------------------------------------------


def log_page(plugin: Plugin, level: str, before: int) -> dict[str, Any]:
    """The newest lines of its log, or those before the line ``before``; of one ``level``, or of all
    for any other word."""
    rows = PluginLogLine.objects.filter(plugin=plugin)
    level = level if level in LEVELS else ""
    rows = rows.filter(level=level) if level else rows
    found = list((rows.filter(pk__lt=before) if before else rows).order_by("-pk")[: LINES + 1])
    lines = [
        (line.at, escape_plugin_text(line.level, 8), escape_plugin_text(line.text))
        for line in found[:LINES]
    ]
    older = found[LINES - 1].pk if len(found) > LINES else 0
    return {"lines": lines, "level": level, "levels": LEVELS, "older": older, "before": before}


def list_crashes(plugin: Plugin) -> list[tuple[datetime, str, str]]:
    """When its process ended, why, and its last words; the newest first."""
    rows = plugin.crash_reports.order_by("-pk")[:CRASHES]
    return [
        (crash.at, tell_fault(crash.reason), escape_plugin_text(crash.detail, LAST_WORDS))
        for crash in rows
    ]


def list_stored_values(plugin: Plugin) -> tuple[list[tuple[PluginValue, str, str]], int]:
    """The values that it stored last, each with its key and the beginning of it, and how many there
    are."""
    rows = PluginValue.objects.filter(plugin=plugin)
    newest = list(rows.order_by("-updated_at").values_list("pk", flat=True)[:VALUES])
    shown = [
        (
            row,
            escape_plugin_text(row.key, 128),
            escape_plugin_text(json.dumps(row.value, ensure_ascii=False), VALUE_CHARS),
        )
        for row in PluginValue.objects.filter(pk__in=newest).order_by("-updated_at")
    ]
    return shown, rows.count() if len(shown) == VALUES else len(shown)

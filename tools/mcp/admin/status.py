"""The status of MCP servers as last reported by the server processes, for the list and for a
server's page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Prefetch
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.translation import gettext

from tools.admin.declaration_review import look_badge
from tools.admin.declared import UNESCAPED_CHARS
from tools.admin.record_pages import render_badge
from tools.models import McpServer, McpServerStatus, ToolConfig
from tools.text.readable import drop_surrogates, escape_invisible_chars, shorten_text

FRESH = timedelta(seconds=60)
"""A running process reports more often than this."""
TOOLS_SHOWN = 200
ERROR_LIMIT = 2_000
FACT_LIMIT = 500
_State = McpServerStatus.ConnectionState
_COLOURS = {
    _State.CONNECTED: "delivered",
    _State.CONNECTING: "running",
    _State.WAITING: "waiting",
    _State.STOPPED: "failed",
}


@dataclass(frozen=True, slots=True)
class ServerReport:
    """The status of one server in one process; ``is_stale`` when the process has not reported for a
    while."""

    status: McpServerStatus
    badge: str
    error: str
    about: list[tuple[str, str]]
    tool_count: int
    left_out: list[tuple[str, str]]
    is_stale: bool


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool by the name that the model knows. ``url`` is the page of its row, "" where it has
    none; ``look`` the badge of one that needs a review.
    """

    name: str
    url: str = ""
    look: str = ""


def prefetch_living_statuses() -> "Prefetch[str, Any, str]":
    """For a query of servers: each gets a list ``living`` with its status in the running processes,
    in one more query."""
    rows = McpServerStatus.objects.filter(seen_at__gte=timezone.now() - FRESH).order_by(
        "process_id"
    )
    return Prefetch("statuses", queryset=rows.defer("about"), to_attr="living")


def state_badges(server: McpServer, living: Sequence[McpServerStatus]) -> str:
    """The states of a server in a list, each once with the number of processes that are in it."""
    if not server.enabled:
        return render_badge("off", gettext("switched off"))
    if not living and timezone.now() - server.updated_at < FRESH:
        return _state_badge(_State.CONNECTING)
    if not living:
        return render_badge("off", gettext("no server process runs"))
    states = [status.state for status in living]
    return format_html_join(
        " ", "{}", ((_state_badge(state, states.count(state)),) for state in dict.fromkeys(states))
    )


def _state_badge(state: str, number: int = 1) -> str:
    known = _State(state) if state in _State.values else _State.STOPPED
    return render_badge(_COLOURS[known], f"{known.label} ×{number}" if number > 1 else known.label)


def newest_error(living: Iterable[McpServerStatus]) -> tuple[str, datetime | None]:
    """The newest error and its time; ("", None) where there is none."""
    failed = [status for status in living if status.error]
    if not failed:
        return "", None
    newest = max(
        failed, key=lambda status: (status.error_at is not None, status.error_at or status.seen_at)
    )
    return format_server_error(newest.error), newest.error_at


def list_server_reports(server: McpServer) -> list[ServerReport]:
    """The status of ``server`` in every process, stale ones last."""
    limit = timezone.now() - FRESH
    found = [
        _report(status, is_stale=status.seen_at < limit)
        for status in server.statuses.order_by("process_id")
    ]
    return sorted(found, key=lambda report: report.is_stale)


def listed_tools(found: Iterable[ServerReport]) -> tuple[list[ListedTool], int]:
    """The tools that living processes have of a server, with the pages of their rows; and how many
    more there are."""
    names = sorted(
        {
            name
            for report in found
            if not report.is_stale
            for name in offered_tool_names(report.status.tools)
        }
    )
    shown = names[:TOOLS_SHOWN]
    rows = ToolConfig.objects.filter(name__in=shown).only("name", "fingerprint", "looked_at")
    known = {
        row.name: ListedTool(
            row.name, reverse("admin:tools_toolconfig_change", args=(row.pk,)), look_badge(row)
        )
        for row in rows
    }
    return [known.get(name, ListedTool(name)) for name in shown], len(names) - len(shown)


def offered_tool_names(entries: object) -> list[str]:
    """The names of the tools that are offered, in the ``tools`` of a status; others stand there
    with a reason."""
    return [
        str(entry["name"])
        for entry in _objects(entries)
        if entry.get("name") and not entry.get("left_out")
    ]


def _objects(entries: object) -> list[dict[str, Any]]:
    return (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )


def _short(text: object) -> str:
    return escape_invisible_chars(
        drop_surrogates(shorten_text(str(text or ""), FACT_LIMIT)), keep=UNESCAPED_CHARS
    )


def format_server_error(text: str) -> str:
    """An error of a server as a page shows it."""
    return escape_invisible_chars(
        drop_surrogates(shorten_text(text, ERROR_LIMIT)), keep=UNESCAPED_CHARS
    )


def server_facts(about: object) -> list[tuple[str, str]]:
    """The server's description of itself, as far as it has one."""
    known = about if isinstance(about, dict) else {}
    labels = {
        "title": gettext("display name"),
        "name": gettext("name"),
        "version": gettext("version"),
        "protocol": gettext("protocol"),
        "left_out": gettext("tools left out"),
        "instructions": gettext("instructions"),
    }
    return [(label, _short(known[key])) for key, label in labels.items() if known.get(key)]


def _report(status: McpServerStatus, *, is_stale: bool) -> ServerReport:
    return ServerReport(
        status,
        render_badge("off", gettext("gone silent")) if is_stale else _state_badge(status.state),
        format_server_error(status.error),
        server_facts(status.about),
        len(offered_tool_names(status.tools)),
        [
            (_short(entry.get("original") or entry.get("name")), _short(entry["left_out"]))
            for entry in _objects(status.tools)
            if entry.get("left_out")
        ][:TOOLS_SHOWN],
        is_stale,
    )

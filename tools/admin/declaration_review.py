"""The declarations of external tools for review: in full, and what has changed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from django.contrib import admin
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from tools.admin.record_pages import render_badge
from tools.models import ToolConfig
from tools.registry.catalogue import covers_fingerprint, judged_parts
from tools.text.readable import escape_invisible_chars, escape_invisible_json

#: The most tools on one page; nobody reviews more.
MOST_AT_ONCE = 50
#: Lines of a declaration that are compared; what is longer is shown as it was and as it is.
MOST_COMPARED = 500
#: Tools that need a review.
LOOK_NEEDED = ~Q(fingerprint="") & ~Q(looked_at=F("fingerprint"))
NEVER_LOOKED_AT = LOOK_NEEDED & Q(looked_at="")


def look_state(config: ToolConfig) -> str:
    """``new``, ``changed``, or "" when no review is needed."""
    if not config.fingerprint or covers_fingerprint(config.looked_at, config.fingerprint):
        return ""
    return "changed" if config.looked_at else "new"


def look_badge(config: ToolConfig) -> str:
    """The state as a label, "" for none."""
    match look_state(config):
        case "new":
            return render_badge("waiting", _("new"))
        case "changed":
            return render_badge("waiting", _("has changed"))
    return SafeString("")


class LookFilter(admin.SimpleListFilter):
    """Tools that are new or have changed since the last review."""

    title = _("looked at")
    parameter_name = "look"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("open", _("new or changed")), ("new", _("new")), ("changed", _("has changed"))]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        match self.value():
            case "open":
                return queryset.filter(LOOK_NEEDED)
            case "new":
                return queryset.filter(NEVER_LOOKED_AT)
            case "changed":
                return queryset.filter(LOOK_NEEDED).exclude(looked_at="")
        return queryset


@dataclass(slots=True)
class DeclarationDiff:
    """A tool's declaration line by line, each with ``-`` or ``+`` before it where it is gone or
    new. Nothing in it is unseen."""

    config: ToolConfig
    state: str = ""
    lines: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = look_state(self.config)
        now = list(declaration_lines(self.config.declaration))
        before = list(declaration_lines(self.config.looked_declaration or {}))
        if not before:
            self.lines = [(" ", line) for line in now]
        elif max(len(before), len(now)) > MOST_COMPARED:
            self.lines = [("-", line) for line in before] + [("+", line) for line in now]
        else:
            self.lines = list(_compared(before, now))

    @property
    def badge(self) -> str:
        return look_badge(self.config)

    @property
    def mark(self) -> str:
        """What is sent back: which tool, and what of it was shown."""
        return f"{self.config.pk}:{self.config.fingerprint}"


def _compared(before: list[str], now: list[str]) -> Iterator[tuple[str, str]]:
    for kind, start, end, first, last in SequenceMatcher(None, before, now).get_opcodes():
        if kind == "equal":
            yield from ((" ", line) for line in now[first:last])
        else:
            yield from (("-", line) for line in before[start:end])
            yield from (("+", line) for line in now[first:last])


def declaration_lines(declaration: dict[str, Any]) -> Iterator[str]:
    """Everything that is judged. A line of a text stands behind a bar, so that it cannot look like
    one of ours."""
    labels = {
        "title": gettext("title"),
        "description": gettext("description"),
        "parameters_schema": gettext("schema of the arguments"),
        "output_schema": gettext("schema of the result"),
        "annotation": gettext("annotation"),
        "requires_approval": gettext("asks an owner"),
        "is_long_running": gettext("long-running"),
    }
    for key, value in judged_parts(declaration).items():
        text = (
            escape_invisible_chars(value, keep="\n")
            if isinstance(value, str)
            else escape_invisible_json(value)
        )
        yield f"{labels.get(key, key)}:"
        yield from (f"  | {line}" for line in text.split("\n"))

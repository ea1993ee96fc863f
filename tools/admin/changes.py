"""Changes of tool configs: what was what before, for the row's page and for a list of its own."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib import admin
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Q
from django.template.loader import render_to_string
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tools.admin.record_pages import RecordAdmin, format_moment, parse_row_number, record_link
from tools.models import ToolConfig, ToolConfigChange
from tools.text.readable import drop_surrogates, format_readable, shorten_text

#: Characters of one value that a difference shows.
VALUE_LIMIT = 2_000


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field of a change, its values as the form calls them."""

    label: str
    before: str
    after: str


def list_differences(change: ToolConfigChange) -> list[FieldDifference]:
    """What ``change`` did, field by field in the order of the model."""
    return [
        FieldDifference(
            tool_field_label(name),
            format_field_value(name, change.before.get(name)),
            format_field_value(name, value),
        )
        for name, value in change.after.items()
    ]


def tool_field_label(name: str) -> str:
    """What people call a field; a field that is no more keeps its name."""
    try:
        return str(capfirst(ToolConfig._meta.get_field(name).verbose_name))  # type: ignore[union-attr]
    except FieldDoesNotExist:
        return name


def format_field_value(name: str, value: Any) -> str:
    """A value of the field ``name`` as text; "-" for an empty one."""
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if value in (None, "", {}, []):
        return "-"
    if name == "looked_at":
        return str(value)[:12]
    if not isinstance(value, str):
        return format_readable(value, limit=VALUE_LIMIT)
    return str(_choices(name).get(value, drop_surrogates(shorten_text(value, VALUE_LIMIT))))


def _choices(name: str) -> dict[Any, Any]:
    try:
        return dict(getattr(ToolConfig._meta.get_field(name), "flatchoices", ()))
    except FieldDoesNotExist:
        return {}


@admin.register(ToolConfigChange)
class ToolConfigChangeAdmin(RecordAdmin):
    list_display = ("changed", "tool", "author", "difference")
    list_select_related = ("config", "author")
    indexed_lookups = frozenset({"config__id__exact"})
    search_help_text: ClassVar = _("The name of a tool.")
    fields = ("tool", "author", "at", "difference")

    def exact_matches(self, term: str) -> Iterable[Q]:
        yield Q(pk=parse_row_number(term))
        yield Q(config__name=term)

    @admin.display(description=_("changed"))
    def changed(self, change: ToolConfigChange) -> str:
        return format_moment(change.at)

    @admin.display(description=_("tool"))
    def tool(self, change: ToolConfigChange) -> str:
        return record_link("tools_toolconfig", change.config_id, change.config)

    @admin.display(description=_("difference"))
    def difference(self, change: ToolConfigChange) -> str:
        return render_to_string(
            "admin/tools/toolconfig/difference.html", {"differences": list_differences(change)}
        )

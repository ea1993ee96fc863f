"""What a list says about itself: the conditions in force, and the names of its cells."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.forms import Media
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst
from django.utils.translation import gettext

from tools.text.readable import escape_direction_chars

CELL = re.compile(r"<td\b")
#: Scripts of Django's admin that a list or page uses that nobody edits: those of actions.
ACTION_SCRIPTS = frozenset({"admin/js/actions.js"})


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a list: what it is about, what it asks for, and the address without it."""

    title: str
    value: str
    without: str


def list_conditions(changes: ChangeList, request: HttpRequest) -> Iterator[Condition]:
    """The conditions in force: first those of the list's own filters, then those that a link or
    the address brought along."""
    offered: set[str] = set()
    for spec in changes.filter_specs:
        offered |= set(spec.expected_parameters())  # type: ignore[arg-type]  # a list of names
        choices = list(spec.choices(changes))
        for choice in choices[1:]:
            if choice["selected"]:
                title, value = str(capfirst(spec.title)), str(choice["display"])
                yield Condition(title, value, str(choices[0]["query_string"]))
    for lookup, values in changes.get_filters_params().items():
        if lookup not in offered:
            title, value = _in_words(
                changes,
                lookup,
                str(values[-1] if isinstance(values, list) and values else values),
                request,
            )
            yield Condition(title, value, changes.get_query_string(remove=[lookup]))


def _in_words(
    changes: ChangeList, lookup: str, value: str, request: HttpRequest
) -> tuple[str, str]:
    """What ``lookup`` is about, and ``value`` as people call it where the user may see that."""
    name, _parts, how = lookup.partition("__")
    if how == "lt" and name in ("id", "pk"):
        return gettext("Older than"), f"#{value}"
    try:
        field: Any = changes.model._meta.get_field(name)
    except FieldDoesNotExist:
        return name, value
    label = str(capfirst(getattr(field, "verbose_name", name)))
    if field.is_relation and field.related_model:
        return label, _row_name(changes, field.related_model, value, request)
    return label, str(dict(getattr(field, "flatchoices", ())).get(value, value))


def _row_name(changes: ChangeList, model: Any, value: str, request: HttpRequest) -> str:
    pages = changes.model_admin.admin_site._registry.get(model)
    if pages is None or not pages.has_view_permission(request):
        return f"#{value}"
    try:
        return str(pages.get_queryset(request).filter(pk=value).first() or f"#{value}")
    except (ValueError, ValidationError, OverflowError):
        return f"#{value}"


def name_controls(changes: ChangeList) -> None:
    """Give every field that the list edits a name of its own for those who do not see the column's
    head: the column, and the row."""
    for form in changes.formset.forms if changes.formset else ():
        for field in form.fields.values():
            if not field.widget.is_hidden:
                field.widget.attrs.setdefault("aria-label", f"{field.label}: {form.instance}")


def name_inline_controls(inlines: Iterable[Any]) -> None:
    """Give every field of the tables of rows on a row's page the name of its column."""
    for inline in inlines:
        rows = [form.fields for form in inline.formset.forms]
        for fields in (*rows, inline.formset.form.base_fields):  # the last for rows to be added
            for field in fields.values():
                if not field.widget.is_hidden and field.label:
                    field.widget.attrs.setdefault("aria-label", str(field.label))


def label_cell(cell: str, label: str) -> SafeString:
    """``cell``, a rendered ``<td>``, with the head of its column as an attribute, which narrow
    screens show before it; a ``<th>``, which names the row, gets none. In neither does a name turn
    the direction of what stands beside it."""
    cell = escape_direction_chars(cell)
    attribute = format_html(' data-label="{}"', capfirst(label))
    found = CELL.match(cell)
    at = found.end() if found else 0
    return mark_safe(f"{cell[:at]}{attribute if at else ''}{cell[at:]}")  # noqa: S308 - Django made it


def needed_media(media: Media, *, is_edited: bool, has_actions: bool) -> Media:
    """``media`` without the scripts of Django's admin that a page needs only for editing."""
    if is_edited:
        return media
    kept = ACTION_SCRIPTS if has_actions else frozenset()
    scripts = [
        script
        for script in media._js  # type: ignore[attr-defined]
        if not str(script).startswith("admin/js/") or script in kept
    ]
    return Media(css=media._css, js=scripts)  # type: ignore[attr-defined]

"""Changes of rows: what was what before, and the way back, on each row's page; and a list of all
of them."""

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.core.exceptions import FieldDoesNotExist, PermissionDenied, ValidationError
from django.db.models import Model, Q
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _

from tools.admin.filters import Rows
from tools.admin.record_pages import (
    Addresses,
    Column,
    PageAdmin,
    RecordAdmin,
    author_of,
    format_moment,
    parse_row_number,
    record_link,
)
from tools.live_rows import Tracked, tracked_fields
from tools.models import ToolConfig, ToolConfigChange
from tools.models.change import SAID, ChangeKind, row_subject
from tools.models.row_history import (
    SEALED,
    SHOWN,
    can_make_again,
    find_changes,
    format_entries,
    make_again,
    read_tracked_values,
    record_change,
    revert_change,
)
from tools.secrets.masked import MASK
from tools.text.readable import drop_surrogates, format_readable, shorten_text

#: Characters of one value that a difference shows.
VALUE_LIMIT = 2_000
#: Changes that a row's page shows.
CHANGES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field of a change, its values as the form calls them."""

    label: str
    before: str
    after: str


def list_differences(change: ToolConfigChange, model: type[Model]) -> list[FieldDifference]:
    """What ``change`` did to a row of ``model``, field by field in the order of the model."""
    return [
        FieldDifference(
            field_label(model, name),
            format_field_value(model, name, change.before.get(name)),
            format_field_value(model, name, value),
        )
        for name, value in (change.after or dict.fromkeys(change.before)).items()
        if name not in SAID
        and (change.after or change.before[name] not in (None, "", {}, []))
        and not (
            isinstance(value, dict) and SEALED in value and SHOWN not in value
        )  # kept along, and not different
    ]


def field_label(model: type[Model], name: str) -> str:
    """What people call a field; a field that is no more keeps its name."""
    known = tracked_fields(model)
    if name in known.related:
        return str(capfirst(known.related[name].label))
    if name in known.masked:
        return str(capfirst(known.masked[name][0]))
    try:
        field: Any = model._meta.get_field(name)
    except FieldDoesNotExist:
        return name
    return str(capfirst(field.verbose_name))


def format_moment_and_author(change: ToolConfigChange) -> str:
    """When a change was made, and by whom, in one line of text."""
    at = timezone.localtime(change.at).strftime("%Y-%m-%d %H:%M:%S")
    return f"{at} {change.made_by or gettext('the program')}"


def problem_lines(error: ValidationError, model: type[Model]) -> list[str]:
    """A line for each fault, with the field it is about."""
    return [
        f"{field_label(model, field)}: {line}"
        for field, lines in error.message_dict.items()
        for line in lines
    ]


def format_field_value(model: type[Model], name: str, value: Any) -> str:
    """A value of the field ``name`` as text; "-" for an empty one."""
    if isinstance(value, dict) and SHOWN in value:
        value = value[SHOWN]
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if value in (None, "", {}, []):
        return "-"
    if name in tracked_fields(model).related:
        related: Any = model._meta.get_field(name)
        return shorten_text(format_entries(related.related_model, value), VALUE_LIMIT)
    if name == "looked_at":
        return str(value)[:12]
    if isinstance(value, dict) and all(one == MASK for one in value.values()):
        return shorten_text(", ".join(f"{name} = {MASK}" for name in value), VALUE_LIMIT)
    field: Any = next((one for one in model._meta.concrete_fields if one.name == name), None)
    if field is not None and field.is_relation:
        found = field.related_model._base_manager.filter(pk=value).first()
        return shorten_text(str(found or f"#{value}"), VALUE_LIMIT)
    if not isinstance(value, str):
        return format_readable(value, limit=VALUE_LIMIT)
    return str(
        dict(getattr(field, "flatchoices", ())).get(
            value, drop_surrogates(shorten_text(value, VALUE_LIMIT))
        )
    )


class HistoryAdmin(PageAdmin):
    """Pages of rows whose changes are on record: shown on each row's page, and taken back there.

    A page that does not save through ``super().save_model`` saves within
    :func:`tools.models.row_history.record_changes` itself.
    """

    addresses: ClassVar[Addresses] = (("revert", "<path:object_id>/revert/<int:change_id>/"),)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        obj.was = read_tracked_values(obj) if change else {}
        super().save_model(request, obj, form, change)
        if not tracked_fields(self.model).related:
            record_change(obj, author_of(request), obj.was)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """One change for the row and all that belongs to it."""
        super().save_related(request, form, formsets, change)
        if tracked_fields(self.model).related:
            record_change(form.instance, author_of(request), form.instance.was)

    def revert_view(self, request: HttpRequest, object_id: str, change_id: int) -> HttpResponse:
        """Undo one change, then show the row's page, with what came of it."""
        row = get_object_or_404(self.get_queryset(request), pk=parse_row_number(object_id))
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        change = get_object_or_404(find_changes(row), pk=change_id)
        try:
            made = revert_change(change, row, author_of(request))
        except ValidationError as error:
            for line in problem_lines(error, self.model):
                self.message_user(request, line, messages.ERROR)
        else:
            text = gettext("There was nothing to take back: these values are in force.")
            if made is not None:
                told = gettext("Took back change #%(number)d.") % {"number": change.pk}
                self.log_change(request, row, told)
                fields = ", ".join(one.label for one in list_differences(made, self.model))
                text = gettext("Taken back: %(fields)s.") % {"fields": fields}
            self.message_user(request, text, messages.SUCCESS if made else messages.INFO)
        return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", row.pk)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *arguments: Any, **options: Any
    ) -> HttpResponse:
        row, is_tracked = options.get("obj"), tracked_fields(self.model) != Tracked()
        if row is not None and is_tracked and request.user.has_perm("tools.view_toolconfigchange"):
            rows = find_changes(row).select_related("author")[:CHANGES_SHOWN]
            known = tracked_fields(self.model).revertible
            context["changes"] = [
                (change, list_differences(change, self.model), bool(known & change.before.keys()))
                for change in rows
            ]
            context["revert_url"] = f"admin:{self.opts.app_label}_{self.opts.model_name}_revert"
            which = (
                f"config__id__exact={row.pk}"
                if isinstance(row, ToolConfig)
                else f"subject__exact={row_subject(row)}"
            )
            context["all_changes_url"] = (
                f"{reverse('admin:tools_toolconfigchange_changelist')}?{which}"
            )
        return super().render_change_form(request, context, *arguments, **options)


@admin.register(ToolConfigChange)
class ToolConfigChangeAdmin(RecordAdmin):
    addresses = (("make_again", "<int:pk>/make-again/"),)
    list_display = ("changed", "row", "made_by", "difference")
    list_select_related = ("config", "author")
    indexed_lookups = frozenset({"config__id__exact", "subject__exact"})
    text_fields = ("name",)
    search_help_text: ClassVar = _("The name of a row, such as a tool or an account.")
    fields = ("row", "made_by", "at", "difference")
    change_form_template = "admin/tools/toolconfigchange/change_form.html"
    exact_lookups: ClassVar = {"pk": parse_row_number, "config__name": str}
    columns: ClassVar = {
        "changed": Column(_("changed"), lambda change: format_moment(change.at)),
        "made_by": Column(_("author"), lambda change: change.made_by),
        "row": Column(_("row"), lambda change: _row_link(change)),
        "difference": Column(_("difference"), lambda change: _difference(change)),
    }

    def get_queryset(self, request: HttpRequest) -> Rows:
        """What was done with rows that the person may see."""
        rows: Rows = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        shown = Q(pk__in=())
        for model, pages in self.admin_site._registry.items():
            if pages.has_view_or_change_permission(request):
                shown |= Q(subject__startswith=f"{model._meta.label_lower}:")
                shown |= Q(config__isnull=False) if model is ToolConfig else Q(pk__in=())
        return rows.filter(shown)

    def page_context(self, request: HttpRequest, obj: ToolConfigChange) -> dict[str, Any]:
        return {"can_make_again": self._find_deleted(request, obj) is not None}

    def _find_deleted(self, request: HttpRequest, change: ToolConfigChange) -> type[Model] | None:
        """The model of a row that the person may make again; None where he may not, or what it
        needs was not kept."""
        model, _pk = _row_of(change)
        pages = self.admin_site._registry.get(model) if model else None
        if model is None or not isinstance(pages, HistoryAdmin):
            return None
        is_allowed = pages.has_add_permission(request) and can_make_again(change, model)
        return model if is_allowed else None

    def make_again_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Make a deleted row again, and show it."""
        change = get_object_or_404(self.get_queryset(request), pk=pk)
        model = self._find_deleted(request, change)
        if model is None or not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            row = make_again(change, model, author_of(request))
        except ValidationError as error:
            for line in problem_lines(error, model):
                self.message_user(request, line, messages.ERROR)
            return redirect("admin:tools_toolconfigchange_change", pk)
        self.message_user(request, gettext("It is there again."), messages.SUCCESS)
        return redirect(f"admin:{model._meta.label_lower.replace('.', '_')}_change", row.pk)


def change_words(change: ToolConfigChange) -> str:
    """What was done, in a sentence; fields are called as the forms call them."""
    message = change.words
    if change.kind == ChangeKind.DELETED:
        return gettext("Deleted.")
    if not message:
        model, _pk = _row_of(change)
        names = [name for name in change.after if name not in SAID]
        labels = [field_label(model, name) if model else name for name in names]
        message = json.dumps([{"changed": {"fields": labels}}])
    try:
        parts = json.loads(message)
        for part in parts:
            if "changed" in part:
                fields = part["changed"]["fields"]
                part["changed"]["fields"] = [_field_words(name) for name in fields]
        return str(LogEntry(change_message=json.dumps(parts)).get_change_message())
    except (ValueError, KeyError, TypeError):  # words of this program, or of an older Django
        return message


def _field_words(name: str) -> str:
    """A field's name in the reader's language: Django keeps names with a capital, under which no
    catalogue has them."""
    small = name[:1].lower() + name[1:]
    found = gettext(name)
    return str(capfirst(gettext(small))) if found == name else found


def _row_link(change: ToolConfigChange) -> str:
    model, pk = _row_of(change)
    name = change.config or change.name
    if model is None:
        return str(name)
    page, link = model._meta.label_lower.replace(".", "_"), name
    if change.kind != ChangeKind.DELETED:
        with suppress(NoReverseMatch):  # files have no page of their own
            link = record_link(page, pk, name)
    return format_html('{}<div class="quiet">{}</div>', link, model._meta.verbose_name)


def _difference(change: ToolConfigChange) -> str:
    model, _pk = _row_of(change)
    found = list_differences(change, model) if model else []
    is_plain = change.kind == ChangeKind.CHANGED and not change.words
    words = "" if is_plain else change_words(change)
    return render_to_string("admin/difference.html", {"differences": found, "words": words})


def _row_of(change: ToolConfigChange) -> tuple[type[Model] | None, Any]:
    """The model of the row that ``change`` is about, None where no page shows it any more, and its
    key."""
    if change.config_id is not None:
        return ToolConfig, change.config_id
    label, _colon, key = change.subject.partition(":")
    models = (model for model in admin.site._registry if model._meta.label_lower == label)
    return next(models, None), key

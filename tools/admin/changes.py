"""Changes of rows: what was what before, and the way back, on each row's page; and a list of all
of them."""

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from django.apps import apps
from django.contrib import admin, messages
from django.contrib.auth import get_permission_codename
from django.contrib.auth.models import User
from django.core.exceptions import FieldDoesNotExist, PermissionDenied, ValidationError
from django.db.models import Model, Q
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tools.admin.filters import Rows
from tools.admin.record_pages import (
    PageAdmin,
    RecordAdmin,
    format_moment,
    parse_row_number,
    record_link,
)
from tools.admin.related_rows import format_entries
from tools.admin.row_history import (
    SEALED,
    SHOWN,
    find_changes,
    record_changes,
    revert_change,
)
from tools.live_rows import Tracked, tracked_fields
from tools.models import ToolConfig, ToolConfigChange
from tools.models.change import SAID, row_subject
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
        for name, value in change.after.items()
        if name not in SAID
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
    :func:`tools.admin.row_history.record_changes` itself.
    """

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        is_alone = change and not tracked_fields(self.model).related
        with record_changes(cast("User", request.user), *([obj] if is_alone else [])):
            super().save_model(request, obj, form, change)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """One change for the row and all that belongs to it."""
        has_more = bool(tracked_fields(self.model).related) and request.method == "POST"
        row = self.get_object(request, object_id) if has_more and object_id else None
        author = cast("User", request.user)
        with record_changes(author, row) if row is not None else nullcontext():
            return super().changeform_view(request, object_id, form_url, extra_context)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.revert_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_revert"
        return [
            path("<path:object_id>/revert/<int:change_id>/", view, name=name),
            *super().get_urls(),
        ]

    def revert_view(self, request: HttpRequest, object_id: str, change_id: int) -> HttpResponse:
        """Undo one change, then show the row's page, with what came of it."""
        row = get_object_or_404(self.get_queryset(request), pk=parse_row_number(object_id))
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        change = get_object_or_404(find_changes(row), pk=change_id)
        try:
            made = revert_change(change, row, cast("User", request.user))
        except ValidationError as error:
            for line in problem_lines(error, self.model):
                self.message_user(request, line, messages.ERROR)
        else:
            self._tell(request, row, change, made)
        return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", row.pk)

    def _tell(
        self,
        request: HttpRequest,
        row: Model,
        change: ToolConfigChange,
        made: ToolConfigChange | None,
    ) -> None:
        if made is None:
            self.message_user(
                request,
                gettext("There was nothing to take back: these values are in force."),
                messages.INFO,
            )
            return
        self.log_change(
            request, row, gettext("Took back change #%(number)d.") % {"number": change.pk}
        )
        fields = ", ".join(difference.label for difference in list_differences(made, self.model))
        self.message_user(
            request, gettext("Taken back: %(fields)s.") % {"fields": fields}, messages.SUCCESS
        )

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *arguments: Any, **options: Any
    ) -> HttpResponse:
        row = options.get("obj")
        if row is not None and request.user.has_perm("tools.view_toolconfigchange"):
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
    list_display = ("changed", "row", "made_by", "difference")
    list_select_related = ("config", "author")
    indexed_lookups = frozenset({"config__id__exact", "subject__exact"})
    text_fields = ("name",)
    search_help_text: ClassVar = _("The name of a row, such as a tool or an account.")
    fields = ("row", "made_by", "at", "difference")

    def get_queryset(self, request: HttpRequest) -> Rows:
        """The changes of the rows that the person may see."""
        rows: Rows = super().get_queryset(request)
        hidden = [model for model in _models() if not _may_view(request, model)]
        for model in hidden:
            is_config = (
                Q(config__isnull=False)
                if model is ToolConfig
                else Q(subject__startswith=f"{model._meta.label_lower}:")
            )
            rows = rows.exclude(is_config)
        return rows

    def exact_matches(self, term: str) -> Iterable[Q]:
        yield Q(pk=parse_row_number(term))
        yield Q(config__name=term)

    @admin.display(description=_("changed"))
    def changed(self, change: ToolConfigChange) -> str:
        return format_moment(change.at)

    @admin.display(description=_("author"))
    def made_by(self, change: ToolConfigChange) -> Any:
        return change.made_by

    @admin.display(description=_("row"))
    def row(self, change: ToolConfigChange) -> str:
        model, pk = _row_of(change)
        name = change.config or change.name
        if model is None:
            return str(name)
        link = record_link(model._meta.label_lower.replace(".", "_"), pk, name)
        return format_html('{}<div class="quiet">{}</div>', link, model._meta.verbose_name)

    @admin.display(description=_("difference"))
    def difference(self, change: ToolConfigChange) -> str:
        model, _pk = _row_of(change)
        found = list_differences(change, model) if model else []
        return render_to_string("admin/difference.html", {"differences": found})


def _models() -> list[type[Model]]:
    return [
        model for model in apps.get_models() if isinstance(getattr(model, "tracked", None), Tracked)
    ]


def _may_view(request: HttpRequest, model: type[Model]) -> bool:
    names = [get_permission_codename(action, model._meta) for action in ("view", "change")]
    return any(request.user.has_perm(f"{model._meta.app_label}.{name}") for name in names)


def _row_of(change: ToolConfigChange) -> tuple[type[Model] | None, int]:
    """The model of the row that ``change`` is about, None where the program knows it no more, and
    its number."""
    if change.config_id is not None:
        return ToolConfig, change.config_id
    label, _colon, number = change.subject.partition(":")
    return next(
        (model for model in _models() if model._meta.label_lower == label), None
    ), parse_row_number(number)

"""The kit for pages of rows of settings, such as those of endpoints, MCP servers and personas. A
page declares its fields, what may be seen of them, its columns and its buttons; how rows are shown,
saved, compared with what was seen, and put on record is written here once. So are changes of rows:
what was what before, and the way back, on each row's page; and a list of all of them."""

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.core.exceptions import FieldDoesNotExist, PermissionDenied, ValidationError
from django.db.models import Model, Q
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, URLPattern, reverse
from django.utils import crypto, decorators, timezone
from django.utils.functional import SimpleLazyObject
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters

from tools.admin.record_pages import (  # author_of for pages of settings too
    Addresses,
    Column,
    ModelForm,
    PageAdmin,
    RecordAdmin,
    Rows,
    author_of,
    by_post,
    format_moment,
    parse_row_number,
    record_link,
    require,
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
from tools.secrets.encryption import DecryptionError
from tools.secrets.masked import MASK
from tools.text.readable import drop_surrogates, format_readable, shorten_text

#: Characters of one value that a difference shows.
VALUE_LIMIT = 2_000
#: Changes that a row's page shows.
CHANGES_SHOWN = 20


def list_differences(change: ToolConfigChange, model: type[Model]) -> list[dict[str, str]]:
    """What ``change`` did to a row of ``model``, field by field in the order of the model: the
    ``label``, and the value ``before`` and ``after`` as the form calls them."""
    return [
        {
            "label": field_label(model, name),
            "before": format_field_value(model, name, change.before.get(name)),
            "after": format_field_value(model, name, value),
        }
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

    def may_revert(self, request: HttpRequest, change: ToolConfigChange) -> bool:
        """Whether this person, who may change the row, may take back ``change`` of it."""
        return True

    @by_post
    def revert_view(self, request: HttpRequest, object_id: str, change_id: int) -> HttpResponse:
        """Undo one change, then show the row's page, with what came of it."""
        row = get_object_or_404(self.get_queryset(request), pk=parse_row_number(object_id))
        require(self.has_change_permission(request, row))
        change = get_object_or_404(find_changes(row), pk=change_id)
        require(self.may_revert(request, change))
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
                fields = ", ".join(one["label"] for one in list_differences(made, self.model))
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
            context["changes"] = SimpleLazyObject(  # some pages do not show them
                lambda: [
                    (
                        change,
                        list_differences(change, self.model),
                        bool(known & change.before.keys()) and self.may_revert(request, change),
                        change.words and change_words(change),
                    )
                    for change in rows
                ]
            )
            context["revert_url"] = f"admin:{self.opts.app_label}_{self.opts.model_name}_revert"
            is_tool, subject = isinstance(row, ToolConfig), row_subject(row)
            which = f"config__id__exact={row.pk}" if is_tool else f"subject__exact={subject}"
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

    @by_post
    def make_again_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Make a deleted row again, and show it."""
        change = get_object_or_404(self.get_queryset(request), pk=pk)
        model = self._find_deleted(request, change)
        if model is None or not self.has_view_permission(request):
            raise PermissionDenied
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
    words = "" if (change.kind == ChangeKind.CHANGED and not change.words) else change_words(change)
    return render_to_string("admin/difference.html", {"differences": found, "words": words})


def _row_of(change: ToolConfigChange) -> tuple[type[Model] | None, Any]:
    """The model of the row that ``change`` is about, None where no page shows it any more, and its
    key."""
    if change.config_id is not None:
        return ToolConfig, change.config_id
    label, _colon, key = change.subject.partition(":")
    models = (model for model in admin.site._registry if model._meta.label_lower == label)
    return next(models, None), key


#: The hidden field: which state of the row the page showed. ``admin/change_form.html`` puts it in.
SEEN = "row_seen"


def read_sealed(row: Model, name: str) -> Any:
    """The attribute ``name`` of ``row``, which is stored encrypted; None where it cannot be read
    any more."""
    try:
        return getattr(row, name)
    except DecryptionError:
        return None


def mask_values(values: object, form: str = "{} = {}") -> str:
    """The names of ``values`` for those who may not see these; "-" for none. None: they are sealed,
    and cannot be read any more."""
    if values is None:
        return gettext("cannot be read: sealed under another secret key")
    names = values if isinstance(values, Mapping) else ()
    return ", ".join(form.format(name, MASK) for name in names) or "-"


def row_version(row: Model, *, for_update: bool = False, is_fresh: bool = False) -> str:
    """What stands for the tracked values of the stored ``row``, or for all of one whose changes are
    on record with another row; "" for one that is not stored.

    It tells nothing about the values, which may be secret. What the program itself writes into
    other columns does not count."""
    values: Any = read_tracked_values(row, for_update=for_update, is_fresh=is_fresh)
    if tracked_fields(type(row)) == Tracked():
        values = type(row)._base_manager.filter(pk=row.pk).values().first()
    text = json.dumps(values, sort_keys=True, ensure_ascii=False)
    return crypto.salted_hmac("tools.admin.concurrent_edits", text).hexdigest() if values else ""


def conflict_lines(row: Model) -> list[str]:
    """What a page says whose row was changed by somebody else meanwhile: what happened, and what
    the newest change was."""
    lines = [
        gettext(
            "Somebody else has saved this row since you opened the page. Nothing of yours is "
            "saved yet, and all that you typed is still here: compare it, and save again to put "
            "it in place of the other's."
        )
    ]
    if change := find_changes(row).select_related("author").first():
        at = timezone.localtime(change.at).strftime("%Y-%m-%d %H:%M:%S")
        lines.append(f"{at} {change.made_by or gettext('the program')}")
        lines += [
            "{label}: {before} → {after}".format(**one)
            for one in list_differences(change, type(row))
        ]
    return lines


class SeenField(forms.CharField):
    """The hidden field; it is nothing that somebody changes."""

    widget = forms.HiddenInput

    def has_changed(self, initial: object, data: object) -> bool:
        return False


class SettingsForm(ModelForm):
    """One row. ``user`` is who fills it in.

    The form was made from a state of the row, and says so when the row has another one; saving
    again overwrites it. A request that leaves a field out, as a script's may, leaves that field as
    it is, and without the hidden one it is not compared.
    """

    user: Any = None
    #: Attributes of the row that are stored encrypted. Their fields know what is ``stored``, and
    #: show dots instead.
    sealed: ClassVar[tuple[str, ...]] = ()
    #: Whether what was sent holds some of the fields alone, so that a box which it does not tick
    #: stays as it is too.
    is_partial = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for name in self.sealed:
            field: Any = self.fields.get(name)
            if hasattr(field, "shown"):
                field.stored = read_sealed(self.instance, name)
                self.initial[name] = field.shown()
        locked = self.locked()
        for name, field in self.fields.items():
            field.disabled = field.disabled or name in locked or self._is_left_out(name, field)

    def locked(self) -> Collection[str]:
        """Fields that ``user`` cannot change in this row."""
        return ()

    def _is_left_out(self, name: str, field: forms.Field) -> bool:
        if not self.is_bound:
            return False
        whole_name = self.add_prefix(name)
        if self.is_partial:
            return whole_name not in self.data
        return bool(field.widget.value_omitted_from_data(self.data, self.files, whole_name))

    def show_unsaid(self, name: str, value: Any, source: Any = "") -> None:
        """Say below the field ``name``, while the row leaves it empty, that ``value`` holds
        instead, and from where: the words of ``source``."""
        field: Any = self.fields.get(name)
        if field is None:
            return
        if hasattr(field.widget, "choices"):
            is_switch = isinstance(field.widget, forms.NullBooleanSelect)
            known, empty = dict(field.widget.choices), "unknown" if is_switch else ""
            others = [one for one in field.widget.choices if one[0] != empty]
            field.widget.choices = [(empty, gettext("not said here")), *others]
            value = known.get({True: "true", False: "false"}.get(value, value), value)
        if self.get_initial_for_field(field, name) in (None, ""):
            ids = ("holds", "helptext") if field.help_text else ("holds",)
            described = (f"id_{self.add_prefix(name)}_{one}" for one in ids)
            field.widget.attrs["aria-describedby"] = " ".join(described)
            field.holds = {"value": value, "source": source}

    def refuse_kept(self, reasons: Mapping[str, str]) -> None:
        """Refuse the stored values that sealed fields keep, by field with the reason: they are not
        taken along to another place. A ``%s`` in it stands for their names."""
        for name, words in reasons.items():
            if kept := getattr(self.fields[name], "kept", ()):
                self.add_error(name, words.replace("%s", ", ".join(kept)))

    def _clean_form(self) -> None:
        super()._clean_form()  # type: ignore[misc]
        seen = self.data.get(self.add_prefix(SEEN), "")
        now = row_version(self.instance, for_update=True) if seen and self.instance.pk else ""
        if now and not crypto.constant_time_compare(seen, now):
            data: Any = self.data
            self.data = data = data.copy()
            data[self.add_prefix(SEEN)] = now  # who saves again has read what is said here
            self.add_error(None, ValidationError(conflict_lines(self.instance)))

    def _post_clean(self) -> None:
        """The sealed values are no fields of the model, so that Django does not carry them over."""
        super()._post_clean()  # type: ignore[misc]
        for name in self.sealed:
            value = self.cleaned_data.get(name)
            if value is not None and value != read_sealed(self.instance, name):
                setattr(self.instance, name, value)


def choice_alone(field: Any) -> Any:
    """The ``field`` of a form without the links beside its choice: what is chosen has a page of its
    own."""
    for name in ("add", "change", "view", "delete"):
        if hasattr(getattr(field, "widget", None), f"can_{name}_related"):
            setattr(field.widget, f"can_{name}_related", False)
    return field


class SettingsAdmin(HistoryAdmin):
    """Pages whose rows are not overwritten unseen. The model says in ``tracked`` what counts."""

    form = SettingsForm
    #: Of a line of the list, which edits a switch or two: the checks of ``form`` are of more.
    list_form: type[Any] = forms.ModelForm
    show_facets = admin.ShowFacets.NEVER
    show_full_result_count = False

    #: Read-only fields that a row has once it is stored.
    facts: ClassVar[tuple[str, ...]] = ()
    #: Fields that do not change once a row is stored.
    fixed: ClassVar[tuple[str, ...]] = ()
    #: Fields that only those see who may change the row, and what others see instead, "" for
    #: nothing.
    unseen: ClassVar[Mapping[str, str]] = {}
    #: Buttons of a row's page, for those who may change it: each is the method ``<name>_view`` of a
    #: request and a row, called by POST at ``<row>/<name>/``.
    buttons: ClassVar[tuple[str, ...]] = ()
    #: The same for pages, which are opened as well.
    row_pages: ClassVar[tuple[str, ...]] = ()
    #: Pages beside the list: each is the method ``<name>_view`` of a request, at ``<name>/``.
    list_pages: ClassVar[tuple[str, ...]] = ()

    #: The fields that are asked for first, and the groups of all others, each folded in until it
    #: is opened or says something. A field of both stands among the first.
    first_fields: ClassVar[tuple[Any, ...]] = ()
    more_fields: ClassVar[tuple[tuple[Any, tuple[Any, ...]], ...]] = ()

    columns: ClassVar[Mapping[str, Column]] = {
        "changed": Column(
            _("changed"), lambda row: format_moment(row.updated_at), admin_order_field="updated_at"
        )
    }

    # --- What is seen ---------------------------------------------------------------

    def looks(self, request: HttpRequest, obj: Model | None) -> bool:
        """Whether the person at the page of ``obj`` may not change it."""
        return obj is not None and not self.has_change_permission(request, obj)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        others: dict[Any, str] = dict(self.unseen) if self.looks(request, obj) else {}
        others |= {} if obj is not None else dict.fromkeys(self.facts, "")
        others |= dict.fromkeys(self.left_out(request, obj), "")
        shown = []
        for title, part in self._list_parts(request, obj):
            names = [others.get(name, name) for name in part["fields"]]
            if kept := tuple(dict.fromkeys(name for name in names if name)):
                shown.append((title, {**part, "fields": kept}))
        return shown

    def left_out(self, request: HttpRequest, obj: object) -> Collection[str]:
        """Fields that make no sense for this row."""
        return ()

    def _list_parts(self, request: HttpRequest, obj: object) -> Any:
        if not self.first_fields:
            return super().get_fieldsets(request, obj)
        first, more = set(self.first_fields), [(None, {"fields": self.first_fields})]
        for title, names in self.more_fields:
            others = tuple(name for name in names if name not in first)
            more.append((title, {"fields": others, "classes": ("collapse",)}))
        return more

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        stored = () if obj is None else (*self.facts, *self.fixed)
        instead = filter(None, self.unseen.values()) if self.looks(request, obj) else ()
        return (*super().get_readonly_fields(request, obj), *stored, *instead)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        form = super().get_form(request, obj, change=change, **options)
        own: dict[str, Any] = {"user": request.user}
        if obj is not None and not self.looks(request, obj):
            seen = row_version(obj) if request.method != "POST" else ""
            own[SEEN] = SeenField(required=False, initial=seen)
        return type(form.__name__, (form,), own)

    @decorators.method_decorator(sensitive_post_parameters())
    def changeform_view(self, *arguments: Any, **options: Any) -> Any:
        """Its reports of errors do not hold what was sent, which may be a key."""
        return super().changeform_view(*arguments, **options)

    def partial_form(self, request: HttpRequest, entered: object, row: Model | None = None) -> Any:
        """The form of ``row``, or of a new one, as a page sends it that holds some of its fields
        alone."""
        made = self.get_form(request, row, change=row is not None)
        made.is_partial = True
        return made(entered, instance=row)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        return choice_alone(super().formfield_for_dbfield(db_field, request, **options))

    def get_changelist_form(self, request: HttpRequest, **options: object) -> Any:
        return type(self.list_form.__name__, (self.list_form,), {"user": request.user})

    # --- Pages and buttons ----------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        views = {f"{name}/": (name, getattr(self, f"{name}_view")) for name in self.list_pages}
        for name in (*self.buttons, *self.row_pages):
            views[f"<path:object_id>/{name}/"] = (name, partial(self._open_row_page, name))
        own = [self.own_path(route, *named) for route, named in views.items()]
        return [*own, *super().get_urls()]

    def may_open(self, request: HttpRequest, row: Any) -> bool:
        """Whether the buttons and pages of ``row`` are for this person."""
        return self.has_change_permission(request, row)

    def _open_row_page(self, name: str, request: HttpRequest, object_id: str) -> HttpResponse:
        row = get_object_or_404(self.get_queryset(request), pk=parse_row_number(object_id))
        require(self.may_open(request, row))
        if name in self.buttons and request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        found: HttpResponse = getattr(self, f"{name}_view")(request, row)
        return found

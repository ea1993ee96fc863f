"""The kit for pages of rows of settings, such as those of endpoints, MCP servers and personas. A
page declares its fields, what may be seen of them, its columns and its buttons; how rows are shown,
saved, compared with what was seen, and put on record is written here once."""

import json
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern
from django.utils import crypto, decorators
from django.utils.translation import gettext, gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters

from tools.admin.changes import HistoryAdmin, format_moment_and_author, list_differences
from tools.admin.record_pages import (  # author_of for pages of settings too
    Column,
    ModelForm,
    author_of as author_of,
    format_moment,
    parse_row_number,
)
from tools.live_rows import Tracked, tracked_fields
from tools.models.row_history import find_changes, read_tracked_values
from tools.secrets.encryption import DecryptionError

#: The hidden field: which state of the row the page showed. ``admin/change_form.html`` puts it in.
SEEN = "row_seen"


def read_sealed(row: Model, name: str) -> Any:
    """The attribute ``name`` of ``row``, which is stored encrypted; None where it cannot be read
    any more."""
    try:
        return getattr(row, name)
    except DecryptionError:
        return None


def row_version(row: Model, *, for_update: bool = False) -> str:
    """What stands for the tracked values of the stored ``row``, or for all of one whose changes are
    on record with another row; "" for one that is not stored.

    It tells nothing about the values, which may be secret. What the program itself writes into
    other columns does not count."""
    values: Any = read_tracked_values(row, for_update=for_update)
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
        lines.append(format_moment_and_author(change))
        lines += [
            f"{one.label}: {one.before} → {one.after}"
            for one in list_differences(change, type(row))
        ]
    return lines


class SeenField(forms.CharField):
    """The hidden field; it is nothing that somebody changes."""

    widget = forms.HiddenInput

    def has_changed(self, initial: Any, data: Any) -> bool:
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

    def show_unsaid(self, name: str, value: Any, words: str = "%(value)s") -> None:
        """Show what counts while the field ``name`` is empty, as its placeholder or as its empty
        choice: ``value``, within ``words``."""
        widget: Any = self.fields[name].widget if name in self.fields else None
        if hasattr(widget, "choices"):
            empty = "unknown" if isinstance(widget, forms.NullBooleanSelect) else ""
            known = dict(widget.choices) | {True: gettext("yes"), False: gettext("no")}
            others = [one for one in widget.choices if one[0] != empty]
            widget.choices = [(empty, words % {"value": known.get(value, value)}), *others]
        elif widget is not None:
            text = "\n".join(value) if isinstance(value, tuple) else value
            shown = f"{text:g}" if isinstance(text, float) else text
            widget.attrs["placeholder"] = words % {"value": shown}

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

    changed = Column(
        _("changed"), lambda row: format_moment(row.updated_at), admin_order_field="updated_at"
    )

    # --- What is seen ---------------------------------------------------------------

    def looks(self, request: HttpRequest, obj: Model | None) -> bool:
        """Whether the person at the page of ``obj`` may not change it."""
        return obj is not None and not self.has_change_permission(request, obj)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        others: dict[Any, str] = dict(self.unseen) if self.looks(request, obj) else {}
        others |= {} if obj is not None else dict.fromkeys(self.facts, "")
        shown = []
        for title, part in super().get_fieldsets(request, obj):
            names = [others.get(name, name) for name in part["fields"]]
            if kept := tuple(dict.fromkeys(name for name in names if name)):
                shown.append((title, {**part, "fields": kept}))
        return shown

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

    def get_changelist_form(self, request: HttpRequest, **options: Any) -> Any:
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
        if not self.may_open(request, row):
            raise PermissionDenied
        if name in self.buttons and request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        found: HttpResponse = getattr(self, f"{name}_view")(request, row)
        return found

    def show_page(
        self, request: HttpRequest, name: str, title: str, row: Model | None = None, **page: Any
    ) -> HttpResponse:
        """The page of the template ``name``, about ``row`` or about all."""
        about = {"opts": self.opts, "original": row, "title": title, "media": self.media}
        about["subtitle"] = None if row is None else str(row)
        template = f"admin/{self.opts.app_label}/{self.opts.model_name}/{name}.html"
        context = {**self.admin_site.each_context(request), **about, **page}
        return TemplateResponse(request, template, context)

    def tell_done(
        self,
        request: HttpRequest,
        row: Model,
        words: str,
        logged: str = "",
        level: int = messages.SUCCESS,
    ) -> HttpResponse:
        """Back to the page of ``row``, which says what was done; ``logged`` stands in the row's
        history."""
        if logged:
            self.log_change(request, row, logged)
        self.message_user(request, words, level)
        return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", row.pk)

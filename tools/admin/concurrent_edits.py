"""Two people who edit one row: the second to save sees what the first has changed before
overwriting it."""

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext

from tools.admin.changes import format_moment_and_author, list_differences
from tools.admin.record_pages import ModelAdmin
from tools.admin.row_history import find_changes, read_tracked_values

#: The hidden field: which state of the row the page showed. ``admin/change_form.html`` puts it in.
SEEN = "row_seen"

if TYPE_CHECKING:
    _Form = forms.ModelForm[Any]
else:
    _Form = forms.ModelForm


def row_version(row: Model, *, for_update: bool = False) -> str:
    """What stands for the tracked values of the stored ``row``; "" for one that is not stored.

    It tells nothing about the values, which may be secret. What the program itself writes into
    other columns does not count."""
    values = read_tracked_values(row, for_update=for_update)
    text = json.dumps(values, sort_keys=True, ensure_ascii=False)
    return salted_hmac("tools.admin.concurrent_edits", text).hexdigest() if values else ""


class SeenField(forms.CharField):
    """The hidden field; it is nothing that somebody changes."""

    widget = forms.HiddenInput

    def has_changed(self, initial: Any, data: Any) -> bool:
        return False


class ConcurrentForm(_Form):
    """A form that was made from a state of its row, and says so when the row has another one.

    Saving again overwrites it. A request without the hidden field, as a script's may be, is not
    checked.
    """

    def _clean_form(self) -> None:
        super()._clean_form()  # type: ignore[misc]
        seen = self.data.get(self.add_prefix(SEEN), "")
        now = row_version(self.instance, for_update=True) if seen and self.instance.pk else ""
        if now and not constant_time_compare(seen, now):
            data: Any = self.data
            self.data = data = data.copy()
            data[self.add_prefix(SEEN)] = now  # who saves again has read what is said here
            self.add_error(None, ValidationError(conflict_lines(self.instance)))


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


class ConcurrentEdits(ModelAdmin):
    """Pages whose rows are not overwritten unseen. The model says in ``tracked`` what counts."""

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        if obj is None or not self.has_change_permission(request, obj):
            return form
        shown = row_version(obj) if request.method != "POST" else ""
        hidden = SeenField(required=False, initial=shown)
        return type(form.__name__, (ConcurrentForm, form), {SEEN: hidden})

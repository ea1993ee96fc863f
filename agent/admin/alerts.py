"""Where alerts go: rows with a button that tries them."""

from typing import Any, ClassVar

from asgiref.sync import async_to_sync
from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.alerts import (
    AlertKind,
    AlertLook,
    AlertMessage,
    AlertState,
    FoundAlert,
    RouteOutcome,
    service_address,
    show_address,
)
from agent.domain.states import RouteKind
from agent.models import AlertRoute
from agent.record.waiting import alert_notices
from agent.runtime import serving
from agent.runtime.alert_posts import post_message
from tools.admin.record_pages import Column, format_moment, label_of, render_badge
from tools.admin.settings_page import SettingsAdmin, SettingsForm, read_sealed
from tools.fetch.request import check_url
from tools.secrets.masked import MASK

LONGEST_ADDRESS = 4_000


class AddressField(forms.CharField):
    """An address that is stored sealed: shown as scheme and host, and left as it is while that
    stands there."""

    stored: str | None = ""
    kind = ""

    def shown(self) -> str:
        """ "" until it knows its ``kind``."""
        if self.stored is None:
            return MASK
        return show_address(self.kind, self.stored) if self.kind else ""

    def clean(self, value: object) -> Any:
        text = str(super().clean(value))
        return None if self.stored != "" and text == self.shown() else text


class AlertRouteForm(SettingsForm):
    """A route; its address is of its kind."""

    sealed = ("address",)
    address = AddressField(
        label=capfirst(_("address")),
        required=False,
        max_length=LONGEST_ADDRESS,
        widget=forms.TextInput(attrs={"class": "vTextField", "autocomplete": "off"}),
        help_text=_(
            "A webhook’s URL; of a service its key, or the address that it shows; of mail "
            "mailtos://USER:PASSWORD@HOST:465/?from=…&to=…; nothing for owners. It is stored "
            "encrypted, and of it only scheme and host are shown again."
        ),
    )
    alerts = forms.MultipleChoiceField(
        label=capfirst(_("alerts")),
        required=False,
        choices=AlertKind.choices,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None chosen: all."),
    )

    class Meta:
        model = AlertRoute
        fields = ("name", "enabled", "kind", "alerts", "quiet_hours")
        widgets = {  # noqa: RUF012 - Django's own way to say it
            "quiet_hours": forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"})
        }

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        own: Any = self.fields.get("address")
        if own is not None:
            own.kind = self.instance.kind
            self.initial["address"] = own.shown() if self.instance.pk else ""

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        kind, address = cleaned.get("kind", self.instance.kind), cleaned.get("address")
        is_kept = address is None and "address" not in self.errors
        if kind == RouteKind.OWNERS:
            cleaned["address"] = ""
        elif is_kept and kind != self.instance.kind:
            self.add_error("address", gettext("Enter it again: it is of another kind."))
        elif not is_kept and "address" not in self.errors:
            for line in _address_problems(kind, address or ""):
                self.add_error("address", line)
        return cleaned


def _address_problems(kind: str, address: str) -> list[str]:
    if not address:
        return [gettext("Enter where alerts are to go.")]
    if kind == RouteKind.WEBHOOK:
        return check_url(address)
    try:
        service_address(kind, address)
    except ValueError:
        return [gettext("This is no address of %s.") % label_of(RouteKind, kind)]
    return []


@admin.register(AlertRoute)
class AlertRouteAdmin(SettingsAdmin):
    form = AlertRouteForm
    list_display = ("name", "enabled", "goes_by", "place", "told_of", "last")
    buttons = ("test",)
    facts = ("last",)
    unseen: ClassVar = {"address": "place"}
    change_form_template = "admin/agent/alertroute/change_form.html"
    fieldsets = (
        (None, {"fields": ("name", "enabled", "kind", "address")}),
        (_("What it is told"), {"fields": ("alerts", "quiet_hours")}),
        (_("Now"), {"fields": ("last",)}),
    )
    columns: ClassVar = {
        "goes_by": Column(_("goes by"), lambda row: row.get_kind_display()),
        "place": Column(_("address"), lambda row: _shown(row)),
        "told_of": Column(_("alerts"), lambda row: _told_of(row)),
        "last": Column(_("last message"), lambda row: _last(row)),
    }

    def test_view(self, request: HttpRequest, row: AlertRoute) -> HttpResponse:
        """Send one message there, whether the route is enabled or not."""
        outcome = _test(row)
        alert_notices.note_outcome(row.pk, outcome)
        words = gettext("Tested: %(outcome)s") % {"outcome": outcome.label}
        is_told = outcome == RouteOutcome.TOLD
        return self.tell_done(
            request, row, words, words, messages.SUCCESS if is_told else messages.ERROR
        )


def _test(row: AlertRoute) -> RouteOutcome:
    alert = FoundAlert("test", "", gettext("This is a test. Alerts arrive here."))
    message = AlertMessage(AlertState.TEST, alert, timezone.now())
    if row.kind == RouteKind.OWNERS:
        served = serving.get_serving()
        look = served.find_alerts() if served and served.find_alerts else AlertLook()
        with transaction.atomic():
            is_told = alert_notices.note_owners(message, look)
        return RouteOutcome.TOLD if is_told else RouteOutcome.NOBODY
    address = read_sealed(row, "address")
    if address is None:
        return RouteOutcome.UNREADABLE
    return async_to_sync(post_message)(row.kind, address, message)


def _shown(row: AlertRoute) -> str:
    address = read_sealed(row, "address")
    return (MASK if address is None else show_address(row.kind, address)) or "-"


def _told_of(row: AlertRoute) -> str:
    return ", ".join(label_of(AlertKind, one) for one in row.alerts) or gettext("all")


def _last(row: AlertRoute) -> str:
    if not row.outcome:
        return "-"
    colour = "delivered" if row.outcome == RouteOutcome.TOLD else "failed"
    words = label_of(RouteOutcome, row.outcome)
    return format_html(
        '{} <span class="quiet">{}</span>',
        render_badge(colour, words),
        format_moment(row.outcome_at),
    )

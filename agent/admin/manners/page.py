"""Manners: how the bot behaves where, which of two rows counts, and one switch for everything."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.utils.html import format_html, format_html_join
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext, gettext_lazy as _

from agent.access import find_access
from agent.admin.chats.session_list import known_accounts
from agent.admin.manners.conflicts import find_contradictions
from agent.admin.manners.form import MannersForm
from agent.models import Manners
from agent.models.manners import HEARING, LIMITS, LISTS, SPEAKING, WAKING
from agent.pages.answering import EVERY_ACCOUNT
from agent.pages.manners import list_said, scope_words, silenced_words
from agent.record.settings import chat_manners, manners
from tools.admin import changes, filters, record_pages
from tools.admin.settings_page import SettingsAdmin, choice_alone

#: What a row says that a list shows, and contradictions that a row's page shows.
STATEMENTS, CONTRADICTIONS = 4, 20


class RowAccountFilter(admin.SimpleListFilter):
    """The rows for one account alone, or for every account."""

    title = _("account")
    parameter_name = "account"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        named = Manners.objects.exclude(account="").order_by("account")
        accounts = named.values_list("account", flat=True).distinct()
        return [(EVERY_ACCOUNT, _("every account")), *((one, one) for one in accounts)]

    def queryset(self, request: HttpRequest, queryset: filters.Rows) -> filters.Rows:
        value = self.value()
        return (
            queryset.filter(account="" if value == EVERY_ACCOUNT else value) if value else queryset
        )


@admin.register(Manners)
class MannersAdmin(SettingsAdmin):
    form = MannersForm
    list_display = ("name", "state", "scope", "says", "changed")
    list_filter = ("enabled", "silenced", RowAccountFilter, "chat_kind")
    search_fields = ("name", "account", "chats", "wake_names", "allowed_people", "denied_people")
    list_select_related = ("endpoint",)
    change_list_template = "admin/agent/manners/change_list.html"
    change_form_template = "admin/agent/manners/change_form.html"
    list_pages = ("everything",)
    scope = record_pages.Column(_("where it counts"), scope_words)
    fieldsets = (
        (None, {"fields": ("name", "enabled")}),
        (_("Where it counts"), {"fields": ("account", "chat_kind", "chats")}),
        (_("Silence"), {"fields": ("silenced", "quiet_hours")}),
        (_("Who is answered"), {"fields": (*WAKING, "answered", *LISTS)}),
        (_("How often at most"), {"fields": LIMITS}),
        (_("What the model hears"), {"fields": HEARING}),
        (_("How it speaks"), {"fields": (*SPEAKING, "endpoint")}),
        (_("Commands"), {"fields": ("command_prefix",)}),
    )

    def page_context(self, request: HttpRequest, obj: Manners | None) -> dict[str, Any]:
        page: dict[str, Any] = {"accounts": known_accounts(find_access(request.user))}
        if obj is not None and obj.pk and obj.enabled:
            page["contradictions"] = list(contradiction_lines(obj))
        if obj is not None and obj.is_silencing and obj.silenced_until is not None:
            page["silence_end"] = silenced_words(obj.silenced_until)
        return page

    def save_model(self, request: HttpRequest, obj: Manners, form: Any, change: bool) -> None:
        """Whoever ticks or unticks a silence says nothing of its end."""
        if "silenced" in form.changed_data:
            obj.silenced_until = None
        super().save_model(request, obj, form, change)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        return choice_alone(super().formfield_for_dbfield(db_field, request, **options))

    # --- Everything at once -----------------------------------------------------------

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        shown = {"is_all_silenced": any(row.is_silencing for row in chat_manners.find_everywhere())}
        return super().changelist_view(request, {**(extra_context or {}), **shown})

    def everything_view(self, request: HttpRequest) -> HttpResponse:
        """Silence every chat, or end that; then back to the page with the button."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        author = record_pages.author_of(request)
        if "silence" in request.POST:
            row = chat_manners.silence_everything(gettext("everywhere"), author)
            self.log_change(request, row, gettext("Silenced everything."))
            words = gettext("Every chat is silenced, from the next message on.")
            self.message_user(request, words, messages.WARNING)
        else:
            for row in chat_manners.end_silence_everywhere(author):
                self.log_change(request, row, gettext("Ended the silence of everything."))
            words = gettext("The bot speaks again; chats that rows of their own silence stay so.")
            self.message_user(request, words, messages.SUCCESS)
        back = request.POST.get("next", "")
        is_ours = url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure())
        return redirect(back if is_ours else "admin:agent_manners_changelist")

    # --- The list ---------------------------------------------------------------------

    @admin.display(description=_("state"))
    def state(self, row: Manners) -> str:
        if not row.enabled:
            return record_pages.render_badge("off", _("off"))
        if row.is_silencing and row.silenced_until is not None:
            return record_pages.render_badge("refused", silenced_words(row.silenced_until))
        if row.is_silencing:
            return record_pages.render_badge("refused", _("silenced"))
        return record_pages.render_badge("succeeded", _("on"))

    @admin.display(description=_("what it says"))
    def says(self, row: Manners) -> str:
        said = list(list_said(row))
        lines = format_html_join(
            "", "<div>{}: {}</div>", ((s.label, s.words) for s in said[:STATEMENTS])
        )
        more = len(said) - STATEMENTS
        beyond = gettext("and %(count)d more") % {"count": more} if more > 0 else ""
        return format_html('<div class="quiet">{}{}</div>', lines, beyond) if said else "-"


def contradiction_lines(row: Manners) -> Any:
    """For the page of ``row``: the rows that say something else of some of its chats, and which
    counts there."""
    others = sorted(Manners.objects.filter(enabled=True).exclude(pk=row.pk), key=manners.rank_row)
    for found in list(find_contradictions(row, others))[:CONTRADICTIONS]:
        fields = ", ".join(f"“{changes.field_label(Manners, name)}”" for name in found.fields)
        link = record_pages.record_link("agent_manners", found.other.pk, found.other.name)
        text = (
            gettext("Of %(fields)s, {row} says something else, and counts: it is more particular.")
            if found.other_counts
            else gettext("Of %(fields)s, {row} says something else; this row counts.")
        )
        yield format_html(text % {"fields": fields}, row=link)

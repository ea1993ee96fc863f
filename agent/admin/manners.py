"""Manners: how the bot behaves where, which of two rows counts, and one switch for everything."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext, gettext_lazy as _

from agent.access import find_access
from agent.admin.chats.session_list import known_accounts
from agent.markdown.drawing_packages import explain_missing
from agent.models import Manners, ModelEndpoint
from agent.models.manners import HEARING, LIMITS, LISTS, SPEAKING, WAKING
from agent.models.scope import SCOPE, rank_row
from agent.pages.manners import (
    EVERY_ACCOUNT,
    list_counting,
    list_said,
    scope_words,
    silenced_words,
)
from agent.record.settings import chat_manners, manners
from agent.record.settings.manners import ADDED_UP, said_values
from tools.admin.fields import choosing, name_source
from tools.admin.record_pages import (
    Column,
    author_of,
    by_post,
    choice_filter,
    go_back,
    record_link,
    render_badge,
    require,
)
from tools.admin.settings_page import (
    SettingsAdmin,
    SettingsForm,
    field_label,
)

#: The settings of the environment that hold where no row says a field.
VARIABLES = {
    "groups": "GROUP_REPLY_ON_MENTION",
    "wake_names": "BOT_NAME",
    "person_per_minute": "PERSON_ANSWERS_PER_MINUTE",
    "person_per_day": "PERSON_ANSWERS_PER_DAY",
    "chat_per_minute": "CHAT_ANSWERS_PER_MINUTE",
    "chat_per_day": "CHAT_ANSWERS_PER_DAY",
}
_ROWS = {
    **dict.fromkeys(("chats", "wake_names", "wake_prefixes", "quiet_hours"), 3),
    **dict.fromkeys(LISTS, 3),
}
#: What the lines of a field name.
_CHOSEN = {"chats": choosing("chat", "chat"), **dict.fromkeys(LISTS, choosing("person"))}


class MannersForm(SettingsForm):
    """A row of manners. What is wrong with a value is said beside its field, by the model."""

    class Meta:
        model = Manners
        exclude = ()
        widgets = {  # noqa: RUF012 - Django's own way to say it
            "account": forms.TextInput(attrs=choosing("account", list="accounts")),
            "wake_pattern": forms.TextInput(attrs={"class": "vTextField template"}),
            **{
                name: forms.Textarea(attrs={"rows": rows} | _CHOSEN.get(name, {}))
                for name, rows in _ROWS.items()
            },
        }
        help_texts = {  # noqa: RUF012 - as above
            "name": _("So that people find it again, such as “quiet at night”."),
            "chats": _(
                "One a line: group:123456 or private:20002. Empty: all chats of the account and "
                "kind. A row that lists a chat counts before one that does not."
            ),
            "silenced": _(
                "Nothing is said in these chats, whatever other rows say; what is said there is "
                "kept. Owners can still give commands."
            ),
            "quiet_hours": _(
                "One a line, for example 23:00-07:30 (over midnight) or 12:00-14:00, in the time "
                "zone of the chat. Owners are answered all the same."
            ),
            "groups": _("No: groups are kept on record and never answered."),
            "wake_names": _(
                "One a line, for example 小霜: a message of a group that holds it is answered, "
                "whatever its case. “-”: none."
            ),
            "wake_prefixes": _(
                "One a line, for example # or 霜霜，: a message of a group that begins with it is "
                "answered. “-”: none."
            ),
            "wake_pattern": _(
                "A message of a group in which it is found is answered. For example 天气|下雨 "
                "(one of two words), ^请问 (at the beginning), [?？]$ (at the end). “-”: none."
            ),
            "wake_chance": _(
                "Of the other messages of a group, so many in a hundred are answered, for example "
                "2. 0: none."
            ),
            "wake_always": _("In groups. Take care: this can cost much."),
            "allowed_people": _(
                "Ids, one a line. Not empty: nobody else is answered in these chats, but for "
                "owners."
            ),
            "denied_people": _(
                "Ids, one a line. What they say is kept, and not answered. Those of all rows for a "
                "chat add up."
            ),
            "listed_people": _(
                "Ids of people, one a line: answered whoever else is. Those of all rows for a chat "
                "add up. Limits count for them."
            ),
            "command_prefix": _("Before help, reset, stop, status and so on. “-”: no commands."),
            "member_commands": _("Who may give /mute, /unmute and /kick in groups."),
            "person_per_minute": _("0: no limit. Owners are exempt."),
            "person_per_day": _("0: no limit. The day begins at midnight."),
            **dict.fromkeys(("chat_per_minute", "chat_per_day"), _("0: no limit.")),
            "sends_per_minute": _("More wait for their turn. 0: no limit."),
            **dict.fromkeys(("mention", "quote", "endpoint"), ""),
            "ambient_chars": _("The newest of them that fit. 0: none are shown."),
            "ambient_minutes": _("Older ones are left out. 0: none are shown."),
            "part_chars": _("From 100 to 4500. A longer answer is sent in several messages."),
        }

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        if "markdown" in self.fields:
            self.fields["markdown"].help_text = explain_missing()
        if "endpoint" in self.fields:
            usable = Q(can_chat=True, enabled=True) | Q(pk=self.instance.endpoint_id)  # or chosen
            self.fields["endpoint"].queryset = ModelEndpoint.objects.filter(usable)  # type: ignore[attr-defined]
        row: Manners = self.instance
        if not row.pk:  # a new one, for the chats that a link leads to
            row = Manners(**{name: self.initial.get(name) or "" for name in SCOPE})
        for name, words, source in find_holding(row):
            self.show_unsaid(name, words, source)


def find_holding(row: Manners) -> Iterator[tuple[str, str, str]]:
    """What counts where ``row`` says nothing, with its words and where it comes from."""
    table = manners.load_manners_table()
    others = [other for other in table.rows if other.pk != row.pk and other.covers(row)]
    counting = manners.combine_rows(table.base(), others)
    for one in list_counting(counting, others):
        is_left = getattr(counting, one.field) is None  # to the persona, or to another limit
        source = "" if is_left else name_source(VARIABLES.get(one.field, ""))
        if one.row is not None:
            name = record_link("agent_manners", one.row.pk, one.row.name)
            source = format_html("{} “{}”", Manners._meta.verbose_name, name)
        yield one.field, one.words, source


def find_contradictions(
    row: Manners, others: Iterable[Manners]
) -> Iterator[tuple[Manners, list[str]]]:
    """Each of ``others`` that says something against ``row``, of chats that both are for, with the
    fields of which it does. Denial and silence add up, and contradict nothing."""
    mine = dict(said_values(row))
    for other in others:
        if other.pk == row.pk or not share_chats(row, other):
            continue
        theirs = dict(said_values(other))
        fields = [
            name
            for name in mine
            if name in theirs and name not in ADDED_UP and mine[name] != theirs[name]
        ]
        if fields:
            yield other, fields


def share_chats(one: Manners, other: Manners) -> bool:
    """Whether there can be a chat that both rows are for."""
    if one.account and other.account and one.account != other.account:
        return False
    if one.chat_kind and other.chat_kind and one.chat_kind != other.chat_kind:
        return False
    mine, theirs = set(one.chat_keys), set(other.chat_keys)
    if mine and theirs:
        return bool(mine & theirs)
    kind = one.chat_kind or other.chat_kind
    listed = mine or theirs
    return not listed or not kind or any(key.startswith(f"{kind}:") for key in listed)


#: What a row says that a list shows, and contradictions that a row's page shows.
STATEMENTS, CONTRADICTIONS = 4, 20


#: The rows for one account alone, or for every account.
RowAccountFilter = choice_filter(
    _("account"),
    "account",
    lambda request: [
        (EVERY_ACCOUNT, _("every account")),
        *Manners.objects.exclude(account="")
        .order_by("account")
        .values_list("account", "account")
        .distinct(),
    ],
    lambda rows, value: rows.filter(account="" if value == EVERY_ACCOUNT else value),
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
    columns: ClassVar = {
        "scope": Column(_("where it counts"), scope_words),
        "state": Column(_("state"), lambda row: _state(row)),
        "says": Column(_("what it says"), lambda row: _says(row)),
    }
    first_fields = (
        *("name", "chats", "wake_names", "answered", "quiet_hours", "ambient_messages"),
        *("part_chars", "endpoint"),
    )
    more_fields: ClassVar = (
        (_("Where it counts"), ("enabled", "account", "chat_kind")),
        (_("Silence"), ("silenced", "zone")),
        (_("Who is answered"), (*WAKING, *LISTS)),
        (_("How often at most"), LIMITS),
        (_("What the model hears"), HEARING),
        (_("How it speaks"), SPEAKING),
        (_("Commands"), ("command_prefix", "member_commands")),
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

    # --- Everything at once -----------------------------------------------------------

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        shown = {"is_all_silenced": any(row.is_silencing for row in chat_manners.find_everywhere())}
        return super().changelist_view(request, {**(extra_context or {}), **shown})

    @by_post
    def everything_view(self, request: HttpRequest) -> HttpResponse:
        """Silence every chat, or end that; then back to the page with the button."""
        require(self.has_change_permission(request))
        author = author_of(request)
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
        return go_back(request, "admin:agent_manners_changelist")


def _state(row: Manners) -> str:
    if not row.enabled:
        return render_badge("off", _("off"))
    if row.is_silencing:
        until = row.silenced_until
        return render_badge("refused", _("silenced") if until is None else silenced_words(until))
    if row.only_until is not None and row.only_until > timezone.now():
        words = gettext("answers only %(person)s") % {"person": row.only_person}
        return render_badge("refused", words)
    return render_badge("succeeded", _("on"))


def _says(row: Manners) -> str:
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
    others = sorted(Manners.objects.filter(enabled=True).exclude(pk=row.pk), key=rank_row)
    for other, names in islice(find_contradictions(row, others), CONTRADICTIONS):
        fields = ", ".join(f"“{field_label(Manners, name)}”" for name in names)
        link = record_link("agent_manners", other.pk, other.name)
        text = (  # the more particular row counts where both are for a chat
            gettext("Of %(fields)s, {row} says something else, and counts: it is more particular.")
            if rank_row(other) < rank_row(row)
            else gettext("Of %(fields)s, {row} says something else; this row counts.")
        )
        yield format_html(text % {"fields": fields}, row=link)

"""Reminders: what is said where, when, for whom, and what came of it."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import BadRequest
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from agent.access import NOTHING, find_access
from agent.access.players import CHANGE_TOOLS
from agent.admin.notes import SUGGESTED
from agent.domain.reminders import EVERYBODY
from agent.domain.states import ReminderKind
from agent.models import ChatSession, Reminder
from agent.pages.error_words import explain_error
from agent.pages.own_chats import OwnChatsAdmin
from agent.record.chats.chat_record import find_address
from agent.record.reminders.book import ReminderRefused, act as do_act, check_gap
from agent.record.settings.manners import load_manners_table
from agent.reminders.repeats import check_repeat, say_repeat
from agent.reminders.unclear import UnclearTime
from tools.admin.fields import SuggestedInput, choosing
from tools.admin.record_pages import (
    EXCERPT,
    Column,
    ModelForm,
    PageAdmin,
    RecordAdmin,
    Rows,
    author_of,
    by_post,
    clamp_text,
    format_moment,
    parse_row_number,
    record_link,
    render_state,
    require,
    with_less,
)
from tools.admin.settings_page import HistoryAdmin
from tools.models.row_history import record_changes
from tools.models.tool_config import check_ids, parse_ids
from tools.text.storable import make_storable

State = Reminder.State
#: What an act is called, what is said when it was done, and in which states it is offered.
ACT_WORDS: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
    "run": (_("Say it now"), _("It is said as soon as the account is there."), tuple(State.values)),
    "pause": (_("Pause"), _("Paused."), (State.WAITING,)),
    "resume": (_("Resume"), _("It goes on."), (State.PAUSED,)),
    "cancel": (_("Cancel it"), _("Cancelled."), (State.WAITING, State.PAUSED)),
}
#: What a repeat is counted from anew.
TIMES = frozenset({"due_at", "repeat"})
#: What a task does, and for whom.
ASKED = frozenset({"session", "text", "kind", "set_by"})
#: Of what names a chat, so many characters are looked at.
MOST_SIGNS = 300


class MomentInput(forms.DateTimeInput):
    """A day and a time in one field of the browser; two fields, as Django's own, are read too."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__({"class": "vTextField moment", "step": 1}, format="%Y-%m-%dT%H:%M:%S")

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        found = super().value_from_datadict(data, files, name)
        parts = [data.get(f"{name}_{part}", "") for part in (0, 1)]
        return found if found is not None else " ".join(parts).strip()


def _subject(session: ChatSession) -> str:
    """A chat as the search writes it."""
    return f"{session.platform}:{session.account}:{session.key}"


class ChatField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """A chat among those within reach: as the search writes it, without account or kind where
    there is no doubt, or by the number of its row."""

    def to_python(self, value: Any) -> Any:
        if value in self.empty_values or isinstance(value, ChatSession):
            return value or None
        text = make_storable(str(value)[:MOST_SIGNS]).strip().replace("：", ":")
        place, colon, peer = text.rpartition(":")
        place, _colon, kind = place.rpartition(":")
        platform, _colon, account = place.rpartition(":")
        fits = Q(peer_id=peer)
        if colon:
            said = {"kind": kind, "account": account, "platform": platform}
            fits &= Q(**{name: part for name, part in said.items() if part})
        else:
            fits |= Q(pk=parse_row_number(peer))
        rows: Any = self.queryset
        found = rows.filter(fits)[:2]
        if len(found) > 1:
            words = gettext("There is more than one: write onebot:ACCOUNT:group:ID.")
            raise forms.ValidationError(words)
        if not found:
            raise forms.ValidationError(self.error_messages["invalid_choice"])
        return found[0]

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.to_python(initial) != self.to_python(data))
        except forms.ValidationError:
            return True


class ReminderForm(ModelForm):
    """What is wrong with a value is said beside its field."""

    #: What the writer may reach; set for each of them.
    access = NOTHING
    #: Whether tasks may be done in the name of others, with what tools allow them.
    may_name_others = False
    due_at = forms.DateTimeField(
        label=_("Due"), widget=MomentInput, help_text=_("In the time zone of this page.")
    )

    class Meta:
        model = Reminder
        fields = ("session", "text", "kind", "due_at", "repeat", "mention", "set_by", "late")
        field_classes = {"session": ChatField}  # noqa: RUF012 - Django's own form
        help_texts = {"session": _("Its name, or as group:123456.")}  # noqa: RUF012 - as above
        widgets = {  # noqa: RUF012 - Django's own form
            "text": forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
            "repeat": forms.TextInput(attrs={"class": "vTextField template"}),
            "mention": forms.Textarea(attrs={"rows": 2} | choosing("person")),
            "set_by": forms.TextInput(attrs={"class": "vTextField"} | choosing("person")),
        }

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if (field := self.fields.get("session")) is None:  # a page that only shows
            return
        reached, chosen = self.access.sessions(), self.initial.get("session")
        newest = reached.order_by("-last_message_at", "-pk")[:SUGGESTED]
        known = [(_subject(one), f"{one} · {one.account}") for one in newest]
        field.queryset = reached  # type: ignore[attr-defined]
        field.widget = SuggestedInput(known, choosing("chat", "subject"))
        if row := reached.filter(pk=parse_row_number(str(chosen or ""))).first():
            self.initial["session"] = _subject(row)

    def clean_mention(self) -> str:
        people = parse_ids(self.cleaned_data["mention"])
        if problems := check_ids("\n".join(one for one in people if one != EVERYBODY)):
            raise forms.ValidationError(problems)
        return "\n".join(dict.fromkeys(people))

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        is_new = "due_at" in self.changed_data or self.instance.pk is None
        if is_new and (due := cleaned.get("due_at")) and due <= timezone.now():
            self.add_error("due_at", gettext("That is over."))
        if cleaned.get("repeat") and not self.errors:
            self._check_repeat(cleaned)
        is_in_name = cleaned.get("kind") == ReminderKind.TASK and cleaned.get("set_by")
        if is_in_name and not self.may_name_others and ASKED & set(self.changed_data):
            text = gettext("Only who may change tools has tasks done for others: leave this empty.")
            self.add_error("set_by", text)
        return cleaned

    def _check_repeat(self, cleaned: dict[str, Any]) -> None:
        session: ChatSession = cleaned["session"]
        zone = load_manners_table().find(find_address(session)).zone
        try:
            cleaned["repeat"] = check_repeat(cleaned["repeat"])
            row = Reminder(**{name: cleaned[name] for name in ("due_at", "repeat", "kind")})
            check_gap(row, is_owner=True, zone=zone)
        except UnclearTime as error:
            self.add_error("repeat", error.say())
        except ReminderRefused as error:
            self.add_error("repeat", str(error))


def _chat_link(row: Reminder) -> str:
    return record_link("agent_chatsession", row.session_id, row.session.title or row.session.key)


def describe_repeat(row: Reminder) -> str:
    """Its rule in words; "" where there is none."""
    return say_repeat(row.repeat) if row.repeat else ""


def _due(row: Reminder) -> str:
    return with_less(format_moment(row.due_at), describe_repeat(row))


def _outcome(row: Reminder) -> str:
    words = explain_error(row.outcome).sentence if row.outcome else ""
    return with_less(render_state(row), words)


def _list_action(act: str, words: Any) -> Any:
    """The act for all that are chosen in the list."""

    @admin.action(description=words, permissions=["change"])
    def carry_out(page: "ReminderAdmin", request: HttpRequest, queryset: Rows) -> None:
        done = sum(page.carry_out(request, row, act) for row in queryset.order_by("pk"))
        text = ngettext("%(count)d reminder: done.", "%(count)d reminders: done.", done)
        page.message_user(request, text % {"count": done}, messages.SUCCESS)

    carry_out.__name__ = act  # by which the list names it
    return carry_out


@admin.register(Reminder)
class ReminderAdmin(OwnChatsAdmin, HistoryAdmin, RecordAdmin):
    rights = PageAdmin.rights
    addresses = (("act", "<path:object_id>/act/<slug:act>/"),)
    form = ReminderForm
    actions = tuple(_list_action(act, words) for act, (words, *_) in ACT_WORDS.items())  # type: ignore[assignment] # the base has none
    list_display = ("due", "excerpt", "chat", "who", "verdict")
    list_filter = ("state", "kind", "late")
    list_select_related = ("session",)
    are_few = True
    text_fields = ("text", "outcome")
    exact_lookups: ClassVar = {"pk": parse_row_number, "set_by": str, "session__peer_id": str}
    free_lookups = frozenset({*RecordAdmin.free_lookups, "session__id__exact"})
    search_help_text: ClassVar = _(
        "Words of the text, #number, or the id of a person or of a group."
    )
    change_form_template = "admin/agent/reminder/change_form.html"
    readonly_fields = ("outcome_words", "last_said")

    columns: ClassVar = {
        "due": Column(_("due"), _due),
        "excerpt": Column(
            _("text"),
            lambda row: with_less(clamp_text(row.text[:EXCERPT]), row.get_kind_display()),
        ),
        "chat": Column(_("chat session"), _chat_link),
        "who": Column(
            _("set by"),
            lambda row: with_less(row.set_by or "-", format_moment(row.created_at)),
        ),
        "verdict": Column(_("state"), _outcome),
        "outcome_words": Column(_("outcome"), _outcome),
        "last_said": Column(
            _("last message"),
            lambda row: (
                record_link("agent_message", row.last_message, f"#{row.last_message}") or "-"
            ),
        ),
    }

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        first = ("session", "text", "kind", "due_at", "repeat", "mention")
        shown = [(None, {"fields": first}), (_("More"), {"fields": ("set_by", "late")})]
        if obj is not None:
            shown.append((_("What came of it"), {"fields": self.readonly_fields}))
        return shown

    def get_form(
        self, request: HttpRequest, obj: object = None, change: bool = False, **options: object
    ) -> Any:
        form: Any = super().get_form(request, obj, change, **options)
        form.access = find_access(request.user)
        form.may_name_others = request.user.has_perm(CHANGE_TOOLS)
        return form

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """Nothing is said while its row is being changed."""
        if request.method == "POST":
            list(Reminder.objects.select_for_update().filter(pk=parse_row_number(object_id)))
        return super().get_object(request, object_id, from_field)

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        may = obj is not None and self.has_change_permission(request, obj)
        shown = [
            (name, words)
            for name, (words, _done, states) in ACT_WORDS.items()
            if may and obj.state in states
        ]
        return {"reminder_acts": shown}

    def save_model(self, request: HttpRequest, obj: Reminder, form: Any, change: bool) -> None:
        """What is over waits again where it is given another time."""
        may_name = form.may_name_others or obj.kind != ReminderKind.TASK
        if not obj.set_by and may_name and obj.session.kind == ChatSession.Kind.PRIVATE:
            obj.set_by = obj.session.peer_id
        if TIMES & set(form.changed_data):
            obj.starts_at = None
            obj.state = obj.state if obj.is_open else State.WAITING
        super().save_model(request, obj, form, change)

    @by_post
    def act_view(self, request: HttpRequest, object_id: str, act: str) -> HttpResponse:
        """Do one of :data:`ACT_WORDS` with one reminder."""
        row = get_object_or_404(self.get_queryset(request), pk=parse_row_number(object_id))
        require(self.has_change_permission(request, row))
        if act not in ACT_WORDS:
            raise BadRequest
        words, done, _states = ACT_WORDS[act]
        if self.carry_out(request, row, act):
            return self.tell_done(request, row, str(done), str(words))
        told = gettext("Nothing was changed: it is on its way, or over.")
        return self.tell_done(request, row, told, level=messages.WARNING)

    def carry_out(self, request: HttpRequest, row: Reminder, act: str) -> bool:
        """Whether there was anything to do; on record, with its author."""
        with transaction.atomic():
            locked = Reminder.objects.select_for_update().get(pk=row.pk)
            with record_changes(author_of(request), locked):
                return do_act(locked, act)

"""Requests of people to be let in: one click or many at once, and the rules that decide before."""

from collections import Counter
from collections.abc import Collection
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.core.exceptions import BadRequest
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from agent.access import ChatAccess, find_access
from agent.access.players import may_decide
from agent.admin.chats.session_list import known_accounts
from agent.domain.requests import MOST_REASON, RuleAction
from agent.domain.states import ActKind
from agent.models import JoinRequest, RequestRule
from agent.models.scope import SCOPE
from agent.pages.manners import scope_words
from agent.pages.own_chats import OwnAccountsAdmin, own_requests
from agent.record.chats.chat_record import find_session
from agent.record.requests.deciding import decide
from agent.record.waiting.operator_acts import author_name, record_act
from agent.runtime.serving import steer
from tools.admin.fields import choosing
from tools.admin.record_pages import (
    EXCERPT,
    Column,
    RecordAdmin,
    Rows,
    author_of,
    by_post,
    clamp_text,
    format_moment,
    go_back,
    parse_row_number,
    render_badge,
    render_state,
    require,
    with_less,
)
from tools.admin.settings_page import SettingsAdmin, SettingsForm, field_label
from tools.text.readable import escape_invisible_chars, shorten_text
from tools.text.storable import make_storable

State = JoinRequest.State
#: What each act is called, and how it stands on record.
ACTS: dict[str, tuple[Any, ActKind]] = {
    "refuse": (_("Refuse"), ActKind.KEEP_OUT),
    "approve": (_("Approve"), ActKind.LET_IN),
}


REASON = _("Reason of a refusal")


class ReasonForm(ActionForm):
    """The words of refusals, beside the choice of what is done with many rows."""

    reason = forms.CharField(
        label="",
        required=False,
        widget=forms.TextInput({"placeholder": REASON, "aria-label": REASON}),
    )


def _list_action(act: str, words: Any) -> Any:
    """The act for all that are chosen in the list."""

    @admin.action(description=words, permissions=["change"])
    def carry_out(page: "JoinRequestAdmin", request: HttpRequest, queryset: Rows) -> None:
        page.carry_out(request, queryset, act)

    carry_out.__name__ = act  # by which the list names it
    return carry_out


def _who(row: JoinRequest) -> str:
    beside = (
        *(row.get_kind_display(), row.group_id),
        gettext("level %d") % row.level if row.level else "",
        gettext("invited by %s") % row.inviter_id if row.inviter_id else "",
    )
    return with_less(row.user_id, " ".join(filter(None, beside)))


def _why(row: JoinRequest) -> str:
    return escape_invisible_chars(gettext(row.reason)) if row.reason else ""


def _verdict(row: JoinRequest) -> str:
    """The state with who decided, or why it is so."""
    told = gettext("The client is being told.") if row.decision else _why(row)
    return with_less(render_state(row), f"{row.decided_by} {told}".strip())


def _list_acts(row: JoinRequest) -> list[tuple[str, Any]]:
    """What can be decided over ``row``, with the words for it."""
    acts = [(act, words) for act, (words, _kind) in ACTS.items() if row.is_open]
    return acts if row.flag is not None else acts[:1]


def _buttons(row: JoinRequest) -> str:
    """What one click decides; the words beside the list go along."""
    return format_html_join(
        " ",
        '<button class="button plain" formnovalidate formaction="{}">{}</button>',
        (
            (reverse("admin:agent_joinrequest_act", args=(row.pk, act)), words)
            for act, words in reversed(_list_acts(row))
        ),
    )


@admin.register(JoinRequest)
class JoinRequestAdmin(OwnAccountsAdmin, RecordAdmin):
    rights = frozenset({"change"})
    addresses = (("act", "<path:object_id>/act/<slug:act>/"),)
    action_form = ReasonForm
    actions = tuple(_list_action(act, words) for act, (words, _kind) in ACTS.items())  # type: ignore[assignment] # the base has none
    list_display = ("asked", "who", "words", "verdict")
    list_filter = ("state", "kind")
    list_select_related = ("rule",)
    are_few = True
    text_fields = ("comment", "reason", "decided_by")
    exact_lookups: ClassVar = {"pk": parse_row_number, "user_id": str, "group_id": str}
    search_help_text: ClassVar = _("Words, #number, or the id of a person or of a group.")
    change_form_template = "admin/agent/joinrequest/change_form.html"
    fields = (
        *("verdict", "kind", "user_id", "group_id", "inviter_id", "level", "comment"),
        *("account", "rule", "decided_by", "decided", "asked"),
    )
    readonly_fields = fields

    columns: ClassVar = {
        "asked": Column(
            _("asked"), lambda row: with_less(format_moment(row.created_at), row.account)
        ),
        "decided": Column(_("decided"), lambda row: format_moment(row.decided_at)),
        "who": Column(_("person"), _who),
        "words": Column(
            _("words of the request"),
            lambda row: clamp_text(escape_invisible_chars(row.comment[:EXCERPT]), is_foreign=True),
        ),
        "verdict": Column(_("state"), _verdict),
        "buttons": Column(_("decide"), _buttons),
    }

    def own_rows(self, access: ChatAccess) -> Q:
        return own_requests(access)

    def get_list_display(self, request: HttpRequest) -> Any:
        buttons = ("buttons",) if self.has_change_permission(request) else ()
        return (*self.list_display, *buttons)

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        may = obj is not None and self.has_change_permission(request, obj)
        return {"request_acts": _list_acts(obj) if may else (), "reason_chars": MOST_REASON}

    @by_post
    def act_view(self, request: HttpRequest, object_id: str, act: str) -> HttpResponse:
        """Decide over one request, then back to where the button was."""
        found = self.get_queryset(request).filter(pk=parse_row_number(object_id))
        row = get_object_or_404(found)
        require(self.has_change_permission(request, row))
        if act not in ACTS:
            raise BadRequest
        self.carry_out(request, found, act)
        return go_back(request, "admin:agent_joinrequest_changelist")

    def carry_out(self, request: HttpRequest, rows: Rows, act: str) -> None:
        """Decide over ``rows``, each on record with its author; the client is told, and the page
        says what came of it."""
        words = make_storable(request.POST.get("reason", "")).strip()
        reason = words if act == "refuse" else ""
        if len(reason) > MOST_REASON:
            text = gettext("A reason has at most %d characters: nothing was done.") % MOST_REASON
            self.message_user(request, text, messages.ERROR)
            return
        own = [row for row in rows.order_by("pk") if may_decide(request.user, row.account)]
        author = author_of(request)
        with transaction.atomic():
            pks, by = [row.pk for row in own], author_name(author)
            taken = frozenset(decide(pks, is_approval=act == "approve", by=by, reason=reason))
            for row in (one for one in own if one.pk in taken):
                detail = f"#{row.pk} {reason}".strip()
                record_act(ACTS[act][1], find_session(row.chat), author, detail=detail)
        if taken:
            steer(lambda steering: steering.tell_decided(taken))
        self._report(request, pks, taken)

    def _report(self, request: HttpRequest, pks: list[int], taken: Collection[int]) -> None:
        """What came of decisions, the same of many in one line."""
        rows = JoinRequest.objects.filter(pk__in=pks)
        told = [row for row in rows if row.pk in taken or row.is_open]
        for (level, words), count in Counter(map(_outcome, told)).items():
            self.message_user(request, f"{words} ({count})" if count > 1 else words, level)
        if late := len(pks) - len(told):
            text = ngettext(
                "%(count)d request was decided before; nothing was changed.",
                "%(count)d requests were decided before; nothing was changed.",
                late,
            )
            self.message_user(request, text % {"count": late}, messages.WARNING)


def _outcome(row: JoinRequest) -> tuple[int, str]:
    """What is said of a request that was just decided over, and how loud."""
    if row.state in (State.APPROVED, State.REFUSED):
        return messages.SUCCESS, row.get_state_display()
    if row.decision:
        return messages.INFO, gettext("The client is told as soon as the account is there.")
    return messages.WARNING, f"{row.get_state_display()}: {_why(row)}"


class RuleForm(SettingsForm):
    """A rule. What is wrong with a value is said beside its field, by the model."""

    class Meta:
        model = RequestRule
        exclude = ()
        widgets = {  # noqa: RUF012 - Django's own way to say it
            "account": forms.TextInput(attrs=choosing("account", list="accounts")),
            "words": forms.Textarea(attrs={"rows": 3}),
            "people": forms.Textarea(attrs={"rows": 3} | choosing("person")),
            "groups": forms.Textarea(attrs={"rows": 2} | choosing("group")),
            "chats": forms.Textarea(attrs={"rows": 2} | choosing("chat", "chat")),
        }


def _conditions(row: RequestRule) -> str:
    """All that a request has to fit."""
    names = ("words", "people", "groups", "least_level", "per_day")
    said = (
        (field_label(RequestRule, name), shorten_text(str(value).replace("\n", ", "), 60))
        for name in names
        if (value := getattr(row, name)) not in ("", None)
    )
    lines = format_html_join("", "<div>{}: {}</div>", said)
    return with_less(row.get_kind_display() or gettext("every request"), lines)


@admin.register(RequestRule)
class RequestRuleAdmin(SettingsAdmin):
    form = RuleForm
    list_display = ("rule", "state", "conditions", "becomes", "scope", "changed")
    list_filter = ("enabled", "kind", "action")
    search_fields = ("name", "words", "people", "groups", "account", "chats")
    change_form_template = "admin/agent/requestrule/change_form.html"
    first_fields = (
        *("name", "kind", "words", "people", "least_level", "per_day"),
        *("action", "reason"),
    )
    more_fields: ClassVar = ((_("Where it counts"), ("enabled", "position", "groups", *SCOPE)),)
    columns: ClassVar = {
        "rule": Column(_("name"), lambda row: with_less(str(row), f"{row.position}")),
        "state": Column(
            _("state"),
            lambda row: (
                render_badge("succeeded", _("on")) if row.enabled else render_badge("off", _("off"))
            ),
        ),
        "conditions": Column(_("requests that fit"), _conditions),
        "becomes": Column(
            _("what becomes of it"),
            lambda row: with_less(row.get_action_display(), _warning(row) or row.reason),
        ),
        "scope": Column(_("where it counts"), lambda row: scope_words(row)),
    }

    def page_context(self, request: HttpRequest, obj: RequestRule | None) -> dict[str, Any]:
        accounts = known_accounts(find_access(request.user))
        return {"accounts": accounts, "warning": _warning(obj) if obj is not None else ""}


def _warning(row: RequestRule) -> str:
    """What somebody should know who saves ``row``."""
    is_for_some = row.words.strip() or row.people.strip() or row.least_level
    if is_for_some or row.action == RuleAction.WAIT:
        return ""
    if row.action == RuleAction.APPROVE:
        return gettext("Take care: it asks for no words, people or level, and lets everybody in.")
    return gettext("Take care: it asks for no words, people or level, and refuses everybody.")

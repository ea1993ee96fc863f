"""Chat sessions: the list of chats, and the page that reads like one."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, ClassVar, cast

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import User
from django.db.models import Model, Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agent.admin.chats.acts import SessionActs, describe_acts
from agent.admin.chats.chat import BUBBLE_CHARACTERS, load_chat_page, load_message_runs
from agent.admin.chats.export_view import EXPORT_FORMS, SessionExport
from agent.admin.chats.reasons import names_source, reason_words
from agent.admin.chats.session_manners import (
    SessionChangeList,
    SessionSilence,
    SilenceFilter,
    describe_manners,
    describe_pause,
    session_address,
)
from agent.admin.chats.thumbnails import load_media_previews
from agent.admin.own_chats import OwnChatsAdmin
from agent.admin.persona_places import describe_answering
from agent.admin.state_form import LIMITS, StateForm
from agent.models import ChatSession, Message
from agent.record.sessions import save_changes
from agent.record.tallies import find_silences
from tools.admin.changes import HistoryAdmin
from tools.admin.filters import PeriodFilter, Rows
from tools.admin.record_pages import RecordAdmin, format_moment, parse_row_number
from tools.admin.row_history import record_changes
from tools.models import ConfigVersion
from tools.text.readable import format_readable

#: Accounts offered as a filter.
ACCOUNT_LIMIT = 20


class RecentlyActive(PeriodFilter):
    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        return queryset.filter(last_message_at__gte=self.moment) if self.moment else queryset


class AccountFilter(admin.SimpleListFilter):
    title = _("account")
    parameter_name = "account"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(account, account) for account in known_accounts()]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        return queryset.filter(account=self.value()) if self.value() else queryset


def known_accounts(platform: str = "onebot") -> list[str]:
    """The accounts that have chats: one look-up in the unique index for each, not a scan."""
    accounts: list[str] = []
    rows = (
        ChatSession.objects.filter(platform=platform)
        .order_by("account")
        .values_list("account", flat=True)
    )
    while len(accounts) < ACCOUNT_LIMIT:
        account = rows.filter(account__gt=accounts[-1] if accounts else "").first()
        if account is None:
            break
        accounts.append(account)
    return accounts


@admin.register(ChatSession)
class ChatSessionAdmin(
    OwnChatsAdmin, SessionActs, SessionSilence, SessionExport, HistoryAdmin, RecordAdmin
):
    chat_prefix = ""
    list_display = ("name", "kind", "peer_id", "account", "silence", "active")
    list_filter = (RecentlyActive, "kind", AccountFilter, SilenceFilter)
    ordering = ("-last_message_at", "-id")
    search_help_text: ClassVar = _("The id of a group or a person, or words of a title.")
    text_fields = ("title",)
    free_lookups = frozenset({"since", "last_message_at__lte"})
    list_defer = ("state", "discovered_tools")
    change_form_template = "admin/agent/chatsession/change_form.html"
    form = StateForm
    fields = ("timing_gate", *LIMITS, "state")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Of a chat, its state, its timing gate and its limits can be changed."""
        return request.user.has_perm("agent.change_chatsession")

    def save_model(
        self, request: HttpRequest, obj: ChatSession, form: StateForm, change: bool
    ) -> None:
        """Store only what was changed on the page: the server may write the rest of the row
        meanwhile."""
        with record_changes(cast("User", request.user), obj):
            save_changes([form.change()])
            if changes := form.changed_columns():
                ChatSession.objects.filter(pk=obj.pk).update(**changes)
                ConfigVersion.bump()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return SessionChangeList

    def has_index(self, conditions: Iterable[str]) -> bool:
        """There are far fewer chats than messages: a scan in order is fast for every condition."""
        return True

    def beyond(self, row: ChatSession) -> dict[str, object]:
        return {"last_message_at__lte": row.last_message_at.isoformat()}

    def exact_matches(self, term: str) -> Iterable[Q]:
        yield Q(pk=parse_row_number(term))
        yield Q(peer_id=term.rpartition(":")[2])

    @admin.display(description=_("chat"))
    def name(self, session: ChatSession) -> str:
        return session.title or session.key

    @admin.display(description=_("last message"))
    def active(self, session: ChatSession) -> str:
        return format_moment(session.last_message_at)

    def page_context(self, request: HttpRequest, obj: ChatSession) -> dict[str, Any]:
        state = obj.state if isinstance(obj.state, dict) else {}
        context: dict[str, Any] = {
            "state": state,
            "state_json": format_readable(state),
            "silences": _silences(obj),
            **describe_answering(session_address(obj), request),
            **describe_manners(obj, request),
            **describe_pause(obj),
            **describe_acts(obj, request),
            "export_forms": EXPORT_FORMS,
        }
        if not request.user.has_perm("agent.view_message"):
            return context
        page = load_chat_page(obj, before=_id(request, "before"), after=_id(request, "after"))
        behind = load_message_runs(
            [m for m in page.messages if m.direction == Message.Direction.IN]
        )
        media = load_media_previews([message.pk for message in page.messages])
        bubbles = [
            (message, behind.get(message.pk, []), media.get(message.pk), *_why(message))
            for message in page.messages
        ]
        bottom = page.messages[-1].pk if bubbles else 0
        return context | {
            "page": page,
            "bubbles": bubbles,
            "bubble_limit": BUBBLE_CHARACTERS,
            "bottom": bottom,
        }


def _why(message: Message) -> tuple[str, str]:
    """The reason as a bubble shows it, and the sentence on record, if it is one."""
    detail = "" if names_source(message.reason) else message.detail
    return reason_words(message, message.detail), detail


def _silences(session: ChatSession) -> list[tuple[str, datetime]]:
    """Who gets no answer for a while, and until when."""
    place = f"{session.platform}:{session.account}:{session.key}"
    return [
        (who, datetime.fromtimestamp(until, UTC))
        for who, until in find_silences(place, int(timezone.now().timestamp()))
    ]


def _id(request: HttpRequest, name: str) -> int | None:
    return parse_row_number(request.GET.get(name, "")) or None

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
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.admin.chats.acts import SessionActs, describe_acts
from agent.admin.chats.export_view import EXPORT_FORMS, SessionExport
from agent.admin.chats.session_list import (
    AccountFilter,
    RecentlyActive,
    SessionChangeList,
    SessionFacts,
    SpeakingFilter,
    find_sessions_by_words,
)
from agent.admin.chats.session_manners import (
    describe_manners,
    describe_pause,
    session_address,
)
from agent.admin.chats.session_search import search_chat
from agent.admin.chats.state_form import StateForm
from agent.admin.chats.stream import SessionStream, load_stream
from agent.models import ChatSession
from agent.models.manners import LIMITS
from agent.pages.answering import describe_answering
from agent.pages.own_chats import OwnChatsAdmin
from agent.record.chats.sessions import save_changes
from agent.record.settings.chat_manners import change_chat_manners
from agent.record.settings.manners import ONEBOT
from agent.record.sums.tallies import find_silences
from tools.admin.changes import HistoryAdmin
from tools.admin.filters import Rows
from tools.admin.record_pages import (
    RecordAdmin,
    clamp_text,
    format_moment,
    parse_row_number,
    render_badge,
)
from tools.admin.row_history import record_changes
from tools.text.readable import format_readable
from tools.text.visible import escape_direction_chars

#: Characters of words that are searched.
LONGEST_SEARCH = 200


@admin.register(ChatSession)
class ChatSessionAdmin(
    OwnChatsAdmin, SessionStream, SessionActs, SessionExport, HistoryAdmin, RecordAdmin
):
    chat_prefix = ""
    list_display = ("name", "last_said", "today", "cost", "who_answers", "account")
    list_filter = (RecentlyActive, "kind", AccountFilter, SpeakingFilter)
    ordering = ("-last_message_at", "-id")
    search_help_text: ClassVar = _(
        "The id of a group or a person, words of a title, and words and names in the newest "
        "100,000 messages."
    )
    text_fields = ("title",)
    free_lookups = frozenset({"since", "last_message_at__lte"})
    list_defer = ("state", "discovered_tools")
    change_form_template = "admin/agent/chatsession/change_form.html"
    form = StateForm

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Of a chat, its state, its timing gate and its limits can be changed."""
        return request.user.has_perm("agent.change_chatsession")

    def get_fields(self, request: HttpRequest, obj: ChatSession | None = None) -> Any:
        """Only chats of a platform that has manners have limits."""
        has_limits = obj is not None and obj.platform == ONEBOT
        return "timing_gate", *(LIMITS if has_limits else ()), "state"

    def save_model(
        self, request: HttpRequest, obj: ChatSession, form: StateForm, change: bool
    ) -> None:
        """Store only what was changed on the page: the server may write the rest of the row
        meanwhile."""
        with record_changes(cast("User", request.user), obj):
            save_changes([form.change()])
            if changes := form.changed_values("timing_gate"):
                ChatSession.objects.filter(pk=obj.pk).update(**changes)
        if limits := form.changed_values(*LIMITS):
            change_chat_manners(session_address(obj), cast("User", request.user), **limits)

    # --- The list -------------------------------------------------------------------

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return SessionChangeList

    def has_index(self, conditions: Iterable[str]) -> bool:
        """There are far fewer chats than messages: a scan in order is fast for every condition."""
        return True

    def beyond(self, row: ChatSession) -> dict[str, object]:
        return {"last_message_at__lte": row.last_message_at.isoformat()}

    def hits(self, term: str, rows: Rows, floor: int, *, is_filtered: bool) -> set[int]:
        """Also chats in which it was said, or by whose people."""
        found = super().hits(term, rows, floor, is_filtered=is_filtered)
        said = rows.filter(pk__in=find_sessions_by_words(term))
        return found | set(said.values_list("pk", flat=True))

    def exact_matches(self, term: str) -> Iterable[Q]:
        yield Q(pk=parse_row_number(term))
        yield Q(peer_id=term.rpartition(":")[2])

    @admin.display(description=_("chat"))
    def name(self, session: Any) -> str:
        title = escape_direction_chars(session.title or session.peer_id)
        mark = render_badge("mock", gettext("playground")) if _facts(session).is_playground else ""
        return format_html(
            '<bdi>{}</bdi> {}<div class="quiet">{} {}</div>',
            title,
            mark,
            session.get_kind_display(),
            session.peer_id,
        )

    @admin.display(description=_("last message"))
    def last_said(self, session: Any) -> str:
        facts = _facts(session)
        at = format_moment(facts.last_at or session.last_message_at)
        speaker = gettext("bot") if facts.is_from_bot else facts.last_name
        words = format_html("<bdi>{}</bdi>: {}", speaker, facts.last_words) if speaker else ""
        return format_html('{}<div class="quiet">{}</div>', clamp_text(words), at)

    @admin.display(description=_("messages today"))
    def today(self, session: Any) -> str:
        received = _facts(session).received
        return "-" if received is None else f"{received:,}"

    @admin.display(description=_("cost today"))
    def cost(self, session: Any) -> str:
        return (
            format_html_join(" ", "<span>{}</span>", ((c,) for c in _facts(session).costs)) or "-"
        )

    @admin.display(description=_("who answers"))
    def who_answers(self, session: Any) -> str:
        """The bot, an operator, or nobody."""
        if session.is_taken_over:
            words = gettext("taken over by %(name)s") % {"name": session.taken_over_by}
            return render_badge("waiting", words)
        if _facts(session).is_paused:
            return render_badge("failed", session.get_pause_reason_display())
        if _facts(session).silenced_by:
            return render_badge("refused", gettext("silenced"))
        return format_html('<span class="quiet">{}</span>', gettext("bot"))

    # --- The page of one chat -------------------------------------------------------

    def page_context(self, request: HttpRequest, obj: ChatSession) -> dict[str, Any]:
        state = obj.state if isinstance(obj.state, dict) else {}
        context: dict[str, Any] = {
            "title": escape_direction_chars(str(obj.title or obj.key)),
            "subtitle": None,
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
        term = request.GET.get("find", "")[:LONGEST_SEARCH].strip()
        hits = search_chat(obj, term) if term else None
        return context | {
            "stream": load_stream(obj, request),
            "term": term,
            "hits": hits,
            "day": request.GET.get("date", ""),
        }


def _facts(session: Any) -> SessionFacts:
    facts: SessionFacts = session.facts
    return facts


def _silences(session: ChatSession) -> list[tuple[str, datetime]]:
    """Who gets no answer for a while, and until when."""
    place = f"{session.platform}:{session.account}:{session.key}"
    return [
        (who, datetime.fromtimestamp(until, UTC))
        for who, until in find_silences(place, int(timezone.now().timestamp()))
    ]

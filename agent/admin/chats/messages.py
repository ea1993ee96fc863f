"""Messages: what came in and went out, each with its decision or its outcome."""

from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext, gettext_lazy as _

from agent.admin.chats import acts, session_list
from agent.admin.chats.thumbnails import MessagePictures, load_media_previews
from agent.models import ChatSession, Message
from agent.pages import error_words, reasons
from agent.pages.own_chats import OwnChatsAdmin
from agent.record.settings.manners import ONEBOT
from tools.admin.filters import RecordedSince
from tools.admin.record_pages import (
    Column,
    StateRecordAdmin,
    clamp_text,
    format_moment,
    parse_row_number,
    record_link,
    record_links,
    render_state,
)
from tools.text.readable import json_block, text_block

#: Chats in which an id is searched: one for each account that shares it.
CHAT_LIMIT = 50


@admin.register(Message)
class MessageAdmin(OwnChatsAdmin, MessagePictures, StateRecordAdmin):
    list_display = ("recorded", "chat", "excerpt", "decision", "run_link")
    list_filter = (RecordedSince, "state", "direction", "reason")
    list_select_related = ("session",)
    list_excerpts = ("text", "detail")
    list_defer = ("media_text", "segments", "raw", "context_text", "header")
    text_fields = ("text", "sender_name")
    indexed_lookups = frozenset(
        {"state__exact", "reason__exact", "session__id__exact", "run__id__exact"}
    )
    search_help_text: ClassVar = _(
        "The id of a message, a sender, a group or a person is found exactly;"
        " words and names are found among the newest 100,000 messages, or the newest 20,000 of a "
        "filtered list."
    )
    change_form_template = "admin/agent/message/change_form.html"
    columns: ClassVar = {
        "recorded": Column(_("recorded at"), lambda row: format_moment(row.created_at)),
        "chat": Column(
            _("chat"),
            lambda row: format_html(
                '{} <div class="quiet">{}</div>',
                record_link(
                    "agent_chatsession", row.session_id, row.session.title or row.session.key
                ),
                format_html('<span class="from-bot">{}</span>', _("bot"))
                if row.direction == Message.Direction.OUT
                else row.sender_name or session_list.names_in(row.session_id, row.sender_id),
            ),
        ),
        # the chat, opened where the message was said
        "chat_link": Column(
            _("chat"),
            lambda row: format_html(
                '<a href="{}?around={}#m{}">{}</a>',
                reverse("admin:agent_chatsession_change", args=(row.session_id,)),
                *(row.pk, row.pk, row.session),
            ),
        ),
        "sender": Column(_("sender"), lambda row: _sender(row)),
        "excerpt": Column(_("text"), lambda row: clamp_text(getattr(row, "text_excerpt", ""))),
        "words": Column(_("text"), lambda row: text_block(row.text)),
        "media_list": Column(_("media"), lambda row: _media_list(row)),
        "decision": Column(_("state"), lambda row: _decision(row)),
        "why": Column(_("reason"), lambda row: reasons.reason_words(row, row.detail) or "-"),
        # what went wrong, in words; the name of a row stands at the reason
        "details": Column(
            _("detail"),
            lambda row: (
                error_words.error_block("" if reasons.names_source(row.reason) else row.detail)
                or "-"
            ),
        ),
        "run_link": Column(
            _("run"), lambda row: record_link("agent_run", row.run_id, f"#{row.run_id}") or "-"
        ),
        "run_links": Column(
            _("runs"),
            lambda row: record_links(
                "agent_run",
                sorted(
                    {row.run_id, *row.runs.order_by("pk").values_list("pk", flat=True)[:20]}
                    - {None}
                ),
            ),
        ),
        "segments_json": Column(_("segments"), lambda row: json_block(row.segments)),
        "event_json": Column(_("event"), lambda row: json_block(row.raw)),
    }
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "chat_link",
                    "direction",
                    "sender",
                    "words",
                    "media_list",
                    "media_text",
                    "context_text",
                    "created_at",
                )
            },
        ),
        (
            _("What became of it"),
            {
                "fields": (
                    "outcome",
                    "why",
                    "details",
                    "run_links",
                    "tool_call",
                    "settled_at",
                    "in_history",
                )
            },
        ),
        (
            _("As the client sent it"),
            {
                "fields": (
                    "message_id",
                    "happened_at",
                    "temp_group_id",
                    "segments_json",
                    "event_json",
                )
            },
        ),
    )

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        words = {"in_history": _("Whether the bot still sees it when it answers later messages.")}
        return super().get_form(request, obj, change, **(options | {"help_texts": words}))

    def page_context(self, request: HttpRequest, obj: Message) -> dict[str, Any]:
        """Whether it can be sent again from here, as in its chat."""
        is_resent = Message.objects.filter(resent_from=obj.pk).exists()
        failed = obj.state in (Message.State.FAILED, Message.State.UNKNOWN)
        may_resend = (
            (failed and not is_resent and obj.direction == Message.Direction.OUT)
            and obj.session.platform == ONEBOT
            and request.user.has_perm(acts.SPEAK)
        )
        return {"may_resend": may_resend, "is_resent": is_resent}

    def exact_matches(self, term: str) -> Iterable[Q]:
        yield Q(pk=parse_row_number(term) if term.startswith("#") else 0)
        yield Q(message_id=term)
        yield Q(sender_id=term)
        for session in ChatSession.objects.filter(peer_id=term.rpartition(":")[2]).values_list(
            "pk", flat=True
        )[:CHAT_LIMIT]:
            yield Q(session=session)


def _sender(message: Message) -> str:
    person = message.sender_id
    name = message.sender_name or (
        session_list.names_in(message.session_id, person) if person else ""
    )
    return f"{name} ({person})" if name != person else person or "-"


def _media_list(message: Message) -> str:
    """The pictures, voice and files of the message, and why some could not be fetched."""
    shown = load_media_previews([message.pk]).get(message.pk)
    if shown is None:
        return "-"
    words = (
        (thumbnail or medium.get_kind_display(), gettext(medium.reason or " "))
        for thumbnail, medium in shown.media
    )
    items = format_html_join("", "<li>{} {}</li>", words)
    return format_html('<ul class="thumbnails">{}</ul>', items)


def _decision(message: Message) -> str:
    state = render_state(message)
    words = reasons.reason_words(message, getattr(message, "detail_excerpt", ""))
    return format_html('{} <div class="quiet">{}</div>', state, words) if words else state

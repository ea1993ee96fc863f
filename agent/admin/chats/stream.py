"""What a chat's page shows from top to bottom, and the parts of it that the page fetches while it
is read: older ones, newer ones, and what has changed."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.dateparse import parse_date

from agent.admin.chats.bubbles import Bubble, load_bubbles
from agent.admin.chats.chat import (
    CHAT_PAGE_SIZE,
    ChatPage,
    bubble_rows,
    first_message_since,
    load_chat_page,
)
from agent.models import ChatSession, Message, OperatorAct
from tools.admin.record_pages import ModelAdmin, parse_row_number

#: Acts of operators between the messages of one page.
MOST_ACTS = 100
#: Bubbles that a page asks about again; more are not looked at.
MOST_MARKS = 60
_MARK = re.compile(r"([1-9][0-9]{0,17})\.([0-9a-f]{1,8})", re.ASCII)


@dataclass(frozen=True, slots=True)
class StreamItem:
    """A message or an act, at its time."""

    at: datetime
    bubble: Bubble | None = None
    act: OperatorAct | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """One part of a chat from old to new; ``older`` and ``newer`` are the ids to continue from,
    None at the ends."""

    items: list[StreamItem]
    older: int | None = None
    newer: int | None = None


def load_stream(session: ChatSession, request: HttpRequest) -> Stream:
    """The part of ``session`` that the address asks for: ``before``, ``after`` or ``around`` an
    id, from a ``date`` on, or the newest."""
    before, after, around = (_id(request, name) for name in ("before", "after", "around"))
    if (day := _day(request)) and (first := first_message_since(session, day)):
        after = first - 1
    page = load_chat_page(session, before=before, after=after, around=around)
    return _with_acts(session, page)


def load_news(session: ChatSession, request: HttpRequest) -> Stream:
    """What is new or has changed, by what the page has: the newest message in ``after``, the
    newest act in ``act``, and bubbles with their marks in ``marks``."""
    after, act = _id(request, "after") or 0, _id(request, "act") or 0
    marks = dict(_MARK.findall(request.GET.get("marks", "")))
    known = [int(pk) for pk in list(marks)[:MOST_MARKS]]
    rows = bubble_rows(session)
    changed = list(rows.filter(pk__in=known).order_by("pk"))
    new = list(rows.filter(pk__gt=after).order_by("pk")[: CHAT_PAGE_SIZE + 1])
    bubbles = load_bubbles(session, changed + new[:CHAT_PAGE_SIZE])
    acts = OperatorAct.objects.filter(session=session, pk__gt=act).order_by("pk")[:MOST_ACTS]
    shown = [one for one in bubbles if marks.get(str(one.message.pk)) != one.mark]
    newer = new[CHAT_PAGE_SIZE - 1].pk if len(new) > CHAT_PAGE_SIZE else None
    return Stream(_merged(shown, acts), newer=newer)


def _with_acts(session: ChatSession, page: ChatPage) -> Stream:
    """The page with the acts from its first message on, or from the beginning of the chat, up to
    the first message of the next page."""
    acts: Any = OperatorAct.objects.filter(session=session)
    if page.older is not None:
        acts = acts.filter(at__gte=page.messages[0].created_at)
    if page.newer is not None:
        following = Message.objects.filter(session=session, pk__gt=page.newer).order_by("pk")
        end = following.values_list("created_at", flat=True).first()
        acts = acts.filter(at__lt=end) if end else acts
    newest = list(acts.order_by("-pk")[:MOST_ACTS])
    return Stream(
        _merged(load_bubbles(session, page.messages), newest[::-1]), page.older, page.newer
    )


def _merged(bubbles: Iterable[Bubble], acts: Iterable[OperatorAct]) -> list[StreamItem]:
    """Bubbles in the order of their ids, each act before the first one that is later."""
    waiting = list(acts)
    items: list[StreamItem] = []
    for bubble in bubbles:
        while waiting and waiting[0].at < bubble.message.created_at:
            act = waiting.pop(0)
            items.append(StreamItem(act.at, act=act))
        items.append(StreamItem(bubble.message.created_at, bubble))
    return items + [StreamItem(act.at, act=act) for act in waiting]


def _id(request: HttpRequest, name: str) -> int | None:
    return parse_row_number(request.GET.get(name, "")) or None


def _day(request: HttpRequest) -> datetime | None:
    """The beginning of the day in ``date``."""
    try:
        day = parse_date(request.GET.get("date", ""))
        return timezone.make_aware(datetime.combine(day, time.min)) if day else None
    except (ValueError, OverflowError):
        return None


class SessionStream(ModelAdmin):
    """The addresses of the parts, for the pages of chats."""

    def get_urls(self) -> list[URLPattern]:
        parts, news = (
            self.admin_site.admin_view(view) for view in (self.stream_view, self.news_view)
        )
        return [
            path("<path:object_id>/stream/", parts, name="agent_chatsession_stream"),
            path("<path:object_id>/news/", news, name="agent_chatsession_news"),
            *super().get_urls(),
        ]

    def stream_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """An older or a newer part."""
        session = self.readable_session(request, object_id)
        return self._part(request, session, load_stream(session, request))

    def news_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """What is new or has changed since the page was drawn."""
        session = self.readable_session(request, object_id)
        return self._part(request, session, load_news(session, request))

    def readable_session(self, request: HttpRequest, object_id: str) -> ChatSession:
        """The chat, for who may read it and its messages. Raises Http404 for one out of reach."""
        rows = self.get_queryset(request)
        session: ChatSession = get_object_or_404(rows, pk=parse_row_number(object_id))
        if not (
            self.has_view_permission(request, session)
            and request.user.has_perm("agent.view_message")
        ):
            raise PermissionDenied
        return session

    def _part(self, request: HttpRequest, session: ChatSession, stream: Stream) -> HttpResponse:
        context = {
            "original": session,
            "stream": stream,
            "has_change_permission": self.has_change_permission(request, session),
        }
        answer = TemplateResponse(request, "admin/agent/chatsession/stream.html", context)
        answer.headers["Cache-Control"] = "no-store"
        return answer

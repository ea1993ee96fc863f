"""The list of chats: who spoke last, what waits there, and who answers; and what counts in one
chat, and which row says it."""

from collections.abc import Callable
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, cast

from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Left
from django.http import HttpRequest
from django.urls import reverse
from django.utils import http, timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from agent.access import ChatAccess, find_access
from agent.domain.budgets import SpendKind, cost_words
from agent.domain.manners import ChatManners
from agent.domain.types import ChatAddress, ChatKind, is_playground
from agent.media.heard_words import cut_text
from agent.models import ActivitySum, Approval, ChatSession, Manners, Message, SpendSum
from agent.models.activity import WHOLE_DAY
from agent.models.message import UNSETTLED
from agent.pages.manners import list_counting
from agent.record.chats.person_names import find_names
from agent.record.settings.chat_manners import is_row_of_chat
from agent.record.settings.manners import ONEBOT, MannersTable, load_manners_table
from agent.record.sums.spendings import SUBJECT_LIMIT
from agent.record.waiting.pauses import is_paused
from agent.record.waiting.take_overs import is_taken_over
from tools.admin.record_pages import (
    EXCERPT,
    WORD_LIMIT,
    PeriodFilter,
    Rows,
    choice_filter,
    label_of,
    window_floor,
)
from tools.local_time import current_day
from tools.text.readable import escape_direction_chars, fill


def session_address(session: ChatSession) -> ChatAddress:
    kind = cast("ChatKind", session.kind)
    return ChatAddress(session.account, kind, session.peer_id, session.platform)


def describe_manners(session: ChatSession, request: HttpRequest) -> dict[str, Any]:
    """All that counts in a chat with the rows that say it, and where a rule for this chat alone is
    written."""
    if not request.user.has_perm("agent.view_manners") or session.platform != ONEBOT:
        return {}
    chat, table = session_address(session), load_manners_table()
    rows, manners = list(table.matching(chat)), table.find(chat)
    return {
        "counting": sorted(list_counting(manners, rows), key=lambda one: one.row is None),
        "own_rule_url": _own_rule_url(chat, rows, request),
    }


def describe_silence(session: ChatSession, table: MannersTable) -> dict[str, Any]:
    """What silences a chat: the name of the row that says so now, "" for none, and all such
    rows; and who alone is answered there, until when."""
    chat, now = session_address(session), timezone.now()
    manners = table.find(chat)
    only = manners.find_only(now)
    return {
        "silenced_by": manners.find_silence(now),
        "silencing": [row for row in table.matching(chat) if row.is_silencing],
        "only_person": only,
        "only_name": names_in(session.pk, only) if only else "",
        "only_until": manners.only_until,
    }


def _own_rule_url(chat: ChatAddress, rows: list[Manners], request: HttpRequest) -> str:
    """The row for this chat alone, or a new one that is filled in so far."""
    own = next((row for row in rows if is_row_of_chat(row, chat)), None)
    if own is not None:
        return reverse("admin:agent_manners_change", args=(own.pk,))
    if not request.user.has_perm("agent.add_manners"):
        return ""
    given = {"account": chat.account, "chat_kind": chat.kind, "chats": chat.key}
    given["name"] = f"{chat.key} ({chat.account})"
    return f"{reverse('admin:agent_manners_add')}?{http.urlencode(given)}"


def describe_today(session: ChatSession) -> dict[str, Any]:
    """What came in today, and what it cost. Two queries."""
    sums = ActivitySum.objects.filter(day=current_day(), hour=WHOLE_DAY, session=session)
    subject = f"{session.platform}:{session.account}:{session.key}"[:SUBJECT_LIMIT]
    spent = SpendSum.objects.filter(day=current_day(), kind=SpendKind.CHAT, subject=subject)
    costs = spent.filter(cost_nano__gt=0).values_list("cost_nano", "currency")
    return {
        "received": f"{sums.values_list('received', flat=True).first() or 0:,}",
        "costs": [cost_words(*cost) for cost in costs],
    }


def has_pause(session: ChatSession) -> bool:
    until = session.paused_until
    return bool(session.pause_reason) and (until is None or until > timezone.now())


def silenced_condition(table: MannersTable) -> Q:
    """Of the chats that a row silences; of none where no row silences any."""
    found = Q(pk__in=[])
    for row in (row for row in table.rows if row.is_silencing):
        where = Q(platform=ONEBOT)
        if row.account:
            where &= Q(account=row.account)
        if row.chat_kind:
            where &= Q(kind=row.chat_kind)
        if row.chat_keys:
            listed: dict[str, list[str]] = {}
            for kind, _colon, peer in (key.partition(":") for key in row.chat_keys):
                listed.setdefault(kind, []).append(peer)
            chats = Q(pk__in=[])
            for kind, peers in listed.items():
                chats |= Q(kind=kind, peer_id__in=peers)
            where &= chats
        found |= where
    return found


#: Newest messages that a search for words finds chats by.
MOST_FOUND = 20_000
#: Accounts offered as a filter, and chats beside an open one.
ACCOUNT_LIMIT, BESIDE = 20, 50
#: Characters of a name, a speaker's name and what was said.
NAME_CHARACTERS, SPEAKER_CHARACTERS, WORDS_CHARACTERS = 80, 30, 80
#: Messages under way that are looked at for the marks of a list.
MOST_UNSETTLED = 1_000


#: A chat: its key, that of its newest message, the address of all, kind, peer and account in words,
#: whether it is open; its name, account, time, minute; what was said last, marks, and a word.
_ROW = (
    '<li id="c{0}" data-newest="{1}"><a href="{2}{0}/change/" title="{3} {4} · {5} {6}"{7}>\n'
    '<span class="row-line"><strong><bdi>{8}</bdi></strong>{9}<time datetime="{10}">{11}</time>'
    '</span>\n<span class="row-line"><span class="row-said">{12}</span>\n{13}'
    '<span class="unread" hidden><span class="unseen">{14}</span></span></span></a></li>'
)
_ACCOUNT = ' <span class="row-account">{}</span>'
_MARK, _BUSY = '<span class="mark{}"{}>{}</span>', '<span class="mark mark-busy">{}</span>'


def list_beside(
    request: HttpRequest, table: MannersTable, opened: int, *deferred: str
) -> list[Any]:
    """The newest chats in reach of ``request``, as the list beside the chat ``opened`` has them,
    without the columns ``deferred``. Five queries."""
    newest: Any = find_access(request.user).sessions().defer(*deferred)
    newest = newest.order_by("-last_message_at", "-pk")
    return draw_rows(list(newest[:BESIDE]), request, table, opened)


def draw_rows(
    sessions: list[Any], request: HttpRequest, table: MannersTable, opened: int = 0
) -> list[Any]:
    """Give each row what the list shows of it, ``drawn``, in four queries: its account too, where
    there are several."""
    accounts, now = {row.account for row in sessions}, timezone.localtime()
    page, account, unread = (
        reverse("admin:agent_chatsession_changelist"),
        gettext("account"),
        gettext("new messages"),
    )
    said = _find_last_words([row.pk for row in sessions])
    may_read = request.user.has_perm("agent.view_message")
    # All of them, and told apart here: asked for single chats, SQLite reads what these ever said.
    unsettled = Message.objects.filter(UNSETTLED).order_by().values_list("session_id", flat=True)
    asked = Approval.objects.filter(state=Approval.State.WAITING, session__in=sessions)
    waiting = dict.fromkeys(unsettled[:MOST_UNSETTLED], gettext("waiting"))
    asking = dict.fromkeys(
        asked.order_by().values_list("session_id", flat=True), gettext("asks for approval")
    )
    for row in sessions:
        at = timezone.localtime(row.last_message_at)
        name = cut_text(escape_direction_chars(row.title or row.peer_id), NAME_CHARACTERS)
        newest, words = said.get(row.pk, (0, SafeString("<bdi></bdi><bdi></bdi>")))
        kind, is_open = label_of(ChatSession.Kind, row.kind), row.pk == opened
        busy = asking.get(row.pk) or waiting.get(row.pk)
        marks = fill(_BUSY, busy) if busy else SafeString("")
        marks += _draw_mark(row, table.find(session_address(row)), now)
        row.drawn = fill(
            _ROW,
            *(row.pk, newest, page, kind, row.peer_id, account, row.account),
            SafeString(' aria-current="page"') if is_open else "",
            *(name, fill(_ACCOUNT, row.account) if len(accounts) > 1 else ""),
            *(at.isoformat(), format_when(at, now), words if may_read else ""),
            *(marks, unread),
        )
    return sessions


def format_when(at: datetime, now: datetime) -> str:
    """The time of today, the day of another one, with its year where that is another too."""
    if at.date() == now.date():
        return f"{at:%H:%M}"
    return f"{at:%m-%d}" if at.year == now.year else f"{at:%Y-%m-%d}"


def _draw_mark(row: Any, manners: ChatManners, now: datetime) -> SafeString:
    """Why the bot does not answer everybody in a chat, and whether it is a playground."""
    words, title, look = "", "", ""
    if row.is_taken_over:
        title = gettext("taken over by %(name)s") % {"name": row.taken_over_by}
        words = gettext("taken over")
    elif has_pause(row):
        words, look = row.get_pause_reason_display(), " mark-bad"
    elif title := manners.find_silence(now):
        words = gettext("silenced")
    elif title := manners.find_only(now):
        words = gettext("only one person")
    mark = fill(_MARK, look, fill(' title="{}"', title) if title else "", words) if words else ""
    place = fill(_MARK, "", "", gettext("playground")) if is_playground(row.account) else ""
    return SafeString(mark + place)


def _find_last_words(pks: list[int]) -> dict[int, tuple[int, SafeString]]:
    """The key of the newest message of each chat, and who said what in it."""
    newest = Message.objects.filter(session=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    sessions = ChatSession.objects.filter(pk__in=pks).annotate(newest=Subquery(newest)).order_by()
    rows: Any = Message.objects.filter(pk__in=list(sessions.values_list("newest", flat=True)))
    columns = ("session_id", "pk", "words", "direction", "sender_name", "sender_id")
    found = rows.order_by().annotate(words=Left("text", EXCERPT)).values_list(*columns)
    last, bot = dict[int, tuple[int, SafeString]](), gettext("bot")
    for pk, message, words, direction, name, sender in found:
        is_from_bot = direction == Message.Direction.OUT
        name = "" if is_from_bot else escape_direction_chars(name or names_in(pk, sender))
        name = cut_text(name, SPEAKER_CHARACTERS) or bot
        words = cut_text(escape_direction_chars(words), WORDS_CHARACTERS)
        last[pk] = message, fill("<bdi>{}</bdi>: <bdi>{}</bdi>", name, words)
    return last


def names_in(session: int, person: str) -> str:
    """What somebody who gave no name with his last message is called there."""
    return find_names([person], Q(session=session)).get(person, person)


def find_sessions_by_words(term: str) -> set[int]:
    """Of all chats, those in whose newest messages all words of ``term`` were said, by one message,
    or in which somebody spoke whose name has them."""
    words = term.split()[:WORD_LIMIT]
    if not words:
        return set()
    rows = Message.objects.order_by()
    names = Q(*(Q(sender_name__icontains=word) for word in words))
    said = Q(*(Q(text__icontains=word) for word in words))
    found = rows.filter(reduce(or_, (names, said)), pk__gte=window_floor(rows)).order_by("-pk")
    # Each chat once is told here: asked for that, SQLite walks through the messages of all times.
    return set(found.values_list("session_id", flat=True)[:MOST_FOUND])


class RecentlyActive(PeriodFilter):
    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        return queryset.filter(last_message_at__gte=self.moment) if self.moment else queryset


def known_accounts(access: ChatAccess, platform: str = "onebot") -> list[str]:
    """The accounts that have chats in reach: one look-up in the unique index for each, not a
    scan."""
    accounts: list[str] = []
    rows = (
        access.sessions()
        .filter(platform=platform)
        .order_by("account")
        .values_list("account", flat=True)
    )
    while len(accounts) < ACCOUNT_LIMIT:
        account = rows.filter(account__gt=accounts[-1] if accounts else "").first()
        if account is None:
            break
        accounts.append(account)
    return accounts


AccountFilter = choice_filter(
    _("account"),
    "account",
    lambda request: [(one, one) for one in known_accounts(find_access(request.user))],
    lambda rows, value: rows.filter(account=value),
)
#: Chats in which the bot says nothing, by decision, because it cannot, or because an operator
#: answers.
SPEAKING: dict[str, tuple[Any, Callable[[], Q]]] = {
    "silenced": (_("silenced"), lambda: silenced_condition(load_manners_table())),
    "paused": (_("cannot speak"), lambda: is_paused(timezone.now())),
    "taken_over": (_("taken over"), lambda: is_taken_over(timezone.now())),
    "bot": (_("not taken over"), lambda: ~is_taken_over(timezone.now())),
}
SpeakingFilter = choice_filter(
    _("who answers"),
    "silence",
    lambda request: [(name, words) for name, (words, _find) in SPEAKING.items()],
    lambda rows, value: rows.filter(SPEAKING[value][1]()) if value in SPEAKING else rows,
)

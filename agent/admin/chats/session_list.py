"""The list of chats: who spoke last, what waits there, and who answers; and what counts in one
chat, and which row says it."""

from collections.abc import Callable
from dataclasses import dataclass
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


def describe_silence(session: ChatSession) -> dict[str, Any]:
    """What silences a chat: the name of the row that says so now, "" for none, and all such
    rows; and who alone is answered there, until when."""
    chat, table = session_address(session), load_manners_table()
    manners, now = table.find(chat), timezone.now()
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


@dataclass(slots=True)
class SessionFacts:
    """What the list shows of a chat beside its row."""

    pk: SafeString
    #: The attributes of its link, and its first line.
    link: SafeString
    line: SafeString
    silenced_by: str = ""
    #: Who alone is answered there for now.
    only_person: str = ""
    is_paused: bool = False
    is_playground: bool = False
    #: Whether an answer is under way, and whether a call waits for an owner's decision.
    is_waiting: bool = False
    asks_owner: bool = False
    #: The newest message: its key, its words, and who said it ("" for the bot).
    newest: int = 0
    last_words: str = ""
    last_name: str = ""


_LINK = 'href="{1}{0}/change/" title="{2} {3} · {4} {5}"'
_ACCOUNT = ' <span class="row-account">{}</span>'
_LINE = '<strong><bdi>{}</bdi></strong>{}<time datetime="{}">{}</time>'


def list_beside(access: ChatAccess, *deferred: str) -> list[Any]:
    """The newest chats that ``access`` reaches, each with its ``facts``, without the columns
    ``deferred``. Five queries."""
    newest: Any = access.sessions().defer(*deferred).order_by("-last_message_at", "-pk")
    return add_session_facts(list(newest[:BESIDE]))


def add_session_facts(sessions: list[Any]) -> list[Any]:
    """Give each row what the list shows of it, in four queries: its account too, where there are
    several."""
    table, now, facts = load_manners_table(), timezone.now(), dict[int, SessionFacts]()
    accounts, today = {row.account for row in sessions}, timezone.localtime(now)
    address, account_word = reverse("admin:agent_chatsession_changelist"), gettext("account")
    for row in sessions:
        at, key = timezone.localtime(row.last_message_at), SafeString(row.pk)
        manners = table.find(session_address(row))
        name = cut_text(escape_direction_chars(row.title or row.peer_id), NAME_CHARACTERS)
        beside = fill(_ACCOUNT, row.account) if len(accounts) > 1 else ""
        about = (label_of(ChatSession.Kind, row.kind), row.peer_id, account_word, row.account)
        row.facts = facts[row.pk] = SessionFacts(
            pk=key,
            link=fill(_LINK, key, address, *about),
            line=fill(_LINE, name, beside, at.isoformat(), format_when(at, today)),
            silenced_by=manners.find_silence(now),
            only_person=manners.find_only(now),
            is_paused=has_pause(row),
            is_playground=is_playground(row.account),
        )
    _add_last_words(facts)
    _add_marks(facts)
    return sessions


def format_when(at: datetime, now: datetime) -> str:
    """The time of today, the day of another one, with its year where that is another too."""
    if at.date() == now.date():
        return f"{at:%H:%M}"
    return f"{at:%m-%d}" if at.year == now.year else f"{at:%Y-%m-%d}"


def _add_last_words(facts: dict[int, SessionFacts]) -> None:
    newest = Message.objects.filter(session=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    sessions = ChatSession.objects.filter(pk__in=facts).annotate(newest=Subquery(newest))
    rows: Any = Message.objects.filter(pk__in=list(sessions.values_list("newest", flat=True)))
    columns = ("session_id", "pk", "words", "direction", "sender_name", "sender_id")
    for pk, message, words, direction, *sender in rows.annotate(
        words=Left("text", EXCERPT)
    ).values_list(*columns):
        fact = facts[pk]
        shown = cut_text(escape_direction_chars(words), WORDS_CHARACTERS)
        fact.newest, fact.last_words = message, shown
        is_from_bot = direction == Message.Direction.OUT
        name = "" if is_from_bot else sender[0] or names_in(pk, sender[1])
        fact.last_name = cut_text(escape_direction_chars(name), SPEAKER_CHARACTERS)


def names_in(session: int, person: str) -> str:
    """What somebody who gave no name with his last message is called there."""
    return find_names([person], Q(session=session)).get(person, person)


def _add_marks(facts: dict[int, SessionFacts]) -> None:
    # All of them, and told apart here: asked for single chats, SQLite reads what these ever said.
    unsettled = Message.objects.filter(UNSETTLED).order_by().values_list("session_id", flat=True)
    for pk in facts.keys() & set(unsettled[:MOST_UNSETTLED]):
        facts[pk].is_waiting = True
    asked = Approval.objects.filter(state=Approval.State.WAITING, session__in=list(facts))
    for pk in asked.order_by().values_list("session_id", flat=True):
        facts[pk].asks_owner = True


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

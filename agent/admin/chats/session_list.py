"""The list of chats: who spoke last and when, what happened today and what it cost, and who is
answered."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, cast

from django.contrib import admin
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agent.access import ChatAccess, find_access
from agent.admin.chats.session_manners import has_pause, session_address, silenced_condition
from agent.domain.budgets import SpendKind, cost_words
from agent.domain.types import is_playground
from agent.models import ActivitySum, ChatSession, Message, SpendSum
from agent.models.activity import WHOLE_DAY
from agent.record.chats.person_names import find_names
from agent.record.settings.manners import load_manners_table
from agent.record.sums.spendings import SUBJECT_LIMIT
from agent.record.waiting.pauses import is_paused
from agent.record.waiting.take_overs import is_taken_over
from tools.admin.filters import PeriodFilter, Rows, window_floor
from tools.admin.record_pages import (
    EXCERPT,
    WORD_LIMIT,
    RecordChangeList,
)
from tools.local_time import current_day
from tools.text.readable import escape_direction_chars

#: Newest messages that a search for words finds chats by.
MOST_FOUND = 20_000
#: Accounts offered as a filter.
ACCOUNT_LIMIT = 20


@dataclass(slots=True)
class SessionFacts:
    """What the list shows of a chat beside its row."""

    silenced_by: str = ""
    is_paused: bool = False
    is_playground: bool = False
    last_words: str = ""
    #: Who said that; "" for the bot.
    last_name: str = ""
    last_at: datetime | None = None
    is_from_bot: bool = False
    #: Messages today; None where nothing is summed up.
    received: int | None = None
    costs: list[str] = field(default_factory=list)


class SessionChangeList(RecordChangeList):
    """Each row has its :class:`SessionFacts`. Four queries more than a list of rows."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = list(self.result_list)
        facts = load_session_facts(rows)
        for row in rows:
            row.facts = facts[row.pk]
        self.result_list = cast("Any", rows)


def load_session_facts(sessions: list[Any]) -> dict[int, SessionFacts]:
    """What the list shows of ``sessions``, by their ids."""
    table, now, facts = load_manners_table(), timezone.now(), dict[int, SessionFacts]()
    for row in sessions:
        facts[row.pk] = SessionFacts(
            silenced_by=table.find(session_address(row)).find_silence(now),
            is_paused=has_pause(row),
            is_playground=is_playground(row.account),
        )
    _add_last_words(facts)
    _add_today(sessions, facts)
    return facts


def _add_last_words(facts: dict[int, SessionFacts]) -> None:
    newest = Message.objects.filter(session=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    sessions = ChatSession.objects.filter(pk__in=facts).annotate(newest=Subquery(newest))
    rows: Any = Message.objects.filter(pk__in=list(sessions.values_list("newest", flat=True)))
    columns = ("session_id", "words", "direction", "sender_name", "sender_id", "created_at")
    for pk, words, direction, *sender, at in rows.annotate(words=Left("text", EXCERPT)).values_list(
        *columns
    ):
        fact = facts[pk]
        fact.last_words, fact.last_at = escape_direction_chars(words), at
        fact.is_from_bot = direction == Message.Direction.OUT
        name = "" if fact.is_from_bot else sender[0] or names_in(pk, sender[1])
        fact.last_name = escape_direction_chars(name)


def names_in(session: int, person: str) -> str:
    """What somebody who gave no name with his last message is called there."""
    return find_names([person], Q(session=session)).get(person, person)


def _add_today(sessions: list[Any], facts: dict[int, SessionFacts]) -> None:
    sums = ActivitySum.objects.filter(day=current_day(), hour=WHOLE_DAY, session__in=list(facts))
    for pk, received in sums.values_list("session_id", "received"):
        facts[pk].received = received
    chats = {f"{row.platform}:{row.account}:{row.key}"[:SUBJECT_LIMIT]: row.pk for row in sessions}
    spent = SpendSum.objects.filter(day=current_day(), kind=SpendKind.CHAT, subject__in=chats)
    for subject, nano, currency in spent.values_list("subject", "cost_nano", "currency"):
        if nano:
            facts[chats[subject]].costs.append(cost_words(nano, currency))


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


class AccountFilter(admin.SimpleListFilter):
    title = _("account")
    parameter_name = "account"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(account, account) for account in known_accounts(find_access(request.user))]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        return queryset.filter(account=self.value()) if self.value() else queryset


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


class SpeakingFilter(admin.SimpleListFilter):
    """Chats in which the bot says nothing, by decision, because it cannot, or because an operator
    answers."""

    title = _("who answers")
    parameter_name = "silence"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("silenced", _("silenced")),
            ("paused", _("cannot speak")),
            ("taken_over", _("taken over")),
            ("bot", _("not taken over")),
        ]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        if self.value() == "silenced":
            return queryset.filter(silenced_condition(load_manners_table()))
        now = timezone.now()
        if self.value() == "taken_over":
            return queryset.filter(is_taken_over(now))
        if self.value() == "bot":
            return queryset.exclude(is_taken_over(now))
        return queryset.filter(is_paused(now)) if self.value() == "paused" else queryset

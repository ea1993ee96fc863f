"""Budgets as the record has them, and that owners were told of them."""

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial, reduce
from operator import or_
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, Sum
from django.utils import timezone
from django.utils.translation import pgettext

from agent.domain.budgets import (
    NANO,
    TOKENS,
    BudgetAction,
    BudgetPeriod,
    BudgetTerms,
    Shortage,
    SpendKind,
    period_start,
)
from agent.domain.notices import ALL, BudgetNews, budget_note
from agent.domain.types import ChatAddress
from agent.models import Budget, BudgetNotice, BudgetStop, ModelEndpoint, Persona, SpendSum
from agent.record.chats.subject_names import name_subjects
from agent.record.settings.chat_choices import free_name
from agent.record.settings.live import LiveSettings
from agent.record.sums.owner_notes import tell_owners
from agent.record.sums.spendings import SUBJECT_LIMIT, load_spent_tokens, sums_since
from tools.local_time import current_day, first_of_day

logger = logging.getLogger(__name__)
#: Subjects of one budget that are looked at.
LISTED = 300


#: Stands for a percentage in the notice that calls under way had all that was left.
IN_USE = 0


class BudgetAlarm(NamedTuple):
    """That so much of a budget is ``spent`` by ``subject``, or that it turned somebody away:
    because the call may take ``needed``, or, where that is None and ``percent`` is
    :data:`IN_USE`, because calls under way may take what is left. ``account`` is the one that it
    was spent for ("" where there is none)."""

    terms: BudgetTerms
    subject: str
    period_start: str
    percent: int
    spent: int
    account: str
    needed: int | None = None

    @property
    def shortage(self) -> Shortage | None:
        """Why somebody was turned away; None where nobody was."""
        if self.needed is None and self.percent != IN_USE:
            return None
        return self.terms.shortage(self.spent, self.needed or 0)


def load_budgets() -> tuple[BudgetTerms, ...]:
    """The budgets that are enabled."""
    return tuple(budget_terms(row) for row in Budget.objects.filter(enabled=True).order_by("pk"))


def budget_terms(row: Budget) -> BudgetTerms:
    """A row as it is obeyed. Without the other endpoint, only owners are answered."""
    action = BudgetAction(row.at_limit)
    if action is BudgetAction.CHEAPER and row.cheaper_id is None:
        action = BudgetAction.OWNERS
    return BudgetTerms(
        row.pk,
        row.name,
        SpendKind(row.kind),
        row.subject,
        BudgetPeriod(row.period),
        int(row.limit * (1 if row.unit == TOKENS else NANO)),
        row.unit,
        action,
        row.cheaper_id,
        row.environment,
    )


def mirror_environment() -> None:
    """Have a budget for TOKENS_PER_DAY as the environment has it now; none where it is 0."""
    limit, name = settings.TOKENS_PER_DAY, "TOKENS_PER_DAY"
    row = Budget.objects.filter(environment=name).first()
    if row is None and limit:
        made = Budget(name=free_name(f".env: {name}"), environment=name, limit=limit, unit=TOKENS)
        # Another process may begin at the same moment, and add it first.
        Budget.objects.bulk_create([made], ignore_conflicts=True)
    elif row is not None and not limit:
        row.delete()
    elif row is not None and row.limit != limit:
        row.limit = limit
        row.save(update_fields=["limit"])


class BudgetAlarms:
    """Tells owners, each once in a period, whichever process sees it first."""

    def __init__(self, live: LiveSettings) -> None:
        self._live = live

    def tell_tokens_spent(self, accounts: Sequence[str], day: str) -> None:
        """Tell the owners of each of ``accounts`` that TOKENS_PER_DAY are used up."""
        for terms in filter(lambda terms: terms.environment, load_budgets()):
            spent = load_spent_tokens(day)
            for one in accounts:
                self.tell(BudgetAlarm(terms, "", day, ALL, spent, one))

    def tell(self, alarm: BudgetAlarm) -> bool:
        """Put an alarm down and tell the owners of its account; whether it was new."""
        terms = alarm.terms
        if not Budget.objects.filter(pk=terms.pk).exists():
            return False
        if alarm.needed is not None:
            _record_stop(alarm, alarm.needed)
        _, is_new = BudgetNotice.objects.get_or_create(
            budget_id=terms.pk,
            # What turns messages away is told by each account that gets some.
            subject=alarm.account if terms.environment else terms.subject,
            period_start=alarm.period_start,
            percent=alarm.percent,
        )
        if not is_new:
            return False
        text = budget_note(
            BudgetNews(
                terms.name,
                _name(alarm),
                alarm.percent,
                terms.in_words(alarm.spent),
                terms.in_words(terms.limit),
                terms.action,
                alarm.shortage,
                terms.environment,
            )
        )
        if alarm.account:
            platform, _, account = alarm.account.partition(":")
            owners = self._live.find_account(account).owners
            tell_owners(ChatAddress(account, "private", "", platform), owners, text, timezone.now())
        transaction.on_commit(partial(logger.warning, "%s", text), robust=True)
        return True


def _name(alarm: BudgetAlarm) -> str:
    if not alarm.subject:
        return str(SpendKind.TOTAL.label)
    return name_subjects(alarm.terms.kind, [alarm.subject])[alarm.subject]


def _record_stop(alarm: BudgetAlarm, needed: int) -> None:
    """Put down whom a budget turned away in its period, with the smallest call that it did not
    allow."""
    whose: dict[str, Any] = {"budget_id": alarm.terms.pk, "subject": alarm.subject[:SUBJECT_LIMIT]}
    known = BudgetStop.objects.filter(**whose, period_start=alarm.period_start).first()
    if known is None or needed < known.needed:
        facts = {"period_start": alarm.period_start, "needed": needed, "at": timezone.now()}
        BudgetStop.objects.update_or_create(**whose, defaults=facts)


class BudgetUse(NamedTuple):
    """What one subject has used of a budget; ``needed`` is the smallest call that it did not allow
    in the period, 0 for none."""

    terms: BudgetTerms
    subject: str
    spent: int
    needed: int = 0

    @property
    def percent(self) -> int:
        return self.terms.used_percent(self.spent)

    @property
    def shortage(self) -> Shortage | None:
        """Why it allows no further call; None where it does, as far as is known."""
        left = self.terms.limit - self.spent
        return self.terms.shortage(self.spent, self.needed) if left < max(1, self.needed) else None

    @property
    def stop_words(self) -> str:
        """That it allows no further call, in a word or two; "" where it does."""
        if self.shortage is None:
            return ""
        is_replaced = self.terms.action is BudgetAction.CHEAPER
        return str(self.terms.action.label) if is_replaced else pgettext("budget", "stopped")

    @property
    def limit_words(self) -> str:
        return self.terms.in_words(self.terms.limit)

    @property
    def spent_words(self) -> str:
        return self.terms.in_words(self.spent)


def load_budget_uses(
    terms: BudgetTerms, subjects: Collection[str] | None = None
) -> list[BudgetUse]:
    """Who used how much of a budget in the present period, of ``subjects`` or of all, most first:
    those who used nothing, and were not turned away, are left out. Two queries."""
    first_day = period_start(terms.period, first_of_day(current_day()))
    rows = sums_since(terms.kind, first_day)
    if terms.subject or subjects is not None:
        rows = SpendSum.objects.filter(kind=terms.kind, day__gte=first_day)
    stops = BudgetStop.objects.filter(budget=terms.pk, period_start=first_day)
    for wanted in ([terms.subject] if terms.subject else None, subjects):
        if wanted is not None:
            rows, stops = rows.filter(subject__in=wanted), stops.filter(subject__in=wanted)
    if terms.unit != TOKENS:
        rows = rows.filter(currency=terms.unit)
    amount = F("input_tokens") + F("output_tokens") if terms.unit == TOKENS else F("cost_nano")
    needed = dict(stops.values_list("subject", "needed")[:LISTED])
    sums = rows.order_by().values_list("subject").annotate(spent=Sum(amount)).order_by("-spent")
    spent = dict([*sums[:LISTED], *sums.filter(subject__in=list(needed))])
    uses = [
        BudgetUse(terms, subject, int(spent.get(subject, 0)), needed.get(subject, 0))
        for subject in {**spent, **needed}
    ]
    return sorted(uses, key=lambda use: (use.shortage is None, -use.spent))


def load_uses(wanted: Sequence[tuple[BudgetTerms, str]]) -> list[BudgetUse]:
    """What a subject has used of a budget in its present period, for each of ``wanted``. Two
    queries for all."""
    if not wanted:
        return []
    today = first_of_day(current_day())
    first_days = {period: period_start(period, today) for period in BudgetPeriod}
    found = BudgetStop.objects.filter(budget__in={terms.pk for terms, _subject in wanted})
    columns = ("budget", "subject", "period_start", "needed")
    stops = {tuple(key): needed for *key, needed in found.values_list(*columns)}
    spent = _sum_periods({(terms.kind, subject) for terms, subject in wanted}, first_days)
    return [
        BudgetUse(
            terms,
            subject,
            spent[terms.kind, subject, terms.period, terms.unit],
            stops.get((terms.pk, subject, first_days[terms.period]), 0),
        )
        for terms, subject in wanted
    ]


def _sum_periods(
    whose: Collection[tuple[SpendKind, str]], first_days: Mapping[BudgetPeriod, str]
) -> "Counter[tuple[str, str, str, str]]":
    """What was spent on each of ``whose``, a kind and a subject, in each period, by unit."""
    by_kind: dict[str, set[str]] = {}
    for kind, subject in whose:
        by_kind.setdefault(kind, set()).add(subject)
    is_wanted = reduce(or_, (Q(kind=kind, subject__in=some) for kind, some in by_kind.items()))
    rows = SpendSum.objects.filter(is_wanted, day__gte=min(first_days.values())).order_by()
    sums: dict[str, Any] = {}
    for period, first_day in first_days.items():
        is_within = Q(day__gte=first_day)
        tokens = F("input_tokens") + F("output_tokens")
        sums[f"{period}_tokens"] = Sum(tokens, filter=is_within, default=0)
        sums[f"{period}_money"] = Sum("cost_nano", filter=is_within, default=0)
    spent: Counter[tuple[str, str, str, str]] = Counter()
    found: Any = rows.values("kind", "subject", "currency").annotate(**sums)
    for row in found:
        for period in first_days:
            key = (row["kind"], row["subject"], period)
            spent[*key, TOKENS] += int(row[f"{period}_tokens"])
            spent[*key, row["currency"]] += int(row[f"{period}_money"])
    return spent


def load_uses_of(
    subjects: Mapping[SpendKind, str], budgets: Collection[BudgetTerms] | None = None
) -> list[BudgetUse]:
    """The budgets that bound what is spent on ``subjects``, one of each kind, with what each has
    used. ``budgets``: those that are enabled, where they were loaded already."""
    found = load_budgets() if budgets is None else budgets
    bounding = [(terms, subjects[terms.kind]) for terms in found if terms.kind in subjects]
    return load_uses([one for one in bounding if one[0].subject in ("", one[1])])


def knows_subject(kind: str, subject: str) -> bool:
    """Whether there is, or was, such a one: something was spent on it, or it has a row."""
    if SpendSum.objects.filter(kind=kind, subject=subject).exists():
        return True
    match kind:
        case SpendKind.ENDPOINT:
            return subject.isdecimal() and ModelEndpoint.objects.filter(pk=subject).exists()
        case SpendKind.PERSONA:
            return Persona.objects.filter(name=subject).exists()
        case _:
            return False

"""Budgets as the record has them, and that owners were told of them."""

import logging
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from django.db import transaction
from django.db.models import F, Sum
from django.utils import timezone

from agent.domain.budgets import (
    NANO,
    TOKENS,
    BudgetAction,
    BudgetPeriod,
    BudgetTerms,
    SpendKind,
)
from agent.domain.notices import budget_note
from agent.domain.types import ChatAddress
from agent.models import Budget, BudgetNotice, ModelEndpoint, Persona, SpendSum
from agent.record.accounts import AccountRows
from agent.record.quotas import tell_owners
from agent.record.spendings import current_day

logger = logging.getLogger(__name__)


class BudgetAlarm(NamedTuple):
    """That so many percent of a budget are used: by ``subject``, who spent it, for ``account``
    ("" where there is none)."""

    terms: BudgetTerms
    subject: str
    period_start: str
    percent: int
    spent: int
    account: str


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
    )


class BudgetAlarms:
    """Tells owners, each once in a period, whichever process sees it first."""

    def __init__(self, accounts: AccountRows) -> None:
        self._accounts = accounts

    def tell(self, alarms: Sequence[BudgetAlarm]) -> list[bool]:
        """Put ``alarms`` down and tell the owners of their accounts; which of them were new."""
        return [self._tell(alarm) for alarm in alarms]

    def _tell(self, alarm: BudgetAlarm) -> bool:
        terms = alarm.terms
        if not Budget.objects.filter(pk=terms.pk).exists():
            return False
        _, is_new = BudgetNotice.objects.get_or_create(
            budget_id=terms.pk,
            subject=terms.subject,
            period_start=alarm.period_start,
            percent=alarm.percent,
        )
        if not is_new:
            return False
        whom = alarm.subject or str(SpendKind.TOTAL.label)
        text = budget_note(
            terms.name,
            whom,
            alarm.percent,
            terms.in_words(alarm.spent),
            terms.in_words(terms.limit),
        )
        if alarm.account:
            platform, _, account = alarm.account.partition(":")
            owners = self._accounts.find(account).owners
            tell_owners(ChatAddress(account, "private", "", platform), owners, text, timezone.now())
        transaction.on_commit(partial(logger.warning, "%s", text), robust=True)
        return True


def most_spent(terms: BudgetTerms) -> tuple[str, int]:
    """Who spent most of the budget in the present period, and how much; ("", 0) for nobody."""
    rows = SpendSum.objects.filter(kind=terms.kind, day__gte=terms.period_start(current_day()))
    if terms.subject:
        rows = rows.filter(subject=terms.subject)
    if terms.unit != TOKENS:
        rows = rows.filter(currency=terms.unit)
    amount = F("input_tokens") + F("output_tokens") if terms.unit == TOKENS else F("cost_nano")
    found = rows.order_by().values_list("subject").annotate(spent=Sum(amount)).order_by("-spent")
    return next(((subject, int(spent)) for subject, spent in found[:1]), ("", 0))


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

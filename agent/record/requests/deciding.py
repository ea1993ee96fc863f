"""Decisions over requests: written before the client is told, told once, and settled by what it
says. One that was being told when its process died is of unknown outcome, and not told again.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone

from agent.domain.client_actions import ActionOutcome
from agent.domain.requests import (
    DECIDED_BEFORE,
    ELSEWHERE,
    LEFT,
    MOST_WORDS,
    NOT_KNOWN_TO_CLIENT,
    TOO_LATE,
    UNKNOWN,
    RequestKind,
    RuleAction,
    answer_action,
)
from agent.domain.states import AWAY
from agent.domain.types import ChatAddress
from agent.models import JoinRequest, ServerProcess
from agent.record.requests.arriving import decide_over, find_left

State = JoinRequest.State
#: What nobody has decided for so long expires.
MOST_AGE = timedelta(days=7)
#: A decision waits so long for its account; then the request waits for another decision.
MOST_WAIT = timedelta(minutes=5)
_OPEN = Q(state=State.WAITING, decision="")


def decide(pks: Collection[int], *, is_approval: bool, by: str, reason: str = "") -> list[int]:
    """Decide over those of ``pks`` that are open; which of them are decided now. One that cannot be
    answered is refused here alone, and never approved."""
    action = RuleAction.APPROVE if is_approval else RuleAction.REFUSE
    rows = JoinRequest.objects.filter(_OPEN, pk__in=pks).select_for_update(no_key=True)
    taken = [row for row in rows.order_by("pk") if row.flag is not None or not is_approval]
    for row in taken:
        row.rule = None
        decide_over(row, action, by, reason)
    fields = ("rule", "decided_by", "decided_at", "reason", "state", "decision")
    JoinRequest.objects.bulk_update(taken, fields)
    return [row.pk for row in taken]


def claim_decided(
    process_id: str, is_connected: Callable[[str], bool], under_way: Collection[Hashable], room: int
) -> list[tuple[int, ChatAddress, str, dict[str, object]]]:
    """Take at most ``room`` decisions that the client is to be told, each with its action. Two
    processes never get the same one. First those are settled that nobody is telling any more: of
    dead processes, and of this one those that are not ``under_way``, whose end was not written."""
    decided = JoinRequest.objects.filter(state=State.WAITING).exclude(decision="")
    others = ServerProcess.objects.exclude(pk=process_id).values_list("pk", flat=True)
    told = Q(claimed_by__in=["", *others]) | Q(claimed_by=process_id, pk__in=under_way)
    _reopen(decided.exclude(told), UNKNOWN)
    due, now = decided.filter(claimed_by=""), timezone.now()
    accounts = due.order_by().values_list("account", flat=True).distinct()
    connected = [account for account in accounts if is_connected(account)]
    away = due.exclude(account__in=connected)
    _reopen(away.filter(decided_at__lt=now - MOST_WAIT), AWAY)
    own = due.filter(account__in=connected).order_by("decided_at", "pk")
    return [
        (row.pk, row.chat, *answer_action(row.kind, row.flag, row.decision, row.reason))
        for row in list(own[:room])
        if due.filter(pk=row.pk).update(claimed_by=process_id)
    ]


def settle(pk: int, process_id: str, outcome: ActionOutcome) -> None:
    """Put down what the client said; nothing where this process has it no more."""
    mine = JoinRequest.objects.filter(pk=pk, claimed_by=process_id).exclude(decision="")
    closed: dict[str, Any] = {"decision": "", "claimed_by": "", "decided_at": timezone.now()}
    words = outcome.words[:MOST_WORDS]
    if outcome.is_success:
        if not mine.filter(decision=RuleAction.APPROVE).update(state=State.APPROVED, **closed):
            mine.update(state=State.REFUSED, **closed)
    elif outcome.is_unknown:
        _reopen(mine, UNKNOWN)
    elif outcome.is_unsupported:
        _reopen(mine, NOT_KNOWN_TO_CLIENT)
    elif DECIDED_BEFORE.search(words):
        mine.update(state=State.EXPIRED, reason=words, **closed)
    else:
        _reopen(mine, words)


def _reopen(rows: Any, why: str) -> None:
    """Have requests wait for another decision."""
    rows.update(decision="", claimed_by="", decided_by="", reason=why)


def note_joins(joins: Sequence[tuple[str, str, str]]) -> list[None]:
    """Somebody is a member now (account, group, person): nothing is left to decide. Those that are
    being approved by this server stay with it."""
    accounts, groups, _people = zip(*joins, strict=True)
    rows = JoinRequest.objects.filter(_OPEN, account__in=accounts, group_id__in=groups)
    joined, over = set(joins), list[int]()
    for row in rows.only("account", "group_id", "user_id", "kind"):
        member = row.account if row.kind == RequestKind.INVITE else row.user_id
        if (row.account, row.group_id, member) in joined:
            over.append(row.pk)
    _expire(rows.filter(pk__in=over), ELSEWHERE)
    return [None] * len(joins)


def sweep() -> bool:
    """Have what is over expire; whether anything is left to be done."""
    if not JoinRequest.objects.filter(state=State.WAITING).exists():
        return False
    rows = JoinRequest.objects.filter(_OPEN).order_by()
    _expire(rows.filter(created_at__lt=timezone.now() - MOST_AGE), TOO_LATE)
    joins = rows.filter(kind=RequestKind.JOIN)
    groups = set(joins.values_list("account", "group_id").distinct())
    for account, group in find_left(groups):
        _expire(joins.filter(account=account, group_id=group), LEFT)
    return True


def _expire(rows: Any, why: str) -> None:
    rows.update(state=State.EXPIRED, reason=why, decided_at=timezone.now())

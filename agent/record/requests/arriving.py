"""Requests that clients report: each on record once, with what a rule decides, in one transaction.

Nobody is let in where no rule says so.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Count, Q
from django.utils import timezone

from agent.domain.requests import LEFT, NO_FLAG, IncomingRequest, RequestKind, RuleAction
from agent.domain.states import PauseReason
from agent.models import ChatSession, JoinRequest
from agent.record.requests.rules import RuleBook
from tools.error_boundary import LogLimit
from tools.live_rows import ConfigVersion, LiveKind

logger = logging.getLogger(__name__)
LogLimit(logger, named=1)
State = JoinRequest.State
#: A request that is reported again so long after its end, in the same words, is still the same.
SAME_FOR = timedelta(days=1)
#: Requests to one account that may wait; more are kept as events of the client alone.
MOST_WAITING = 2_000


def take_in(requests: Sequence[IncomingRequest]) -> list[None]:
    """Put on record what is new of ``requests``, as work to do where a rule decides."""
    book = RuleBook()
    known = _find_known({one.key for one in requests})
    left = find_left({(one.account, one.group_id) for one in requests if one.group_id})
    room = _find_room({one.account for one in requests})
    made = list[JoinRequest]()
    for one in requests:
        row = known.get(one.key)
        if row is not None and _is_same(row, one):
            continue
        if room[one.account] <= 0:
            logger.warning("More requests wait for %s than are kept", one.account)
            continue
        row = known[one.key] = _build(one)
        if one.kind == RequestKind.JOIN and (one.account, one.group_id) in left:
            row.state, row.reason, row.decided_at = State.EXPIRED, LEFT, timezone.now()
        else:
            row.rule, action = book.judge(row)
            if row.rule is not None:
                decide_over(row, action, str(row.rule), row.rule.reason)
        room[one.account] -= row.state == State.WAITING
        made.append(row)
    if made:
        JoinRequest.objects.bulk_create(made, ignore_conflicts=True)
        ConfigVersion.bump(LiveKind.REQUESTS)
    return [None] * len(requests)


def find_left(groups: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of ``groups`` (each an account and an id) that the account is known to have left."""
    sessions = ChatSession.objects.filter(
        kind=ChatSession.Kind.GROUP,
        pause_reason=PauseReason.LEFT,
        account__in={account for account, _ in groups},
        peer_id__in={group for _, group in groups},
    )
    return set(sessions.values_list("account", "peer_id")) & set(groups) if groups else set()


def _find_known(keys: Collection[str]) -> dict[str, JoinRequest]:
    """The newest row of each key."""
    rows = JoinRequest.objects.filter(key__in=keys).order_by("pk")
    return {row.key: row for row in rows.defer("flag")}


def _is_same(row: JoinRequest, request: IncomingRequest) -> bool:
    """Whether ``row`` is this request, and not an earlier one of the same person: some clients name
    all of these alike."""
    ended = row.decided_at or row.created_at
    is_near = (request.happened_at or timezone.now()) - ended < SAME_FOR
    return row.state == State.WAITING or (is_near and row.comment == request.comment)


def _find_room(accounts: Iterable[str]) -> dict[str, int]:
    """How many more requests may wait for each account."""
    waiting = JoinRequest.objects.filter(Q(state=State.WAITING), account__in=accounts)
    counts = dict(waiting.values_list("account").annotate(count=Count("pk")).order_by())
    return {account: MOST_WAITING - counts.get(account, 0) for account in accounts}


def _build(request: IncomingRequest) -> JoinRequest:
    same = ("account", "kind", "user_id", "group_id", "inviter_id", "level", "comment", "flag")
    values: dict[str, Any] = {name: getattr(request, name) for name in (*same, "key")}
    return JoinRequest(reason="" if request.flag is not None else NO_FLAG, **values)


def decide_over(row: JoinRequest, action: str, by: str, reason: str) -> None:
    """Write a decision into ``row``, not yet into the database: it is work to do. What cannot be
    answered is never approved, and refused here alone."""
    if action == RuleAction.WAIT or (row.flag is None and action == RuleAction.APPROVE):
        return
    row.decided_by, row.decided_at = by[:200], timezone.now()
    row.reason = reason if action == RuleAction.REFUSE else ""
    if row.flag is None:
        row.state = State.REFUSED
    else:
        row.decision = action

"""Chats in which an operator answers instead of the bot: he takes over and hands back.

What is said to the bot meanwhile, and what he writes, is part of the history: the model knows both
when it answers again. When a take-over ends by itself stands with the act that began it.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from agent.domain.operator_acts import ActKind
from agent.models import UNSETTLED, ChatSession, Message, OperatorAct
from agent.record.operator_acts import author_name, record_act
from agent.record.own_messages import find_place
from agent.record.pauses import KEPT
from agent.record.runs import settings_version
from agent.record.stops import StopRequest, stop_runs
from tools.models import ConfigVersion

Reason = Message.Reason
#: What goes on in a chat that is taken over.
GOES_ON = (Reason.COMMAND, Reason.DECISION, *KEPT)


def take_over(session_pk: int, author: User | AnonymousUser, end: datetime | None) -> list[int]:
    """Let ``author`` answer instead of the bot until ``end``, None: until somebody hands back. In
    every process from the next message on; what is being answered, or waits for it, is left to him:
    the keys of those messages.
    """
    with transaction.atomic():
        ConfigVersion.bump()  # before all else: of two operators, one waits here for the other
        ChatSession.objects.filter(pk=session_pk).update(
            taken_over_by=author_name(author), taken_over_at=timezone.now()
        )
        left = _leave_to_operator(session_pk, author_name(author))
        until = end.isoformat() if end is not None else ""
        record_act(ActKind.TAKE_OVER, session_pk, author, detail=until)
        return left


def hand_back(session_pk: int, author: User | AnonymousUser | None) -> bool:
    """Let the bot answer again, from the next message on; whether the chat was taken over. Without
    an ``author`` the time was over."""
    with transaction.atomic():
        ConfigVersion.bump()
        taken = ChatSession.objects.filter(pk=session_pk, taken_over_by__isnull=False)
        if not taken.update(taken_over_by=None, taken_over_at=None):
            return False
        record_act(ActKind.HAND_BACK, session_pk, author)
        return True


def find_ends(session_pks: Iterable[int]) -> dict[int, datetime | None]:
    """When the take-overs of these chats end by themselves, by chat; None for never."""
    acts = OperatorAct.objects.filter(session__in=list(session_pks), kind=ActKind.TAKE_OVER)
    newest = acts.order_by("pk").values_list("session_id", "detail")  # the last of each chat wins
    return {pk: parse_datetime(detail) if detail else None for pk, detail in newest}


class TakeOverClock:
    """Ends take-overs whose time is over. It reads the chats only after a change of settings, for a
    take-over is one, and when an end is due."""

    def __init__(self) -> None:
        self._version: int | None = None
        self._next_end: datetime | None = None

    def end_take_overs(self, asked: Sequence[None]) -> list[int]:
        """Hand back the chats whose time is over; how many."""
        now, version = timezone.now(), settings_version()
        is_due = self._next_end is not None and self._next_end <= now
        if version == self._version and not is_due:
            return [0] * len(asked)
        taken = ChatSession.objects.filter(taken_over_by__isnull=False).order_by()
        ends = {
            pk: end
            for pk, end in find_ends(taken.values_list("pk", flat=True)).items()
            if end is not None
        }
        over = [pk for pk, end in ends.items() if end <= now]
        count = sum(hand_back(pk, None) for pk in over)
        left = min((end for end in ends.values() if end > now), default=None)
        transaction.on_commit(partial(self._remember, version, left), robust=True)
        return [count] * len(asked)

    def _remember(self, version: int, next_end: datetime | None) -> None:
        self._version, self._next_end = version, next_end


def _leave_to_operator(session_pk: int, name: str) -> list[int]:
    """Stop what is answered in a chat, and what waits for it, in whatever process."""
    waiting = Message.objects.filter(UNSETTLED, session_id=session_pk).exclude(reason__in=GOES_ON)
    pks = list(waiting.order_by("pk").values_list("pk", flat=True))
    stop_runs([StopRequest(pk, Reason.TAKEN_OVER) for pk in pks])
    left = Message.objects.filter(Q(pk__in=pks) | Q(merged_into__in=pks))
    left.filter(reason=Reason.TAKEN_OVER).update(detail=name)
    left.filter(in_history=True, run=None).update(run_id=find_place(session_pk))
    return pks

"""Chats in which an operator answers instead of the bot: he takes over and hands back.

What is said to the bot meanwhile, and what he writes, is part of the history: the model knows both
when it answers again. All of it stands in the chat's row, which is read with each message.
"""

from datetime import datetime

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agent.domain.states import ActKind
from agent.models import UNSETTLED, ChatSession, Message
from agent.record.chats.own_messages import find_history_run
from agent.record.waiting.operator_acts import author_name, record_act
from agent.record.waiting.pauses import KEPT
from agent.record.waiting.stops import stop_answer

Reason = Message.Reason
#: What goes on in a chat that is taken over.
GOES_ON = (Reason.COMMAND, Reason.DECISION, *KEPT)


def take_over(session_pk: int, author: User | AnonymousUser, end: datetime | None) -> list[int]:
    """Let ``author`` answer instead of the bot until ``end``, None: until somebody hands back. In
    every process from the next message on; what is being answered, or waits for it, is left to him:
    the keys of those messages.
    """
    with transaction.atomic():
        # Before all else: a message, or another operator, waits at this row until it is committed.
        ChatSession.objects.filter(pk=session_pk).update(
            taken_over_by=author_name(author), taken_over_at=timezone.now(), taken_over_until=end
        )
        left = _leave_to_operator(session_pk, author_name(author))
        until = end.isoformat() if end is not None else ""
        record_act(ActKind.TAKE_OVER, session_pk, author, detail=until)
        return left


def hand_back(session_pk: int, author: User | AnonymousUser) -> bool:
    """Let the bot answer again, from the next message on; whether the chat was taken over."""
    with transaction.atomic():
        if not _end(Q(pk=session_pk, taken_over_by__isnull=False)):
            return False
        record_act(ActKind.HAND_BACK, session_pk, author)
        return True


def end_take_overs() -> int:
    """Tidy up the take-overs whose time is over, on record; how many. The bot answers there
    again already."""
    over = Q(taken_over_until__lte=timezone.now())
    ended = 0
    for pk in ChatSession.objects.filter(over).order_by().values_list("pk", flat=True):
        if _end(over & Q(pk=pk)):
            record_act(ActKind.HAND_BACK, pk, None)
            ended += 1
    return ended


def is_taken_over(now: datetime) -> Q:
    """Of the chats in which an operator answers at ``now``."""
    return Q(taken_over_by__isnull=False) & (Q(taken_over_until=None) | Q(taken_over_until__gt=now))


def find_end(session_pk: int) -> datetime | None:
    """When the take-over of a chat that is under way ends by itself."""
    taken = ChatSession.objects.filter(is_taken_over(timezone.now()), pk=session_pk)
    return taken.values_list("taken_over_until", flat=True).first()


def _end(which: Q) -> int:
    return ChatSession.objects.filter(which).update(
        taken_over_by=None, taken_over_at=None, taken_over_until=None
    )


def _leave_to_operator(session_pk: int, name: str) -> list[int]:
    """Stop what is answered in a chat, and what waits for it, in whatever process."""
    waiting = Message.objects.filter(UNSETTLED, session_id=session_pk).exclude(reason__in=GOES_ON)
    pks = list(waiting.order_by("pk").values_list("pk", flat=True))
    for pk in pks:
        stop_answer(pk, Reason.TAKEN_OVER)
    left = Message.objects.filter(Q(pk__in=pks) | Q(merged_into__in=pks))
    left.filter(reason=Reason.TAKEN_OVER).update(detail=name)
    left.filter(in_history=True, run=None).update(run_id=find_history_run(session_pk))
    return pks

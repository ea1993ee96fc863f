"""What the owner of an account writes by hand, as the client reports it: part of the conversation,
as the assistant's words, among the messages of the run that began last. So is what operators write,
and what is said to them while they answer instead of the bot.

A chat's history is ordered by run. What is said before the first run of a chat waits for it.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from agent.domain.answer_triggers import TriggerDecision
from agent.domain.types import IncomingMessage
from agent.models import Message, Run
from agent.models.message import BY_HAND
from agent.record.chats import early_ids
from agent.record.ground import statements

Direction, State = Message.Direction, Message.State

#: The newest messages sent from here that a reported one is compared with by its words.
COMPARED = 50


def file_own_message(message: IncomingMessage, session_pk: int) -> dict[str, Any]:
    """The columns that make what was written by hand part of the history; none for other
    messages."""
    if not message.from_own_account or not message.text:
        return {}
    return {"in_history": True, "run": find_history_run(session_pk)}


def file_heard_message(decision: TriggerDecision, session_pk: int) -> dict[str, Any]:
    """The columns that make what was said to the bot part of the history, where an operator answers
    instead of it; none for other messages."""
    if decision.reason is not Message.Reason.TAKEN_OVER:
        return {}
    return {"in_history": True, "run": find_history_run(session_pk)}


def find_history_run(session_pk: int) -> int | None:
    """The run beside which the history of a chat holds what is said now, and is no run's; None
    before the first run."""
    runs = Run.objects.filter(session_id=session_pk, parent=None).order_by("-pk")
    return runs.values_list("pk", flat=True).first()


def adopt_own_messages(session_pk: int, run_pk: int) -> bool:
    """Put what was written by hand before the first run of a chat before the messages of that run;
    whether there is anything."""
    if not statements.find_waiting.rows(session=session_pk):
        return False
    waiting = Message.objects.filter(session_id=session_pk, in_history=True, run=None)
    reasons = (Message.Reason.OWN_MESSAGE, Message.Reason.TAKEN_OVER)
    return bool(waiting.filter(Q(reason__in=reasons) | BY_HAND).update(run_id=run_pk))


def repeats_own(
    message: IncomingMessage, session_pk: int, received_at: datetime, within: timedelta
) -> bool:
    """Whether a client that reports the account's own messages repeats one that was sent from here.

    It reports some before it answers the call that sent them: then only their words are known.
    """
    if not message.message_id:
        return False
    recent = Message.objects.filter(
        session_id=session_pk, direction=Direction.OUT, created_at__gt=received_at - within
    )
    if recent.filter(message_id=message.message_id).exists():
        return True
    unconfirmed = Q(state__in=(State.SENT, State.UNKNOWN)) | Q(state=State.DELIVERED, message_id="")
    sent = recent.filter(unconfirmed).order_by("-pk").values_list("segments", "text")[:COMPARED]
    said = _essence(message.segments)
    return any(
        text == message.text or (any(said) and _essence(segments) == said)
        for segments, text in sent
    )


def quoted_own_messages(session_pk: int, message: IncomingMessage) -> QuerySet[Message]:
    """What was sent from here and is quoted by ``message``, also where its id came in this moment
    and is not on record yet."""
    is_quoted = Q(message_id=message.quoted_id)
    if echo := early_ids.find_echo(message.chat.account, message.quoted_id):
        is_quoted |= Q(echo=echo)
    return Message.objects.filter(is_quoted, session_id=session_pk, direction=Direction.OUT)


def find_quoted_own(
    messages: Sequence[IncomingMessage], sessions: Sequence[int]
) -> set[tuple[int, str]]:
    """Which of the ids that are quoted are the bot's own messages of the same chat, by session."""
    pairs = [(pk, one) for pk, one in zip(sessions, messages, strict=True) if one.quoted_id]
    if not pairs:
        return set()
    own = Message.objects.filter(
        session_id__in=set(sessions), message_id__in={one.quoted_id for _, one in pairs}
    ).filter(Q(direction=Direction.OUT) | Q(reason=Message.Reason.OWN_MESSAGE))
    found = set(own.order_by().values_list("session_id", "message_id"))
    found |= {
        (pk, one.message_id)
        for one, pk in zip(messages, sessions, strict=True)
        if one.from_own_account
    }
    for pk, one in pairs:
        is_early = (pk, one.quoted_id) not in found and early_ids.find_echo(
            one.chat.account, one.quoted_id
        )
        if is_early and quoted_own_messages(pk, one).exists():
            found.add((pk, one.quoted_id))
    return found


def _essence(segments: Sequence[object]) -> tuple[str, Counter[str]]:
    """What a message says, whoever is mentioned or quoted before it: its typed words, and how many
    media of each type it holds. Clients report spaces and forwards differently."""
    words, others = "", Counter[str]()
    for one in segments:
        kind, data = (one.get("type"), one.get("data")) if isinstance(one, dict) else ("", None)
        if kind == "text" and isinstance(data, dict):
            words += str(data.get("text") or "")
        elif kind == "node":
            others["forward"] = 1
        elif kind not in ("at", "reply"):
            others[str(kind)] += 1
    return "".join(words.split()), others

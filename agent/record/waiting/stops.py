"""Answers that are stopped from outside, and messages that are not answered because they were
recalled.

Whoever works on such an answer writes and sends nothing more: the claims on its message and its run
are moved on.
"""

from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.domain.types import ChatAddress
from agent.models import UNSETTLED, Message, Run, Step, ToolCall
from agent.models.message import BY_HAND
from agent.models.process import NEXT_CLAIM
from agent.record.chats.chat_record import find_session
from agent.record.runs.subagent_runs import NEVER_BEGUN, break_off_run
from agent.record.sums.activity import (
    count_endings,
    count_failed_calls,
    count_messages,
    count_runs,
)
from agent.record.waiting.pauses import KEPT

Reason = Message.Reason
State = Message.State

NOT_SENT = gettext_noop("the answer was stopped before it was sent")
CUT_OFF = gettext_noop("the answer was stopped before the client answered")
BROKEN_OFF = gettext_noop("the answer was stopped")


class StopOutcome(NamedTuple):
    """``is_stopped``: there was something to stop. ``leaves_more``: there are messages that are
    still to be answered, and are nobody's."""

    is_stopped: bool
    leaves_more: bool = False


def stop_answer(message_pk: int, reason: Message.Reason) -> StopOutcome:
    """End the run of a message, if it has begun, and settle the message. ``reason`` is ``stopped``,
    ``paused``, ``taken_over``, or ``recalled``: then it was taken back, or one that is merged into
    it.

    What was on the wire may have arrived. Where something was said, the message counts as answered.
    Of merged messages, some of which were recalled, the others wait again, unless something was
    said; so does what nobody in the chat said, where the account cannot speak there for now.
    """
    runs = _end_runs(message_pk)
    held = Message.objects.filter(UNSETTLED, pk=message_pk)
    if not held.update(claimed_by="", claim_number=NEXT_CLAIM):
        return StopOutcome(bool(runs))
    runs += _end_runs(message_pk)  # of one that began before the message was taken away
    out = Message.objects.filter(run__in=runs, direction=Message.Direction.OUT).exclude(BY_HAND)
    has_spoken = out.filter(state__in=(State.DELIVERED, State.UNKNOWN)).exists()
    group = list(
        Message.objects.filter(Q(pk=message_pk) | Q(merged_into=message_pk)).order_by("pk")
    )
    rest = [one for one in group if one.recalled_at is None]
    if reason == Reason.PAUSED and rest and rest[-1].reason in KEPT and not has_spoken:
        _wait_again(rest)
        return StopOutcome(is_stopped=True, leaves_more=True)
    if reason != Reason.RECALLED or has_spoken or not rest:
        _settle(group, runs, reason, has_spoken=has_spoken)
        return StopOutcome(is_stopped=True)
    recalled = [one for one in group if one.recalled_at is not None]
    for one in recalled:
        one.merged_into = None
    _settle(recalled, runs, reason, has_spoken=False)
    _wait_again(rest)
    return StopOutcome(is_stopped=True, leaves_more=True)


def stop_chat(chat: ChatAddress, reason: Message.Reason, asker: str | None = None) -> bool:
    """Stop what is answered in a chat, by whatever process, of ``asker`` alone unless that is None;
    whether there was anything. Commands go on."""
    session_pk = find_session(chat)
    if session_pk is None:
        return False
    running = Message.objects.filter(
        session_id=session_pk, direction=Message.Direction.IN, state=State.RUNNING
    )
    if asker is not None:
        running = running.filter(sender_id=asker)
    pks = list(running.exclude(reason=Reason.COMMAND).order_by("pk").values_list("pk", flat=True))
    stopped = [stop_answer(pk, reason).is_stopped for pk in pks]
    return any(stopped)


def _settle(
    group: Sequence[Message], runs: Sequence[int], reason: Message.Reason, *, has_spoken: bool
) -> None:
    """Settle messages whose answer was stopped, the last of them for ``reason``; what nobody in
    the chat said stays known as that."""
    for message in group:
        message.state = State.ANSWERED if has_spoken else State.SILENT
        is_heard = has_spoken or reason == Reason.TAKEN_OVER
        message.in_history = is_heard and message.reason not in KEPT
        if message.merged_into_id is None and message.reason not in KEPT:
            message.reason = reason
        message.run_id = runs[-1] if runs else message.run_id
        message.settled_at = timezone.now()
    count_endings({message.pk: message.state for message in group}, timezone.now())
    fields = ("state", "in_history", "reason", "run", "merged_into", "settled_at")
    Message.objects.bulk_update(group, fields)


def _wait_again(group: Sequence[Message]) -> None:
    """The last of the messages is to be answered, with the others merged into it; it is nobody's
    yet."""
    *earlier, last = group
    Message.objects.filter(pk__in=[one.pk for one in earlier]).update(merged_into=last.pk)
    reason = Reason.FOLLOW_UP if last.reason == Reason.MERGED else last.reason
    Message.objects.filter(pk=last.pk).update(
        state=State.WAITING,
        reason=reason,
        merged_into=None,
        claimed_by="",
        claim_number=NEXT_CLAIM,
        settled_at=None,
    )


def _end_runs(message_pk: int) -> list[int]:
    """End the claims on the runs of a message, and settle what they leave. The keys of those that
    were still to go on.

    The runs come first: that waits for what is just being written under a claim, so that what
    follows sees it.
    """
    states = (Run.State.RUNNING, Run.State.INTERRUPTED)
    of_message = Run.objects.filter(message=message_pk, state__in=states, finished_at=None)
    own = list(of_message.filter(parent=None).order_by("pk").values_list("pk", flat=True))
    ended = Run.objects.filter(pk__in=own)
    count_runs(ended, failed=False)
    ended.update(state=Run.State.STOPPED, finished_at=timezone.now(), claim_number=NEXT_CLAIM)
    agents = of_message.filter(state=Run.State.RUNNING).exclude(parent=None)
    for pk in agents.values_list("pk", flat=True):
        break_off_run(pk, BROKEN_OFF)
    for pk in own:
        _count_steps(pk)
    _settle_calls(own, message_pk)
    out = Message.objects.filter(run__in=own, direction=Message.Direction.OUT).exclude(BY_HAND)
    settle_outgoing(out, out.filter(state=State.PENDING), CUT_OFF, NOT_SENT)
    return own


def _count_steps(run_pk: int) -> None:
    """What a run cost, as far as its steps say: the call under way is not on record."""
    steps = Step.objects.filter(run=run_pk).order_by()
    spent = steps.aggregate(
        model_calls=Count("pk"),
        input_tokens=Sum("input_tokens", default=0),
        output_tokens=Sum("output_tokens", default=0),
    )
    Run.objects.filter(pk=run_pk).update(**spent)


def _settle_calls(runs: Sequence[int], message_pk: int) -> None:
    """A call that had begun may have had its effect: those of the runs, and the approved one that
    the message announces."""
    announced = Q(messages__pk=message_pk, approval__isnull=False)
    begun = ToolCall.objects.filter(Q(run__in=runs) | announced, state=ToolCall.State.RUNNING)
    pks = list(begun.order_by("pk").values_list("pk", flat=True))
    count_failed_calls(ToolCall.objects.filter(pk__in=pks))
    ToolCall.objects.filter(pk__in=pks).update(state=ToolCall.State.UNKNOWN, error=BROKEN_OFF)
    waiting = ToolCall.objects.filter(run__in=runs, state=ToolCall.State.WAITING)
    count_failed_calls(waiting)
    waiting.update(state=ToolCall.State.FAILED, error=NEVER_BEGUN)


def settle_outgoing(
    messages: "QuerySet[Message]", unsent: "QuerySet[Message]", cut_off: str, not_sent: str
) -> None:
    """What of ``messages`` was on the wire may have arrived; ``unsent`` is not sent any more. What
    was said to a command is no history."""
    sent, now = messages.filter(state=State.SENT), timezone.now()
    count_messages(sent, State.UNKNOWN)
    lost = {"state": State.UNKNOWN, "detail": cut_off, "settled_at": now}
    sent.filter(run__message__reason=Message.Reason.COMMAND).update(in_history=False, **lost)
    sent.update(in_history=True, **lost)
    count_messages(unsent, State.FAILED)
    unsent.update(state=State.FAILED, detail=not_sent, settled_at=now)

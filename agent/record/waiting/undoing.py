"""Taking back what runs said and did: put down step by step, each claimed before it is tried.

What is taken back leaves the history that models are shown, at once and whatever comes of the
steps; the record keeps it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from agent.domain import undo
from agent.domain.chat_state import take_back_change
from agent.domain.errors import choose_language
from agent.domain.types import ChatAddress
from agent.domain.undo import (
    WORDS_LIMIT,
    UndoAsker,
    UndoKind,
    UndoOutcome,
    UndoReach,
    UndoState,
    judge_undo,
)
from agent.models import Approval, ChatSession, Message, Run, ServerProcess, ToolCall, UndoStep
from agent.models.message import BY_HAND
from agent.record.chats.chat_record import drop_summaries, find_address
from agent.record.waiting.approvals import settle_approval
from agent.record.waiting.command_orders import load_last_words
from agent.record.waiting.hand_messages import GOING_ON
from tools.contract import RecordedCall
from tools.live_rows import ConfigVersion, LiveKind
from tools.text.storable import make_storable

Direction, Reason, State = Message.Direction, Message.Reason, UndoState
#: Newest answers among which one is looked for that is not undone yet.
MOST_RUNS = 20
#: States of what may be in a chat.
SENT = (Message.State.DELIVERED, Message.State.UNKNOWN)
MADE = (ToolCall.State.SUCCEEDED, ToolCall.State.UNKNOWN)


class UndoRefused(Exception):  # noqa: N818 - the word says what happened
    """Nothing is taken back; the text is one sentence that says why."""


@dataclass(frozen=True, slots=True)
class UndoWish:
    """What is to be taken back: the answer that is quoted, the run ``run_pk``, or else the last
    answer of the chat that is not. ``undoable`` are the tools that can take calls back."""

    session_pk: int
    asker: UndoAsker
    undoable: frozenset[str]
    quoted_id: str = ""
    run_pk: int | None = None
    command: int | None = None


@dataclass(frozen=True, slots=True)
class UndoWork:
    """A step that is to be tried now: a message to be recalled, or a call."""

    chat: ChatAddress
    session_pk: int
    message_id: str = ""
    call: RecordedCall | None = None
    asked_by: str = ""
    language: str = ""
    """Of the chat, for the words of tools."""


def plan_undo(wish: UndoWish) -> list[int]:
    """Put down what is to be taken back, and take it out of the history; the keys of the steps, in
    order. Of a command that was carried out before a crash, those that it put down then.

    Raises :class:`UndoRefused`.
    """
    if wish.command is not None and (known := _continue(wish.command)):
        return known
    run, reach = _choose(wish)
    Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    if not (steps := _left(run, reach, wish.undoable)):
        raise UndoRefused(gettext("There is nothing left to undo."))
    now = timezone.now()
    for step in steps:
        step.author, step.command, step.created_at = wish.asker.author[:200], wish.command, now
        step.settled_at = now if step.state != State.WAITING else None
    UndoStep.objects.bulk_create(steps)
    if reach > UndoReach.WORDS:  # what waits for a word is not to be done later
        for pk in Approval.objects.filter(call__run=run, state="waiting").values_list("pk"):
            settle_approval(*pk, is_approval=False, by=wish.asker.author)
    _leave_history(run, [step.message_id for step in steps if step.message_id])
    if wish.command is None:
        ConfigVersion.bump(LiveKind.UNDO)
    return [step.pk for step in steps]


def _continue(command: int) -> list[int]:
    """Who began is gone: of a step that was being tried nobody knows the outcome."""
    steps = UndoStep.objects.filter(command=command).order_by("pk")
    _give_up(steps)
    return list(steps.values_list("pk", flat=True))


def _give_up(steps: "QuerySet[UndoStep]") -> None:
    steps.filter(state=State.RUNNING).update(
        state=State.UNKNOWN, words=undo.STOPPED, settled_at=timezone.now()
    )


def _choose(wish: UndoWish) -> tuple[Run, UndoReach]:
    """The run that is meant, and how much of it may be taken back. Raises :class:`UndoRefused`."""
    if wish.run_pk is not None or wish.quoted_id:
        run = _find_quoted(wish) if wish.quoted_id else _answers(wish, pk=wish.run_pk).first()
        if run is None:
            raise UndoRefused(gettext("That message is not known here."))
        return run, _judge(wish.asker, run)
    runs = _answers(wish).exclude(message__reason=Reason.COMMAND)
    if wish.asker.reach == UndoReach.WORDS:
        runs = runs.filter(message__sender_id=wish.asker.person)
    for run in runs.order_by("-pk")[:MOST_RUNS]:
        if _left(run, wish.asker.reach, wish.undoable):
            return run, _judge(wish.asker, run)
    raise UndoRefused(gettext("There is nothing left to undo."))


def _answers(wish: UndoWish, **which: object) -> "QuerySet[Run]":
    """What was answered in the chat, and is over."""
    runs = Run.objects.filter(session=wish.session_pk, parent=None, message__isnull=False)
    runs = runs.filter(**which)
    return runs.exclude(state__in=GOING_ON).select_related("message", "session")


def _find_quoted(wish: UndoWish) -> Run | None:
    said = Message.objects.filter(session=wish.session_pk, message_id=wish.quoted_id)
    found = said.exclude(BY_HAND).exclude(reason=Reason.LATER_RESULT).order_by("-pk").first()
    if found is None:
        return None
    if found.direction == Direction.OUT:
        return _answers(wish, pk=found.run_id).first()
    return _answers(wish, message=found.merged_into_id or found.pk).order_by("-pk").first()


def _judge(asker: UndoAsker, run: Run) -> UndoReach:
    asked_by = run.message.sender_id if run.message else ""
    verdict = judge_undo(asker, asked_by, run.finished_at, timezone.now())
    if isinstance(verdict, str):
        raise UndoRefused(gettext(verdict))
    return verdict


def _left(run: Run, reach: UndoReach, undoable: Iterable[str]) -> list[UndoStep]:
    """The steps that are not put down yet, those that cannot be tried with their end."""
    steps = [_message_step(run, one) for one in _said(run, reach) if not one.undo_steps.exists()]
    if reach > UndoReach.WORDS:
        told = run.message.tool_call_id if run.message else None  # whose outcome it told later
        calls = ToolCall.objects.filter(
            Q(run=run) | Q(run__parent__run=run) | Q(pk=told), state__in=MADE, mocked=False
        ).order_by("-pk")
        steps_of = UndoStep.objects.filter(tool_call__in=calls.values("pk").order_by())
        done = set(steps_of.values_list("tool_call", "kind"))
        for call in calls.defer("full_result", "result"):
            if call.tool_name in undoable and (call.pk, UndoKind.CALL) not in done:
                steps.append(_call_step(run, call))
            if call.state_change and (call.pk, UndoKind.STATE) not in done:
                steps.append(UndoStep(run=run, kind=UndoKind.STATE, tool_call=call))
    return steps


def _said(run: Run, reach: UndoReach) -> "QuerySet[Message]":
    """What the run has said, but for questions to owners."""
    out = Message.objects.filter(run=run, direction=Direction.OUT, state__in=SENT)
    asked = Approval.objects.filter(call__run=run, session=run.session).values("call")
    out = out.exclude(BY_HAND).exclude(~Q(session=run.session), tool_call__in=asked)
    if reach < UndoReach.EVERYTHING:
        out = out.filter(session=run.session)
    return out.order_by("pk").defer("segments", "raw")


def _message_step(run: Run, message: Message) -> UndoStep:
    step = UndoStep(run=run, kind=UndoKind.MESSAGE, message=message)
    if message.recalled_at is not None:
        step.state = State.DONE
    elif not message.message_id:
        is_lost = message.state == Message.State.UNKNOWN
        step.state, step.words = State.FAILED, undo.LOST if is_lost else undo.NO_ID
    return step


def _call_step(run: Run, call: ToolCall) -> UndoStep:
    step = UndoStep(run=run, kind=UndoKind.CALL, tool_call=call)
    if call.state == ToolCall.State.UNKNOWN:
        step.state, step.words = State.FAILED, undo.NOT_SURE
    return step


def _leave_history(run: Run, said: Sequence[int]) -> None:
    own = Q(run=run, session=run.session, direction=Direction.OUT) & ~BY_HAND
    asked = Q(pk=run.message_id) | Q(merged_into=run.message_id)
    Message.objects.filter(own | asked | Q(pk__in=said)).update(in_history=False)
    drop_summaries(run.session_id or 0, run.pk)


def begin_undo_step(pk: int, process_id: str) -> UndoWork | None:
    """Claim a step that waits; None for one that does not any more. What only the database holds is
    taken back in this transaction, and there is nothing more to do then."""
    claimed = UndoStep.objects.filter(pk=pk, state=State.WAITING)
    if not claimed.update(state=State.RUNNING, claimed_by=process_id):
        return None
    rows = UndoStep.objects.select_related("run", "message", "tool_call")
    step = rows.get(pk=pk)
    call, message = step.tool_call, step.message
    locked = ChatSession.objects.select_for_update(no_key=True)
    session = locked.get(pk=(message or step.run).session_id or 0)
    if call and step.kind == UndoKind.STATE:
        settle_undo_step(pk, _restore_state(session, call.state_change or {}))
        return None
    return UndoWork(
        find_address(session),
        session.pk,
        message.message_id if message else "",
        _recorded(call) if call else None,
        call.requested_by if call else "",
        choose_language(load_last_words(session.pk)),
    )


def _recorded(call: ToolCall) -> RecordedCall:
    told = call.full_result or call.result
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    return RecordedCall(call.tool_name, arguments, told, call.structured_content, call.pk)


def _restore_state(session: ChatSession, change: dict[str, Any]) -> UndoOutcome:
    before, after = change.get("before", {}), change.get("after", {})
    session.state, is_whole = take_back_change(session.state, before, after)
    session.save(update_fields=["state"])
    return UndoOutcome(State.DONE) if is_whole else UndoOutcome(State.FAILED, undo.CHANGED)


def settle_undo_step(pk: int, outcome: UndoOutcome) -> None:
    UndoStep.objects.filter(pk=pk, state=State.RUNNING).update(
        state=outcome.state,
        words=make_storable(outcome.words)[:WORDS_LIMIT],
        settled_at=timezone.now(),
    )


def find_left_undo_steps(process_id: str) -> list[int]:
    """What operators have ordered and nobody tries; of what a dead process was trying nobody knows
    the outcome."""
    left = UndoStep.objects.filter(command=None, state__in=(State.WAITING, State.RUNNING))
    living = {process_id, *ServerProcess.objects.values_list("pk", flat=True)}
    _give_up(left.exclude(claimed_by__in=living))
    waiting = left.filter(state=State.WAITING).order_by("pk")
    return list(waiting.values_list("pk", flat=True))


def has_more(pks: Sequence[int], undoable: frozenset[str]) -> bool:
    """Whether somebody who may do more can take more of the run of these steps back."""
    run = Run.objects.select_related("session").get(undo_steps=pks[0])
    return bool(_left(run, UndoReach.EVERYTHING, undoable))


class ToldStep(NamedTuple):
    """A step, as people are told of it. ``words`` are in their language, where they are ours."""

    kind: UndoKind
    state: UndoState
    tool_name: str
    words: str
    author: str
    at: datetime


def load_undo_steps(**which: int) -> list[ToldStep]:
    """The steps of a ``run``, or of a ``command``, in order."""
    names = ("kind", "state", "tool_call__tool_name", "words", "author", "created_at")
    return [
        ToldStep(UndoKind(kind), UndoState(state), tool or "", words and gettext(words), author, at)
        for kind, state, tool, words, author, at in UndoStep.objects.filter(**which)
        .order_by("pk")
        .values_list(*names)
    ]

"""Taking back what runs said and did: put down step by step, each claimed before it is tried.

What is taken back leaves the history that models are shown, at once and whatever comes of the
steps; the record keeps it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop as _

from agent.domain import undo
from agent.domain.chat_state import take_back_change
from agent.domain.errors import choose_language
from agent.domain.types import ChatAddress
from agent.domain.undo import (
    UndoAsker,
    UndoKind,
    UndoOutcome,
    UndoReach,
    UndoState,
    judge_undo,
)
from agent.models import Approval, ChatSession, Message, Run, ServerProcess, ToolCall, UndoStep
from agent.models.message import BY_HAND
from agent.record.chats.chat_record import find_address, forget_words
from agent.record.waiting.approvals import withdraw_approval
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
#: Paths from a call to its run, and to that which had an agent, or agents of agents, make it.
OF_RUN = tuple("run" + "__parent__run" * depth for depth in range(4))
#: What becomes of a step that was being tried when its process ended.
STOPPED = UndoOutcome(State.UNKNOWN, _("the server stopped before the outcome was known"))
#: Characters of the words of clients and tools that are kept.
WORDS_LIMIT = 500


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
    if wish.command is not None:
        earlier = UndoStep.objects.filter(command=wish.command)
        _settle(earlier)  # who began is gone
        if known := list(earlier.values_list("pk", flat=True)):
            return known
    run, now = _choose(wish), timezone.now()
    asked_by = run.message.sender_id if run.message else ""
    reach = judge_undo(wish.asker, asked_by, run.finished_at, now)
    if isinstance(reach, str):
        raise UndoRefused(gettext(reach))
    Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    found = _left(run, reach, wish.undoable)
    if not (steps := [step for step in found if _withdraw(step, wish)]):
        raise UndoRefused(gettext(undo.NOTHING_LEFT))
    for step in steps:
        step.author, step.command, step.created_at = wish.asker.author[:200], wish.command, now
        step.settled_at = now if step.state != State.WAITING else None
    UndoStep.objects.bulk_create(steps)
    _leave_history(run, [step.message_id for step in steps if step.message_id])
    if wish.command is None:
        ConfigVersion.bump(LiveKind.UNDO)
    return [step.pk for step in steps]


def _choose(wish: UndoWish) -> Run:
    """The run that is meant, of those that answered in the chat and are over. Raises
    :class:`UndoRefused`."""
    runs = Run.objects.filter(session=wish.session_pk, parent=None, message__isnull=False)
    runs = runs.exclude(state__in=GOING_ON).select_related("message", "session").order_by("-pk")
    if wish.run_pk is not None or wish.quoted_id:
        run = runs.filter(_quoted(wish) if wish.quoted_id else Q(pk=wish.run_pk)).first()
        if run is None:
            raise UndoRefused(gettext("That message is not known here."))
        return run
    runs = runs.exclude(message__reason=Reason.COMMAND)
    if wish.asker.reach == UndoReach.WORDS:
        runs = runs.filter(message__sender_id=wish.asker.person)
    for run in runs[:MOST_RUNS]:
        if _left(run, wish.asker.reach, wish.undoable):
            return run
    raise UndoRefused(gettext(undo.NOTHING_LEFT))


def _quoted(wish: UndoWish) -> Q:
    said = Message.objects.filter(session=wish.session_pk, message_id=wish.quoted_id)
    found = said.exclude(BY_HAND).exclude(reason=Reason.LATER_RESULT).order_by("-pk").first()
    if found is None or found.direction == Direction.OUT:
        return Q(pk=found and found.run_id)
    return Q(message=found.merged_into_id or found.pk)


def _left(run: Run, reach: UndoReach, undoable: frozenset[str]) -> list[UndoStep]:
    """The steps that are not put down yet, those that cannot be tried with their end."""
    steps = [UndoStep(run=run, kind=UndoKind.MESSAGE, message=one) for one in _said(run, reach)]
    told = run.message.tool_call_id if run.message else None  # whose outcome it told later
    of_run = reduce(or_, (Q(**{path: run}) for path in OF_RUN), Q(pk=told))
    wanted = Q(approval__state="waiting", approval__expires_at__gt=timezone.now())
    if reach > UndoReach.WORDS:
        wanted |= Q(state__in=MADE) | Q(state_change__isnull=False)
    calls = ToolCall.objects.filter(of_run, wanted, mocked=False).order_by("-pk")
    steps_of = UndoStep.objects.filter(tool_call__in=calls.values("pk").order_by())
    done = set(steps_of.values_list("tool_call", "kind"))
    for call in calls.defer("full_result", "result"):
        is_made = call.state in MADE and call.tool_name in undoable
        kinds = {
            UndoKind.CALL: is_made or call.state == ToolCall.State.PENDING,
            UndoKind.STATE: call.state_change,
        }
        steps += [
            UndoStep(run=run, kind=kind, tool_call=call)
            for kind, is_there in kinds.items()
            if is_there and (call.pk, kind) not in done
        ]
    for step in steps:
        step.state, step.words = _end_at_once(step)
    return steps


def _withdraw(step: UndoStep, wish: UndoWish) -> bool:
    """Whether ``step`` is to be put down: a call that waits for a word is not to be made later,
    unless somebody has just decided."""
    if step.words != undo.WITHDRAWN or step.tool_call is None:
        return True
    tells = wish.command is None  # else the answer to the command says it
    return withdraw_approval(step.tool_call.approval.pk, wish.asker.author, tells=tells)


def _said(run: Run, reach: UndoReach) -> "QuerySet[Message]":
    """What the run has said and is not put down yet, but for questions to owners."""
    here, all_there = Q(session=run.session), reach == UndoReach.EVERYTHING
    asked = Approval.objects.filter(here, call__run=run).values("call")
    out = Message.objects.filter(run=run, direction=Direction.OUT, state__in=SENT, undo_steps=None)
    out = out.filter(Q() if all_there else here).exclude(BY_HAND)
    return out.exclude(~here, tool_call__in=asked).order_by("pk").defer("segments", "raw")


def _end_at_once(step: UndoStep) -> tuple[UndoState, str]:
    """The end of what cannot be tried, and why."""
    message, call = step.message, step.tool_call
    if message and message.recalled_at:
        return State.DONE, ""
    if message and not message.message_id:
        if message.state == Message.State.UNKNOWN:
            return State.FAILED, _("nobody knows whether it arrived")
        return State.FAILED, _("the client gave it no id")
    if call and call.state == ToolCall.State.PENDING:
        return State.DONE, undo.WITHDRAWN
    if call and step.kind == UndoKind.CALL and call.state == ToolCall.State.UNKNOWN:
        return State.FAILED, _("nobody knows whether it was carried out")
    return State.WAITING, ""


def _leave_history(run: Run, said: Sequence[int]) -> None:
    own = Q(run=run, session=run.session, direction=Direction.OUT) & ~BY_HAND
    asked = Q(pk=run.message_id) | Q(merged_into=run.message_id)
    rows = Message.objects.filter(own | asked | Q(pk__in=said)).order_by()
    gone = list(rows.defer("segments", "raw"))
    for row in gone:
        forget_words(row)
    Message.objects.filter(pk__in=[row.pk for row in gone]).update(in_history=False)


def begin_undo_step(pk: int, process_id: str) -> UndoWork | None:
    """Claim a step that waits; None for one that does not any more. What only the database holds is
    taken back in this transaction, and there is nothing more to do then."""
    claimed = UndoStep.objects.filter(pk=pk, state=State.WAITING)
    if not claimed.update(state=State.RUNNING, claimed_by=process_id):
        return None
    step = UndoStep.objects.select_related("run", "message", "tool_call").get(pk=pk)
    call, message = step.tool_call, step.message
    locked = ChatSession.objects.select_for_update(no_key=True)
    session = locked.get(pk=(message or step.run).session_id or 0)
    if call and step.kind == UndoKind.STATE:
        settle_undo_step(pk, _restore_state(session, call.state_change or {}))
        return None
    recorded = (
        None
        if call is None
        else RecordedCall(
            call.tool_name,
            call.arguments if isinstance(call.arguments, dict) else {},
            call.full_result or call.result,
            call.structured_content,
            call.pk,
        )
    )
    return UndoWork(
        find_address(session),
        session.pk,
        message.message_id if message else "",
        recorded,
        call.requested_by if call else "",
        choose_language(load_last_words(session.pk)),
    )


def _restore_state(session: ChatSession, change: dict[str, Any]) -> UndoOutcome:
    before, after = change.get("before", {}), change.get("after", {})
    session.state, is_whole = take_back_change(session.state, before, after)
    session.save(update_fields=["state"])
    return UndoOutcome(State.DONE) if is_whole else UndoOutcome(State.FAILED, undo.CHANGED)


def settle_undo_step(pk: int, outcome: UndoOutcome) -> None:
    _settle(UndoStep.objects.filter(pk=pk), outcome)


def _settle(steps: "QuerySet[UndoStep]", outcome: UndoOutcome = STOPPED) -> None:
    steps.filter(state=State.RUNNING).update(
        state=outcome.state,
        words=make_storable(outcome.words)[:WORDS_LIMIT],
        settled_at=timezone.now(),
    )


def find_left_undo_steps(process_id: str) -> list[int]:
    """What operators have ordered and nobody tries; asked by a process that tries nothing of it. Of
    what that, or a dead one, was trying nobody knows the outcome."""
    left = UndoStep.objects.filter(command=None, state__in=(State.WAITING, State.RUNNING))
    others = ServerProcess.objects.exclude(pk=process_id).values_list("pk", flat=True)
    _settle(left.exclude(claimed_by__in=list(others)))
    return list(left.filter(state=State.WAITING).values_list("pk", flat=True))


def has_more(pks: Sequence[int], undoable: frozenset[str]) -> bool:
    """Whether somebody who may do more can take more of the run of these steps back."""
    run = Run.objects.select_related("session").get(undo_steps=pks[0])
    return bool(_left(run, UndoReach.EVERYTHING, undoable))


class ToldStep(NamedTuple):
    """A step, as people are told of it. ``words`` are in their language, where they are ours."""

    kind: UndoKind
    state: UndoState
    words: str
    tool_name: str
    author: str
    at: datetime


def load_undo_steps(**which: int) -> list[ToldStep]:
    """The steps of a ``run``, or of a ``command``, in order."""
    names = ("kind", "state", "words", "tool_call__tool_name", "author", "created_at")
    return [
        ToldStep(UndoKind(kind), UndoState(state), gettext(words), tool or "", author, at)
        for kind, state, words, tool, author, at in UndoStep.objects.filter(**which).values_list(
            *names
        )
    ]

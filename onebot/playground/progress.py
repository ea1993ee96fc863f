"""What became of one message of a playground, read from the record: the decision, the runs for it
with their steps and calls, and what was sent."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from agent.admin.chats.reasons import reason_words
from agent.admin.runs.held_back import hold_back_endpoints
from agent.admin.runs.run_page import format_run_duration, shown_note
from agent.admin.runs.run_rows import load_inner_runs
from agent.admin.runs.step_facts import RunSums, describe_step, describe_verdict, load_sums
from agent.models import Approval, ChatSession, Message, Run, Step, ToolCall
from tools.text.readable import arguments_text, drop_surrogates

#: Runs of one message, and steps, calls and messages of one run that are shown; the run's own page
#: has all.
RUN_LIMIT, STEP_LIMIT, CALL_LIMIT, SENT_LIMIT = 5, 30, 100, 50
State = Message.State
_ACTIVE = (State.WAITING, State.RUNNING, State.PENDING, State.SENT)


@dataclass(frozen=True, slots=True)
class ShownRun:
    """One run: with its steps, each as a dictionary with the calls inside, and what it sent."""

    run: Run
    seconds: str
    sums: RunSums
    notes: list[str]
    steps: list[dict[str, Any]]
    sent: list[Message]


@dataclass(frozen=True, slots=True)
class Progress:
    """The message, why it is answered or not, and what was done for it; empty while it is not on
    record."""

    session: ChatSession | None = None
    message: Message | None = None
    reason: str = ""
    runs: list[ShownRun] = field(default_factory=list)
    is_active: bool = True
    digest: str = "none"


def load_progress(account: str, chat: str, message_id: str, user: Any) -> Progress:
    """Of the message that the client of ``account`` knows by ``message_id``, in the chat with that
    key; where that is an answer, of the message that it answers. As ``user`` may see it."""
    kind, _colon, peer = chat.partition(":")
    place = {"platform": "onebot", "account": account, "kind": kind, "peer_id": peer}
    session = ChatSession.objects.filter(**place).first() if message_id else None
    if session is None:
        return Progress()
    found = Message.objects.filter(session=session, message_id=message_id[:128]).order_by("-pk")
    message = _asked(found.defer("segments", "raw").first())
    if message is None:
        return Progress(session)
    runs = [_shown_run(run, user) for run in _runs(message)]
    is_active = message.state in _ACTIVE or any(map(_is_at_work, runs))
    detail = drop_surrogates(message.detail[:500])
    reason = reason_words(message, detail)
    return Progress(session, message, reason, runs, is_active, _digest(message, runs))


def _asked(message: Message | None) -> Message | None:
    """The message that was answered: by ``message`` itself, if that went out, and together with
    it, if it was merged."""
    if message is None:
        return None
    if message.direction == Message.Direction.OUT and message.run and message.run.message_id:
        message = message.run.message
    return message.merged_into or message if message else None


def _runs(message: Message) -> Iterable[Run]:
    if message.direction == Message.Direction.OUT:
        return Run.objects.filter(pk=message.run_id or 0)
    return Run.objects.filter(message=message).order_by("-pk")[:RUN_LIMIT]


def _is_at_work(shown: ShownRun) -> bool:
    return shown.run.state == Run.State.RUNNING or any(
        message.state in _ACTIVE for message in shown.sent
    )


def _shown_run(run: Run, user: Any) -> ShownRun:
    calls = list(
        ToolCall.objects.filter(run=run)
        .defer("structured_content", "full_result")
        .order_by("step_id", "position")[:CALL_LIMIT]
    )
    keys = [call.pk for call in calls]
    approvals = {one.call_id: one for one in Approval.objects.filter(call__in=keys)}
    inner = load_inner_runs(calls)
    sent = Message.objects.filter(run=run, direction=Message.Direction.OUT).order_by("pk")
    steps = Step.objects.filter(run=run).defer("request").order_by("number")[:STEP_LIMIT]
    for step in steps:
        hold_back_endpoints(step, user)
    shown_calls = [
        {
            "call": call,
            "arguments": arguments_text(call.arguments),
            "verdict": describe_verdict(call.verdict),
            "approval": approvals.get(call.pk),
            "runs": inner.get(call.pk, []),
        }
        for call in calls
    ]
    return ShownRun(
        run=run,
        seconds=format_run_duration(run),
        sums=load_sums(run),
        notes=[shown_note(drop_surrogates(str(note))) for note in run.notes],
        steps=[_shown_step(step, shown_calls) for step in steps],
        sent=list(sent.defer("segments", "raw")[:SENT_LIMIT]),
    )


def _shown_step(step: Step, calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    own = [shown for shown in calls if shown["call"].step_id == step.pk]
    answer = step.response.get("content") if isinstance(step.response, dict) else ""
    text = drop_surrogates(answer) if isinstance(answer, str) else ""
    return {"step": step, "text": text, "calls": own, **describe_step(step)}


def _digest(message: Message, runs: Sequence[ShownRun]) -> str:
    """What changes with all that is shown."""
    facts: list[Any] = [message.pk, message.state, message.reason, message.detail]
    for shown in runs:
        facts += [shown.run.pk, shown.run.state, shown.run.error, len(shown.steps)]
        facts += [(one.pk, one.state, one.detail, one.recalled_at) for one in shown.sent]
        for made in chain.from_iterable(step["calls"] for step in shown.steps):
            call, approval = made["call"], made["approval"]
            facts += [call.pk, call.state, call.progress, approval and approval.state]
            facts += [(run.pk, run.state) for run in made["runs"]]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]

"""Runs of agents that work for a tool call: begun for it, and broken off with it."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.models import Run, ToolCall
from agent.models.process import NEXT_CLAIM
from agent.record.sums.activity import count_failed_calls

SERVER_STOPPED = gettext_noop("the server stopped before the agent had finished")
NEVER_BEGUN = gettext_noop("the run was over before the call began")


@dataclass(frozen=True, slots=True)
class StartSubagentRun:
    """A request for a run on behalf of a tool call, claimed by a process."""

    call_pk: int
    model: str
    process_id: str
    persona: str = ""


@dataclass(frozen=True, slots=True)
class RunBreakOff:
    """A run that was ended from outside, or by a fault of the program."""

    run_pk: int
    reason: str


def begin_subagent_runs(wishes: Sequence[StartSubagentRun]) -> list[int]:
    """Begin runs in the chat, and for the message, of the runs that made the calls; their keys."""
    now = timezone.now()
    calls = ToolCall.objects.filter(pk__in=[wish.call_pk for wish in wishes])
    columns = ("pk", "run__session_id", "run__message_id", "run__config_version")
    where = {pk: ids for pk, *ids in calls.values_list(*columns)}
    rows = [
        {
            "session_id": where[wish.call_pk][0],
            "message_id": where[wish.call_pk][1],
            "parent_id": wish.call_pk,
            "origin": Run.Origin.AGENT,
            "model": wish.model,
            "claimed_by": wish.process_id,
            "started_at": now,
            "persona": wish.persona[:100],
            "config_version": where[wish.call_pk][2],
        }
        for wish in wishes
    ]
    return [run.pk for run in Run.objects.bulk_create([Run(**row) for row in rows])]


def break_off_runs(broken: RunBreakOff) -> None:
    """Settle a run that will not be resumed: the outcome of a call that had begun is unknown."""
    Run.objects.filter(pk=broken.run_pk, state=Run.State.RUNNING).update(
        state=Run.State.INTERRUPTED,
        error=broken.reason,
        finished_at=timezone.now(),
        claim_number=NEXT_CLAIM,
    )
    # After what was just being written under the claim.
    calls = ToolCall.objects.filter(run=broken.run_pk)
    count_failed_calls(calls.filter(state__in=(ToolCall.State.RUNNING, ToolCall.State.WAITING)))
    calls.filter(state=ToolCall.State.RUNNING).update(state=ToolCall.State.UNKNOWN)
    calls.filter(state=ToolCall.State.WAITING).update(
        state=ToolCall.State.FAILED, error=NEVER_BEGUN
    )

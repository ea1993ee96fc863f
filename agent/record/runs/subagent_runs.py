"""Runs of agents that work for a tool call: begun for it, and broken off with it."""

from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.models import Run, ToolCall
from agent.models.process import NEXT_CLAIM
from agent.record.sums.activity import count_failed_calls

SERVER_STOPPED = gettext_noop("the server stopped before the agent had finished")
NEVER_BEGUN = gettext_noop("the run was over before the call began")


def begin_subagent_run(call_pk: int, model: str, process_id: str, persona: str = "") -> int:
    """Begin a run on behalf of a tool call, claimed by a process, in the chat, and for the message,
    of the run that made the call; its key."""
    run = ToolCall.objects.select_related("run").get(pk=call_pk).run
    begun = Run.objects.create(
        session_id=run.session_id,
        message_id=run.message_id,
        parent_id=call_pk,
        origin=Run.Origin.AGENT,
        model=model,
        claimed_by=process_id,
        started_at=timezone.now(),
        persona=persona[:100],
        config_version=run.config_version,
    )
    return begun.pk


def break_off_run(run_pk: int, reason: str) -> None:
    """Settle a run that was ended from outside, or by a fault of the program, and will not be
    resumed: the outcome of a call that had begun is unknown."""
    Run.objects.filter(pk=run_pk, state=Run.State.RUNNING).update(
        state=Run.State.INTERRUPTED,
        error=reason,
        finished_at=timezone.now(),
        claim_number=NEXT_CLAIM,
    )
    # After what was just being written under the claim.
    calls = ToolCall.objects.filter(run=run_pk)
    count_failed_calls(calls.filter(state__in=(ToolCall.State.RUNNING, ToolCall.State.WAITING)))
    calls.filter(state=ToolCall.State.RUNNING).update(state=ToolCall.State.UNKNOWN)
    calls.filter(state=ToolCall.State.WAITING).update(
        state=ToolCall.State.FAILED, error=NEVER_BEGUN
    )

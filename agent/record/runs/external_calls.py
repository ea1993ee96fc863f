"""Tool calls that no model made: each is a run of its own, of one step and one call."""

from dataclasses import dataclass

from django.utils import timezone

from agent.models import Run
from agent.record.ground.versions import settings_version
from agent.record.runs.replies import RunCompletion, complete_runs
from agent.record.runs.steps import (
    CallOutcome,
    NewCall,
    NewStep,
    record_call_outcomes,
    record_steps,
)


@dataclass(frozen=True, slots=True)
class ExternalCallKeys:
    """The keys of a call on record and of its run."""

    run_pk: int
    call_pk: int


def begin_external_call(origin: Run.Origin, call: NewCall, process_id: str) -> ExternalCallKeys:
    """Put a call from an external client on record that begins now, claimed by a process. Its step
    is empty: nothing was sent to a model."""
    run = Run.objects.create(
        origin=origin,
        claimed_by=process_id,
        started_at=timezone.now(),
        config_version=settings_version(),
    )
    step = NewStep(run.pk, number=1, request=[], tools=[], response=None, calls=(call,))
    [[call_pk]] = record_steps([step])
    return ExternalCallKeys(run.pk, call_pk)


def end_external_call(run_pk: int, outcome: CallOutcome) -> None:
    """Put down how a call ended, and its run with it, which has done what it was for either way."""
    record_call_outcomes([outcome])
    complete_runs([RunCompletion(run_pk, Run.State.FINISHED)])

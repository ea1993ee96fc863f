"""Tool calls that no model made: each is a run of its own, of one step and one call."""

from collections.abc import Sequence
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
class StartExternalCall:
    """A request to record a call from an external client as begun, claimed by a process."""

    origin: Run.Origin
    call: NewCall
    process_id: str


@dataclass(frozen=True, slots=True)
class ExternalCallKeys:
    """The keys of a call on record and of its run."""

    run_pk: int
    call_pk: int


def begin_external_calls(wishes: Sequence[StartExternalCall]) -> list[ExternalCallKeys]:
    """Put calls on record that begin now. Their steps are empty: nothing was sent to a model."""
    now = timezone.now()
    version = settings_version()
    rows = [
        {
            "origin": wish.origin,
            "claimed_by": wish.process_id,
            "started_at": now,
            "config_version": version,
        }
        for wish in wishes
    ]
    pks = [run.pk for run in Run.objects.bulk_create([Run(**row) for row in rows])]
    steps = [
        NewStep(pk, number=1, request=[], tools=[], response=None, calls=(wish.call,))
        for pk, wish in zip(pks, wishes, strict=True)
    ]
    return [
        ExternalCallKeys(pk, call_pk)
        for pk, (call_pk,) in zip(pks, record_steps(steps), strict=True)
    ]


def end_external_calls(ended: Sequence[tuple[ExternalCallKeys, CallOutcome]]) -> list[None]:
    """Put down how calls ended, and their runs with them, which have done what they were for either
    way."""
    record_call_outcomes([outcome for _entry, outcome in ended])
    complete_runs([RunCompletion(entry.run_pk, Run.State.FINISHED) for entry, _outcome in ended])
    return [None] * len(ended)

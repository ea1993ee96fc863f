"""Tool calls that no model made: each is a run of its own, of one step and one call."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import timezone

from agent.models import Run
from agent.store.replies import Ending, finish
from agent.store.runs import insert_runs
from agent.store.steps import CallOutcome, NewCall, NewStep, record_steps, settle


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """The wish to have a call that somebody outside made put down as begun, in the hands of a process."""

    origin: Run.Origin
    call: NewCall
    process_id: str


@dataclass(frozen=True, slots=True)
class Entry:
    """The keys of a call on record and of its run."""

    run_pk: int
    call_pk: int


def begin_outside_calls(wishes: Sequence[OutsideCall]) -> list[Entry]:
    """Put calls on record that begin now. Their steps are empty: nothing was sent to a model."""
    now = timezone.now()
    rows = [{"origin": wish.origin, "claimed_by": wish.process_id, "started_at": now} for wish in wishes]
    pks = insert_runs(rows)
    steps = [_step(pk, wish.call) for pk, wish in zip(pks, wishes, strict=True)]
    return [Entry(pk, call_pk) for pk, (call_pk,) in zip(pks, record_steps(steps), strict=True)]


def _step(run_pk: int, call: NewCall) -> NewStep:
    return NewStep(run_pk, number=1, request=[], tools=[], response=None, calls=(call,))


def end_outside_calls(ended: Sequence[tuple[Entry, CallOutcome]]) -> list[None]:
    """Put down how calls ended, and their runs with them, which have done what they were for either way."""
    settle([outcome for _entry, outcome in ended])
    finish([Ending(entry.run_pk, Run.State.FINISHED) for entry, _outcome in ended])
    return [None] * len(ended)

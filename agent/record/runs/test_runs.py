"""Tests by operators on record: what they asked a model or a tool for by hand, as runs of their
own."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.models import Run
from agent.record.ground.versions import settings_version
from agent.record.runs.steps import CallOutcome, NewStep, record_call_outcomes, record_steps

TESTED_BY = gettext_noop("Tested by hand by")


def record_test_run(
    steps: Sequence[NewStep],
    outcomes: Sequence[CallOutcome] = (),
    *,
    by: str,
    started_at: datetime | None = None,
    error: str = "",
) -> int:
    """Put a test on record that is over; the key of its run. ``by`` is the user who made it.

    ``steps`` are its model calls, or one without a request for a tool that was called by hand;
    ``outcomes`` are those of all their calls, in order. Their keys are set here. In a transaction
    of its own, in the caller's thread: for pages of the admin.
    """
    now = timezone.now()
    texts = [step.response.get("content") for step in steps if step.response]
    row = {
        "origin": Run.Origin.TEST,
        "state": Run.State.FAILED if error else Run.State.FINISHED,
        "model": next((step.sent.endpoint.model for step in steps if step.sent), "")[:200],
        "error": error,
        "final_text": texts[-1] if texts and isinstance(texts[-1], str) else "",
        "notes": [f"{TESTED_BY}\n{by}"],
        "model_calls": sum(step.sent is not None for step in steps),
        "input_tokens": sum(step.input_tokens for step in steps),
        "output_tokens": sum(step.output_tokens for step in steps),
        "started_at": started_at or now,
        "finished_at": now,
    }
    with transaction.atomic():
        pk = Run.objects.create(**row, config_version=settings_version()).pk
        keys = record_steps([replace(step, run_pk=pk) for step in steps])
        calls = [key for of_step in keys for key in of_step]
        record_call_outcomes(
            [replace(one, pk=key) for one, key in zip(outcomes, calls, strict=True)]
        )
    return pk

"""What the pages of runs and steps say of a model call besides its messages: whom it asked, what it
cost, what the model thought."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db.models import Sum
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.budgets import cost_words, parse_shortage
from agent.llm.answers.completion import parse_recorded
from agent.models import Run, Step
from agent.pages.error_words import explain_error
from agent.pages.runs.run_rows import RunRows
from tools.refusals import CallVerdict, RefusalReason
from tools.text.readable import arguments_text, drop_surrogates, format_readable, shorten_text

VERDICTS: dict[str, Any] = {
    CallVerdict.ALLOWED: _("allowed"),
    CallVerdict.APPROVED: _("approved"),
    CallVerdict.MOCKED: _("answered by the mock"),
    CallVerdict.INVALID: _("refused: wrong arguments"),
    CallVerdict.NOT_MADE: _("not made by the run"),
    CallVerdict.STOOD_IN: _("not carried out: asked again without sending"),
    CallVerdict.OWNER_REFUSED: _("refused by an owner"),
    CallVerdict.EXPIRED: _("no owner decided in time"),
    RefusalReason.UNKNOWN: _("refused: no such tool"),
    RefusalReason.DISABLED: _("refused: disabled"),
    RefusalReason.HIDDEN: _("refused: hidden"),
    RefusalReason.WRONG_CHAT: _("refused: not in this kind of chat"),
    RefusalReason.SERVER_DOWN: _("refused: its server is down"),
    RefusalReason.NOT_PERMITTED: _("refused: not permitted"),
    RefusalReason.RATE_LIMITED: _("refused: too often"),
    RefusalReason.NEEDS_APPROVAL: _("needs an owner's approval"),
}


class RunSums(NamedTuple):
    """Of all steps of a run. ``costs`` are texts, one for each currency."""

    cached: int
    reasoning: int
    costs: tuple[str, ...]


def format_cost(nano: int | None, currency: str | None) -> str:
    """An amount in billionths of ``currency`` as people write it; "" where none is known."""
    return "" if nano is None else cost_words(nano, currency or "")


def load_sums(run: Run) -> RunSums:
    """The sums over the steps of ``run``. One query."""
    sums = Step.objects.filter(run=run).order_by().values("currency")
    rows = list(
        sums.annotate(
            cost=Sum("cost_nano"), cached=Sum("cached_tokens"), thought=Sum("reasoning_tokens")
        )
    )
    return RunSums(
        sum(row["cached"] or 0 for row in rows),
        sum(row["thought"] or 0 for row in rows),
        tuple(filter(None, (format_cost(row["cost"], row["currency"]) for row in rows))),
    )


def describe_step(step: Step) -> dict[str, Any]:
    """What the templates show of ``step`` besides messages and calls."""
    return {
        "asked": " · ".join(filter(None, dict.fromkeys((step.endpoint_name, step.model)))),
        "attempts": step.attempts or [],
        "cost": format_cost(step.cost_nano, step.currency),
        "parameters": format_readable(json.loads(step.parameters)) if step.parameters else "",
        "thoughts": read_thoughts(step.response),
    }


def describe_calls(step: Step, rows: RunRows) -> list[dict[str, Any]]:
    """The calls of ``step``, with the messages that each sent and what else there is on record of
    it."""
    return [
        {
            "call": call,
            "arguments": arguments_text(call.arguments),
            "verdict": describe_verdict(call.verdict),
            "stood_in": call.verdict == CallVerdict.STOOD_IN,
            "sent": [message for message in rows.messages if message.tool_call_id == call.pk],
            "runs": rows.beside.inner.get(call.pk, []),
            "told": rows.beside.later.get(call.pk, []),
            "approval": rows.beside.approvals.get(call.pk),
        }
        for call in rows.calls
        if call.step_id == step.pk
    ]


def read_thoughts(response: Any) -> str:
    """What the model thought before a recorded answer; "" for nothing."""
    if not isinstance(response, dict):
        return ""
    return drop_surrogates(shorten_text(parse_recorded(response, ()).reasoning))


def read_definitions(texts: Iterable[str]) -> list[Any]:
    """The definitions in a recorded set of tools."""
    return [json.loads(text) for text in texts]


def describe_verdict(verdict: str | None) -> str:
    """A recorded verdict in words; "" for none."""
    return str(VERDICTS.get(verdict or "", verdict or ""))


def shown_note(note: str) -> str:
    """A note whose first line is a fixed sentence, and the rest what it is about."""
    if parse_shortage(note):
        return explain_error(note).sentence
    sentence, _newline, about = note.partition("\n")
    return f"{gettext(sentence)} {about}" if sentence and about else note


def format_run_duration(run: Run) -> str:
    """How long a run took; "" while it is active."""
    return f"{(run.finished_at - run.started_at).total_seconds():.2f} s" if run.finished_at else ""

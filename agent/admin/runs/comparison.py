"""Runs side by side: what each was asked with, did and said, and in what they differ."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext

from agent.admin.runs import waterfall
from agent.models import Message, Run, ToolCall
from agent.models.message import BY_HAND
from agent.pages import run_facts
from tools.refusals import CallVerdict
from tools.text.readable import arguments_text


def compare(runs: Sequence[Run], user: Any) -> list[dict[str, Any]]:
    """What a page says of each of ``runs`` that ``user`` may see: ``said`` are the texts that went
    out, ``calls`` the tool calls, each with what it was given, ``facts`` are (label, value, whether
    the runs differ in it)."""
    found = [_describe(run, user) for run in runs]
    for label in found[0]["facts"]:
        values = [one["facts"][label] for one in found]
        for one, value in zip(found, values, strict=True):
            one.setdefault("shown", []).append((label, value, len(set(values)) > 1))
    return found


def _describe(run: Run, user: Any) -> dict[str, Any]:
    run_facts.hold_back_model(run, user)
    sees = {one for one in ("toolcall", "message", "step") if user.has_perm(f"agent.view_{one}")}
    calls = ToolCall.objects.filter(run=run).order_by("step_id", "position")
    columns = ("pk", "tool_name", "arguments", "verdict", "state", "run_id")
    made = list(calls.only(*columns)[: run_facts.CALL_LIMIT]) if "toolcall" in sees else []
    sent = Message.objects.filter(Q(run=run), direction=Message.Direction.OUT).exclude(BY_HAND)
    said = sent.order_by("pk").defer("segments", "raw")[: run_facts.CALL_LIMIT]
    took = waterfall.format_span(run.finished_at - run.started_at) if run.finished_at else ""
    tokens = gettext("%(input)s in, %(output)s out")
    facts = {
        gettext("persona"): run.persona,
        gettext("model"): run.model,
        gettext("tools"): ", ".join(call.tool_name for call in made),
        gettext("tokens"): tokens % {"input": run.input_tokens, "output": run.output_tokens},
        gettext("duration"): took,
        gettext("steps"): str(run.steps.count()) if "step" in sees else "",
        gettext("cost"): " + ".join(run_facts.load_sums(run).costs) if "step" in sees else "",
    }
    return {
        "run": run,
        "is_trial": run.trial_of_id is not None,
        "said": list(said) if "message" in sees else [],
        "facts": {label: value or "-" for label, value in facts.items()},
        "calls": [
            {
                "call": call,
                "given": arguments_text(call.arguments),
                "stood_in": call.verdict == CallVerdict.STOOD_IN,
            }
            for call in made
        ],
    }

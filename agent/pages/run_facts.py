"""What a run did, as pages tell it: its rows, each kind in one query; whom a model call asked, what
it cost, what the model thought; and what is kept from who may not see personas or endpoints."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.db.models import Q, QuerySet, Sum
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.budgets import cost_words, parse_shortage
from agent.llm.answers.completion import parse_recorded
from agent.models import Approval, Message, ModelEndpoint, Run, Step, ToolCall, ToolOffer
from agent.models.message import BY_HAND
from agent.pages.error_words import VIEW_ENDPOINT, explain_error
from tools.refusals import CallVerdict, RefusalReason
from tools.text.readable import arguments_text, drop_surrogates, format_readable, shorten_text

VIEW_PERSONA = "agent.view_persona"
SYSTEM_ROLES = ("system", "developer")
#: Newest runs of a chat whose endpoints its owner may choose among.
RUNS_READ = 200


def may_see_prompts(user: Any) -> bool:
    return bool(user.has_perm(VIEW_PERSONA))


def may_stop(user: Any, run: Run) -> bool:
    """Whether ``user`` may stop calls of ``run``, which is one of a chat in his reach."""
    is_of_chat = bool(run.session_id) and run.trial_of_id is None
    return is_of_chat and bool(user.has_perm("agent.speak_in_chat"))


def hold_back(step: Step, user: object) -> None:
    """Have the row of ``step``, which is not saved, show what ``user`` may see of its request."""
    if not may_see_prompts(user):
        step.request = veil_new(step.request)
        if step.sent is not None:
            step.sent = json.dumps(veil_whole(json.loads(step.sent)), ensure_ascii=False)
    hold_back_endpoints(step, user)


def hold_back_model(run: Run, user: Any) -> None:
    """Have the row of ``run``, which is not saved, name the models that answered, instead of the
    one that was to be asked first."""
    if not user.has_perm(VIEW_ENDPOINT):
        answering = Step.objects.filter(run=run, error="").exclude(model=None).order_by("number")
        names = dict.fromkeys(answering.values_list("model", flat=True))
        run.model = ", ".join(filter(None, names))


def hold_back_endpoints(step: Step, user: Any) -> None:
    """Have the row of ``step`` name no endpoints that were asked in vain, nor what they said."""
    if user.has_perm(VIEW_ENDPOINT):
        return
    if step.error:
        step.endpoint_name = step.model = ""
    if step.attempts:
        unnamed = {"endpoint": gettext("another endpoint"), "model": "", "reason": ""}
        step.attempts = [{**attempt, **unnamed} for attempt in step.attempts]


def veil_new(messages: object) -> Any:
    """The new messages of a step, with something else in place of prompts."""
    if not isinstance(messages, list):
        return messages
    return [_veiled(one) if _is_system(one) else one for one in messages]


def veil_whole(messages: list[Any]) -> list[Any]:
    """The same for all messages as an endpoint was sent them; for one that takes no system message
    its words stand in the first other one."""
    if messages and not any(map(_is_system, messages)):
        return [_veiled(messages[0]), *messages[1:]]
    return list(veil_new(messages))


def find_answering_endpoints(session_pk: int) -> QuerySet[ModelEndpoint]:
    """The endpoints that have answered in a chat lately."""
    runs = Run.objects.filter(session=session_pk).order_by("-pk").values_list("pk", flat=True)
    steps = Step.objects.filter(run__in=list(runs[:RUNS_READ]), error="").order_by()
    answering = steps.exclude(endpoint=None).values_list("endpoint", flat=True).distinct()
    return ModelEndpoint.objects.filter(pk__in=list(answering))


def _is_system(message: object) -> bool:
    return isinstance(message, dict) and message.get("role") in SYSTEM_ROLES


def _veiled(message: object) -> dict[str, Any]:
    told = gettext("The prompt is shown to those who may see personas.")
    role = message.get("role") if isinstance(message, dict) else "system"
    return {"role": role, "content": told}


#: Steps, calls and messages of one run that are shown.
STEP_LIMIT, CALL_LIMIT, MESSAGE_LIMIT = 100, 500, 500
#: What is large of a step.
LARGE = ("request", "tools", "response", "response_rest", "parameters", "sent")
#: Runs of agents that a call's page links to.
RUN_LIMIT = 20


@dataclass(frozen=True, slots=True)
class RunRows:
    """A run with all of it that a user may see; what he may not see is empty."""

    run: Run
    asked: Message | None = None
    #: Earlier messages that were answered together with ``asked``, oldest first.
    merged: Sequence[Message] = ()
    steps: Sequence[Step] = ()
    offers: Mapping[int, ToolOffer] = field(default_factory=dict)
    calls: Sequence[ToolCall] = ()
    #: The same by the keys of their steps.
    made: Mapping[int | None, Sequence[ToolCall]] = field(default_factory=dict)
    #: What went out, oldest first.
    messages: Sequence[Message] = ()
    #: What belongs to the calls, by their keys: subagents' runs, later runs that announced their
    #: outcome, approvals.
    inner: Mapping[int | None, list[Run]] = field(default_factory=dict)
    later: Mapping[int | None, list[Run]] = field(default_factory=dict)
    approvals: Mapping[int | None, Approval] = field(default_factory=dict)


def load_run_rows(
    run: Run, sees: "frozenset[str]", *unread: str, whole: int = STEP_LIMIT
) -> RunRows:
    """The rows of ``run``; ``sees`` are the names of the models that may be seen, ``unread`` large
    columns of steps that are not shown. Of those after the step ``whole`` none is read."""
    rows = Step.objects.filter(run=run).order_by("number")
    steps = []
    if "step" in sees:
        steps = list(rows.filter(number__lte=whole).defer(*unread)[:STEP_LIMIT])
        if len(steps) >= whole:
            steps += rows.filter(number__gt=whole).defer(*LARGE)[: STEP_LIMIT - len(steps)]
    made = ToolCall.objects.filter(run=run).defer("structured_content", "full_result")
    calls = list(made.order_by("step_id", "position")[:CALL_LIMIT]) if "toolcall" in sees else []
    asked = merged = None
    messages: list[Message] = []
    if "message" in sees:
        plain = Message.objects.defer("segments", "raw")
        asked = plain.filter(pk=run.message_id or run.trial_of_id or 0).first()
        merged = list(plain.filter(merged_into=asked).order_by("pk")) if asked else []
        messages = list(_messages(run, calls))
    columns = ("call_id", "code", "state", "created_at", "decided_at", "decided_by")
    questions = Approval.objects.filter(call__in=[call.pk for call in calls]).only(*columns)
    return RunRows(
        run,
        asked,
        merged or (),
        steps,
        ToolOffer.objects.in_bulk({step.offer_id for step in steps if step.offer_id}),
        calls,
        {step: list(some) for step, some in groupby(calls, attrgetter("step_id"))},
        messages,
        load_inner_runs(calls),
        load_outcome_runs(calls),
        {approval.call_id: approval for approval in (questions if "approval" in sees else ())},
    )


def find_call(pk: int | None) -> ToolCall | None:
    """What a page says of another run's call; None for none."""
    rows = ToolCall.objects.only("run_id", "tool_name", "state")
    return rows.filter(pk=pk).first() if pk else None


def load_inner_runs(calls: Sequence[ToolCall]) -> dict[int | None, list[Run]]:
    """The runs of agents that ``calls`` set off, by the key of the call, oldest first."""
    inside: dict[int | None, list[Run]] = {}
    runs = Run.objects.filter(parent__in=[call.pk for call in calls]).order_by("pk")
    columns = ("parent_id", "state", "started_at", "finished_at", "persona")
    for run in runs.only(*columns)[:CALL_LIMIT]:
        inside.setdefault(run.parent_id, []).append(run)
    return inside


def load_outcome_runs(calls: Iterable[ToolCall]) -> dict[int | None, list[Run]]:
    """The later runs that announced ``calls`` in the chat, by the key of the call, oldest first.
    One query."""
    told: dict[int | None, list[Run]] = {}
    later = Q(
        message__tool_call__in=[call.pk for call in calls], message__direction=Message.Direction.IN
    )
    found = (
        Run.objects.filter(later)
        .select_related("message")
        .only("state", "parent", "message__tool_call")
    )
    # Without an order, or a condition on the parent: either leads SQLite to walk through all runs.
    for run in sorted(found.order_by(), key=lambda run: run.pk)[:RUN_LIMIT]:
        if run.parent_id is None:
            told.setdefault(run.message.tool_call_id if run.message else None, []).append(run)
    return told


def _messages(run: Run, calls: Sequence[ToolCall]) -> Iterable[Message]:
    """What went out. What an agent's tools say is said by the run around it, so it is found by the
    calls."""
    source = Q(tool_call__in=[call.pk for call in calls]) if run.parent_id else Q(run=run)
    sent = (
        Message.objects.filter(source, direction=Message.Direction.OUT)
        .exclude(BY_HAND)
        .order_by("pk")
    )
    return sent.defer("segments", "raw")[:MESSAGE_LIMIT]


VERDICTS: dict[str, Any] = {
    CallVerdict.ALLOWED: _("allowed"),
    CallVerdict.APPROVED: _("approved"),
    CallVerdict.MOCKED: _("answered by the mock"),
    CallVerdict.INVALID: _("refused: wrong arguments"),
    CallVerdict.NOT_MADE: _("not made by the run"),
    CallVerdict.STOOD_IN: _("not carried out: asked again without sending"),
    CallVerdict.OWNER_REFUSED: _("refused by an owner"),
    CallVerdict.EXPIRED: _("no owner decided in time"),
    CallVerdict.WITHDRAWN: _("withdrawn before anybody decided"),
    RefusalReason.UNKNOWN: _("refused: no such tool"),
    RefusalReason.DISABLED: _("refused: disabled"),
    RefusalReason.HIDDEN: _("refused: hidden"),
    RefusalReason.WRONG_CHAT: _("refused: not in this kind of chat"),
    RefusalReason.SERVER_DOWN: _("refused: its server is down"),
    RefusalReason.NOT_PERMITTED: _("refused: not permitted"),
    RefusalReason.RATE_LIMITED: _("refused: too often"),
    RefusalReason.NEEDS_APPROVAL: _("needs an owner's approval"),
}


def format_cost(nano: int | None, currency: str | None) -> str:
    """An amount in billionths of ``currency`` as people write it; "" where none is known."""
    return "" if nano is None else cost_words(nano, currency or "")


def load_sums(run: Run) -> dict[str, Any]:
    """The sums over the steps of ``run``: of ``cached`` and ``reasoning`` tokens, and ``costs`` as
    texts, one for each currency. One query."""
    sums = Step.objects.filter(run=run).order_by().values("currency")
    rows = list(
        sums.annotate(
            cost=Sum("cost_nano"), cached=Sum("cached_tokens"), thought=Sum("reasoning_tokens")
        )
    )
    return {
        "cached": sum(row["cached"] or 0 for row in rows),
        "reasoning": sum(row["thought"] or 0 for row in rows),
        "costs": list(filter(None, (format_cost(row["cost"], row["currency"]) for row in rows))),
    }


def describe_step(step: Step) -> dict[str, Any]:
    """What the templates show of ``step`` besides messages and calls; ``thoughts`` are what the
    model thought before its answer."""
    said = step.response if isinstance(step.response, dict) else None
    thoughts = parse_recorded(said, ()).reasoning if said is not None else ""
    return {
        "asked": " · ".join(filter(None, dict.fromkeys((step.endpoint_name, step.model)))),
        "attempts": step.attempts or [],
        "cost": format_cost(step.cost_nano, step.currency),
        "parameters": format_readable(json.loads(step.parameters)) if step.parameters else "",
        "thoughts": drop_surrogates(shorten_text(thoughts)),
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
            "runs": rows.inner.get(call.pk, []),
            "told": rows.later.get(call.pk, []),
            "approval": rows.approvals.get(call.pk),
        }
        for call in rows.made.get(step.pk, ())
    ]


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

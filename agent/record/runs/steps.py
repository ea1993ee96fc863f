"""Steps and tool calls on record: a step when the model has answered, a call when it begins and
when it ends."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from agent.domain.chat_state import StateChange, ToolDiscovery
from agent.llm.requests.base import Attempt, SentRequest, encode_json
from agent.llm.requests.messages import ChatMessage
from agent.models import Step, ToolCall, ToolOffer
from agent.record.chats.sessions import save_changes, save_discoveries
from agent.record.ground import statements
from agent.record.sums.activity import FAILED_CALLS, count_failed_calls, count_new_calls

#: The columns of a step that nothing is known for without an endpoint.
_OF_ENDPOINT = (
    *("endpoint", "endpoint_name", "model", "cached_tokens", "reasoning_tokens", "cost_nano"),
    *("currency", "offer", "parameters", "sent"),
)


# The sets of tools that models were offered, each on record once.

MOST_KEPT = 512
"""Sets whose row is remembered."""
Definitions = tuple[dict[str, Any], ...]


class OfferCache:
    """Tool definitions to the row that holds them. Used by whatever thread writes.

    Definitions are shared and never changed (:class:`tools.registry.registry.DefinitionCache`),
    so a set is known by the identities of its members and costs no statement. What is remembered
    was committed.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], tuple[Definitions, int]] = {}
        """By the ids of the definitions, which are kept too, so that no other takes over an id."""

    def find(self, definitions: Sequence[dict[str, Any]]) -> int | None:
        """The key of the row of a set, which is made where there is none; None for the empty
        set."""
        if not definitions:
            return None
        ids = tuple(map(id, definitions))
        if known := self._known.get(ids):
            return known[1]
        pk = _find_or_add(definitions)
        transaction.on_commit(partial(self._remember, ids, (tuple(definitions), pk)), robust=True)
        return pk

    def forget(self) -> None:
        """Trust nothing remembered: a transaction was not committed."""
        self._known.clear()

    def _remember(self, ids: tuple[int, ...], known: tuple[Definitions, int]) -> None:
        if len(self._known) >= MOST_KEPT:
            self._known.clear()
        self._known[ids] = known


tool_offers = OfferCache()


def exact_text(value: object) -> str:
    """``value`` as JSON text: PostgreSQL would not keep the order of an object's keys."""
    return encode_json(value).decode()


def _find_or_add(definitions: Sequence[dict[str, Any]]) -> int:
    """Another process may add the same set at the same time: then both have its row."""
    texts = [exact_text(definition) for definition in definitions]
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    found = statements.find_offer.rows(digest=digest)
    if not found:
        offer = ToolOffer(digest=digest, definitions=texts)
        ToolOffer.objects.bulk_create([offer], ignore_conflicts=True)
        found = statements.find_offer.rows(digest=digest)
    return int(found[0][0])


# Steps and their calls.


@dataclass(frozen=True, slots=True)
class NewCall:
    """A tool call the model asked for. The first of a step begins at once, the others wait."""

    call_id: str
    tool_name: str
    arguments: Any
    requested_by: str


@dataclass(frozen=True, slots=True)
class NewStep:
    """One model call and what it asked for.

    ``sent`` is what was really sent, None where no endpoint is known; ``rest`` is the body of the
    answer without ``response``.
    """

    run_pk: int
    number: int
    request: list[ChatMessage]
    tools: list[str]
    response: dict[str, Any] | None
    finish_reason: str = ""
    error: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    latency_ms: int = 0
    phase: Step.Phase = Step.Phase.ACTION
    calls: tuple[NewCall, ...] = ()
    sent: SentRequest | None = None
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost_nano: int | None = None
    attempts: tuple[Attempt, ...] = ()
    rest: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How a tool call ended; ``next_pk`` is the waiting call that begins with this commit.

    ``full_result`` is the whole of a ``result`` that was cut, "" for one that was not;
    ``state_change`` is the tool's change to the chat's state, ``discovery`` the tools that it
    found; both are stored with it. ``verdict`` is what was decided before the call, and
    ``decided_by`` whose row or word that was.
    """

    pk: int
    state: ToolCall.State
    provider_name: str
    mocked: bool
    result: str
    structured_content: Any
    error: str
    duration_ms: int
    next_pk: int | None = None
    state_change: StateChange | None = None
    discovery: ToolDiscovery | None = None
    full_result: str = ""
    verdict: str = ""
    decided_by: str = ""


def record_steps(steps: Sequence[NewStep]) -> list[list[int]]:
    """Store ``steps``; each result lists the primary keys of the step's tool calls, in order."""
    now = timezone.now()
    rows = [
        {
            "run": step.run_pk,
            "number": step.number,
            "phase": step.phase,
            "request": step.request,
            "tools": step.tools,
            "response": step.response,
            "finish_reason": step.finish_reason[:64],
            "error": step.error,
            "input_tokens": step.input_tokens,
            "output_tokens": step.output_tokens,
            "latency_ms": step.latency_ms,
            "created_at": now,
            **_sent_columns(step),
        }
        for step in steps
    ]
    pks = statements.add_steps.add(rows)
    calls = [_call_rows(step, pk, now) for step, pk in zip(steps, pks, strict=True)]
    count_new_calls([(step.run_pk, call.tool_name[:128]) for step in steps for call in step.calls])
    call_pks = iter(statements.add_calls.add([call for of_step in calls for call in of_step]))
    return [[next(call_pks) for _ in of_step] for of_step in calls]


def _sent_columns(step: NewStep) -> dict[str, Any]:
    """The columns that say whom a step asked, how, and at what price."""
    sent = step.sent
    asked = (
        dict.fromkeys(_OF_ENDPOINT)
        if sent is None
        else {
            "endpoint": sent.endpoint.pk,
            "endpoint_name": sent.endpoint.label[:100],
            "model": sent.endpoint.model[:200],
            "cached_tokens": step.cached_tokens,
            "reasoning_tokens": step.reasoning_tokens,
            "cost_nano": step.cost_nano,
            "currency": sent.endpoint.prices.currency or None,
            "offer": tool_offers.find(sent.tools),
            "parameters": exact_text(sent.parameters),
            "sent": None if sent.messages is None else exact_text(sent.messages),
        }
    )
    attempts = [attempt._asdict() for attempt in step.attempts] or None
    return asked | {"attempts": attempts, "rest": step.rest}


def _call_rows(step: NewStep, step_pk: int, now: datetime) -> list[dict[str, Any]]:
    return [
        {
            "run": step.run_pk,
            "step": step_pk,
            "position": position,
            "call_id": call.call_id[:128],
            "tool_name": call.tool_name[:128],
            "arguments": call.arguments,
            "requested_by": call.requested_by,
            "state": ToolCall.State.WAITING if position else ToolCall.State.RUNNING,
            "created_at": now,
        }
        for position, call in enumerate(step.calls)
    ]


def start_calls(pks: Sequence[int]) -> list[None]:
    """Mark calls as begun: what is found so after a crash may have had its effect."""
    statements.begin_call.each([{"pk": pk} for pk in pks])
    return [None] * len(pks)


def record_call_outcomes(outcomes: Sequence[CallOutcome]) -> None:
    """Store outcomes, each with its change to the chat's state."""
    if failed := [outcome.pk for outcome in outcomes if outcome.state in FAILED_CALLS]:
        count_failed_calls(ToolCall.objects.filter(pk__in=failed))
    statements.settle_call.each(
        {
            "pk": o.pk,
            "state": o.state,
            "provider_name": o.provider_name,
            "mocked": o.mocked,
            "result": o.result,
            "structured_content": o.structured_content,
            "error": o.error,
            "duration_ms": o.duration_ms,
            "full_result": o.full_result,
            "verdict": o.verdict or None,
            "decided_by": o.decided_by[:200] or None,
            "state_change": None
            if o.state_change is None
            else {"before": o.state_change.before, "after": o.state_change.values},
        }
        for o in outcomes
    )
    save_changes(o.state_change for o in outcomes if o.state_change is not None)
    save_discoveries(o.discovery for o in outcomes if o.discovery is not None)


def finish_calls(outcomes: Sequence[CallOutcome]) -> list[None]:
    record_call_outcomes(outcomes)
    start_calls([outcome.next_pk for outcome in outcomes if outcome.next_pk is not None])
    return [None] * len(outcomes)

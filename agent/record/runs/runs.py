"""Runs on record: begun, and resumed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Length
from django.utils import timezone

from agent.domain.endpoint import ModelRole
from agent.domain.errors import ClaimLost
from agent.domain.manners import ChatManners, environment_manners
from agent.domain.persona import PersonaSettings, environment_persona
from agent.domain.states import FIRST_CLAIM, Claim
from agent.domain.types import DEFAULT_ACCOUNT, AccountSettings, ChatAddress
from agent.llm.endpoints.endpoint_pool import AS_USUAL
from agent.llm.requests.messages import SPEAKER, ChatMessage
from agent.models import Message, Run, Step, ToolCall
from agent.record.chats.chat_history import load_history
from agent.record.chats.own_messages import adopt_own_messages
from agent.record.chats.sessions import ChatGateSetting, SessionState, load_session_state
from agent.record.ground import statements
from agent.record.ground.versions import read_versions
from agent.record.runs import deferred_calls
from agent.record.runs.deferred_calls import DeferredCall
from agent.record.runs.recorded_answers import RecordedAnswer, find_recorded_answer
from agent.record.settings.live import LiveSettings
from agent.record.settings.manners import MannersTable
from tools.live_rows import LiveKind

Direction = Message.Direction
State = Message.State
#: Messages of a first request that are no history: the system message and the current one.
OTHERS = 2


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run will be, whatever message it answers. ``name_model`` tells the model of a persona
    with endpoints of its own; the others have ``model``."""

    origin: Run.Origin
    model: str
    chat: ChatAddress | None = None
    sender_id: str = ""
    name_model: Callable[[PersonaSettings], str] | None = None

    @property
    def place(self) -> str:
        return self.chat.place if self.chat else ""

    def model_for(self, persona: PersonaSettings) -> str:
        has_own = self.name_model is not None and ModelRole.CHAT in persona.endpoints
        return self.name_model(persona) if self.name_model and has_own else self.model


@dataclass(frozen=True, slots=True)
class StartRun:
    """A request to work on a message, under a claim on it; both keys are None for a run without a
    chat."""

    plan: RunPlan
    message_pk: int | None = None
    session_pk: int | None = None
    resumed: bool = False
    is_later_result: bool = False
    claim_number: int = FIRST_CLAIM
    kept: SessionState | None = None
    """What the chat's row keeps, where this transaction put the message on record as one that is
    being worked on."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A tool call of a step as the record has it. ``result`` is the text that the model got, if it
    ended."""

    pk: int
    call_id: str
    state: ToolCall.State
    result: str
    begun_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step of a run that was broken off."""

    request: list[ChatMessage]
    response: dict[str, Any] | None
    calls: list[RecordedCall]
    phase: Step.Phase = Step.Phase.ACTION
    finish_reason: str = ""
    speaker: str = ""
    """Who said what the answer holds beside words and calls
    (:mod:`agent.llm.requests.messages`)."""


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """A run on record, under the claim of the process that began it. ``steps`` and ``answer`` come
    from an earlier process.

    ``answer`` is the final message, if it got that far; ``has_spoken``: a tool sent something to
    the chat before. ``later`` is the earlier call whose outcome the run announces, ``state`` the
    stored state of the chat, ``has_replied`` whether the ``reply`` tool sent something before.
    """

    claim: Claim
    history: list[ChatMessage]
    steps: list[RecordedStep] = field(default_factory=list)
    answer: RecordedAnswer | None = None
    has_spoken: bool = False
    later: DeferredCall | None = None
    state: dict[str, Any] = field(default_factory=dict)
    gate: ChatGateSetting = field(default_factory=ChatGateSetting)
    has_replied: bool = False
    discovered: tuple[str, ...] = ()
    """Deferred tools that were found in the chat."""
    context_after: int | None = None
    """The key of the message after which the context is fresh; None where it never was reset."""
    taken_over_by: str = ""
    """The operator who answers in the chat instead of the bot."""
    said: tuple[int, int] = (0, 0)
    """Messages that tools of it put on record before, but for questions to the owners, and their
    characters."""
    spoken: tuple[str, ...] = ()
    """The texts of those that were, or may have been, delivered."""
    has_notes: bool = True
    """Whether there is any note at all: without one no search is needed."""
    account: AccountSettings = DEFAULT_ACCOUNT
    """What the operator decided of the account, as it is from the run's beginning on."""
    persona: PersonaSettings = field(default_factory=environment_persona)
    manners: ChatManners = field(default_factory=environment_manners)
    """Those of the chat; both as they are from the run's beginning on."""

    @property
    def run_pk(self) -> int:
        return self.claim.run_pk


class RunStarter:
    """Begins runs for one server process, with the settings as they are at that moment."""

    def __init__(self, process_id: str, live: LiveSettings | None = None) -> None:
        self.live = live or LiveSettings()
        self._process_id = process_id

    def reload_settings(self) -> None:
        """Apply the operator's changes since the last check; others know of them once the current
        transaction is committed."""
        self.live.see(read_versions())

    def read_manners(self) -> MannersTable:
        """The manners as they are now, for the current transaction."""
        self.live.see(read_versions())
        return self.live.seen.manners

    def begin_runs(
        self, wishes: Sequence[StartRun], versions: Mapping[int, int] | None = None
    ) -> list[ActiveRun | ClaimLost]:
        """Begin runs, or resume them; :class:`ClaimLost` for a message that another process has
        claimed.

        ``versions`` are those of :func:`read_versions`, if this transaction has already read and
        seen them.
        """
        if versions is None:
            versions = read_versions()
            self.live.see(versions)
        now = timezone.now()
        lost = {
            id(wish)
            for wish in wishes
            if wish.message_pk and wish.kept is None and not self._take(wish)
        }
        mine = [wish for wish in wishes if id(wish) not in lost]
        personas = {id(wish): self.find_persona(wish.plan) for wish in mine}
        resumed = {
            id(wish): run
            for wish in mine
            if wish.resumed and wish.message_pk and (run := _find_broken_off(wish.message_pk))
        }
        fresh = [wish for wish in mine if id(wish) not in resumed]
        rows = [
            {
                "session": wish.session_pk,
                "message": wish.message_pk,
                "origin": wish.plan.origin,
                "model": wish.plan.model_for(personas[id(wish)])[:200],
                "claimed_by": self._process_id,
                "claim_number": wish.claim_number,
                "place": wish.plan.place,
                "started_at": now,
                "persona": personas[id(wish)].name[:100],
                "config_version": versions[LiveKind.SETTINGS],
            }
            for wish in fresh
        ]
        new = dict(zip(map(id, fresh), statements.add_runs.add(rows), strict=True))
        return [
            ClaimLost(wish)
            if id(wish) in lost
            else self._resume_run(wish, resumed[id(wish)], personas[id(wish)])
            if id(wish) in resumed
            else self._build_run(wish, new[id(wish)], personas[id(wish)])
            for wish in wishes
        ]

    def _take(self, wish: StartRun) -> bool:
        taken = statements.take_message.rows(
            pk=wish.message_pk, claim_number=wish.claim_number, process=self._process_id
        )
        return bool(taken)

    def find_persona(self, plan: RunPlan) -> PersonaSettings:
        """Who answers, with the endpoint that the chat's manners name asked first."""
        settings = self.live.seen
        persona = settings.personas.find(plan.chat, plan.sender_id)
        first = settings.manners.find(plan.chat).endpoint if plan.chat else None
        if first is None:
            return persona
        rest = persona.endpoints.get(ModelRole.CHAT, (AS_USUAL,))
        return replace(persona, endpoints={**persona.endpoints, ModelRole.CHAT: (first, *rest)})

    def _resume_run(self, wish: StartRun, broken: Run, persona: PersonaSettings) -> ActiveRun:
        run = self._build_run(wish, broken.pk, persona)
        Run.objects.filter(pk=broken.pk).update(
            state=Run.State.RUNNING,
            claimed_by=self._process_id,
            claim_number=run.claim.number,
            place=run.claim.place,
        )
        heard = _heard(broken)
        return replace(
            run,
            steps=_recorded_steps(broken),
            answer=find_recorded_answer(broken),
            has_spoken=heard.exists(),
            has_replied=heard.filter(tool_call__tool_name="reply").exists(),
            said=_said(broken),
            spoken=tuple(
                heard.exclude(_asks_owners(broken)).order_by("pk").values_list("text", flat=True)
            ),
        )

    def _build_run(self, wish: StartRun, run_pk: int, persona: PersonaSettings) -> ActiveRun:
        call = (
            deferred_calls.find_deferred_call(wish.message_pk, resumed=wish.resumed)
            if wish.is_later_result and wish.message_pk
            else None
        )
        kept = wish.kept or load_session_state(wish.session_pk)
        chat = wish.plan.chat
        return ActiveRun(
            Claim(run_pk, wish.claim_number, wish.plan.place),
            _load_history(wish, run_pk, persona, kept.context_after),
            later=call,
            state=kept.state,
            gate=kept.gate,
            discovered=kept.discovered,
            context_after=kept.context_after,
            taken_over_by=kept.taken_over_by,
            has_notes=has_any_note() if kept.has_notes is None else kept.has_notes,
            account=self.live.find_account(chat.account) if chat else DEFAULT_ACCOUNT,
            persona=persona,
            manners=self.live.seen.manners.find(chat) if chat else environment_manners(),
        )


def _load_history(
    wish: StartRun, run_pk: int, persona: PersonaSettings, after: int | None
) -> list[ChatMessage]:
    """What the model is shown of the chat before the message; nothing without a chat."""
    session_pk, chat, count = wish.session_pk, wish.plan.chat, persona.context_messages - OTHERS
    if session_pk is None or chat is None:
        return []
    history = load_history(session_pk, chat, count, after)
    begins = history[0]["role"] if history else ""
    if begins != "user" and adopt_own_messages(session_pk, run_pk):
        history = load_history(session_pk, chat, count, after)
    return history


def _find_broken_off(message_pk: int) -> Run | None:
    states = (Run.State.RUNNING, Run.State.INTERRUPTED)
    return (
        Run.objects.filter(message_id=message_pk, parent=None, state__in=states)
        .order_by("-pk")
        .first()
    )


def _recorded_steps(run: Run) -> list[RecordedStep]:
    calls: dict[int, list[RecordedCall]] = {}
    for call in ToolCall.objects.filter(run=run).order_by("step_id", "position"):
        recorded = RecordedCall(
            call.pk, call.call_id, ToolCall.State(call.state), call.result, call.created_at
        )
        calls.setdefault(call.step_id, []).append(recorded)
    steps = Step.objects.filter(run=run).order_by("number")
    return [
        RecordedStep(
            step.request,
            step.response,
            calls.get(step.pk, []),
            Step.Phase(step.phase),
            step.finish_reason,
            (step.response_rest or {}).get(SPEAKER, ""),
        )
        for step in steps
    ]


def _heard(run: Run) -> "QuerySet[Message]":
    """The messages that tools of the run sent, and that were, or may have been, delivered."""
    heard = (State.DELIVERED, State.UNKNOWN)
    here = Message.objects.filter(run=run, session=run.session_id, direction=Direction.OUT)
    return here.filter(state__in=heard).exclude(tool_call=None)


def _asks_owners(run: Run) -> Q:
    """An approved call is made by a later run: in the run of the call itself only the question was
    sent."""
    return Q(tool_call__approval__isnull=False, tool_call__run=run)


def _said(run: Run) -> tuple[int, int]:
    said = Message.objects.filter(run=run, direction=Direction.OUT).exclude(tool_call=None)
    said = said.exclude(_asks_owners(run))
    found = said.aggregate(messages=Count("pk"), characters=Sum(Length("text"), default=0))
    return found["messages"], found["characters"]


def has_any_note() -> bool:
    """Whether there is any note to recall."""
    return bool(statements.find_any_note.rows())

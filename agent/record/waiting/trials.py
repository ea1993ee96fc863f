"""Messages asked again without sending anything: begun on record as runs without a chat."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.domain.endpoint import ModelRole
from agent.domain.persona import PersonaKind, PersonaSettings
from agent.domain.states import FIRST_CLAIM, ActKind, Claim
from agent.domain.types import AccountSettings, IncomingMessage
from agent.llm.requests.messages import ChatMessage
from agent.models import Message, Persona as PersonaRow, Run
from agent.record.chats.sessions import SessionState, load_session_state
from agent.record.ground.versions import read_versions
from agent.record.runs.requests import load_opening
from agent.record.runs.runs import RunPlan, RunStarter
from agent.record.settings.personas import load_persona
from agent.record.waiting.operator_acts import record_act
from agent.record.waiting.recovery import to_incoming
from tools.live_rows import LiveKind

NO_REQUEST = gettext_noop(
    "No model call of this answer is on record, so there is nothing to ask again."
)
BUSY = gettext_noop("You are asking again already: wait until that answer is there.")
NO_PERSONA = gettext_noop("This persona is switched off, or gone.")


@dataclass(frozen=True, slots=True)
class TrialWish:
    """A request to ask a message again as its ``run_pk`` asked it, by another persona or another
    endpoint; None: as it would be asked now."""

    message_pk: int
    run_pk: int
    author_pk: int
    author: str
    persona_pk: int | None = None
    endpoint_pk: int | None = None


@dataclass(frozen=True, slots=True)
class BegunTrial:
    """A trial on record, and all that it is made from. ``opening`` is what the run was sent at
    first, without the system message."""

    claim: Claim
    persona: PersonaSettings
    message: IncomingMessage
    session_pk: int
    account: AccountSettings
    opening: list[ChatMessage]
    kept: SessionState


@dataclass(frozen=True, slots=True)
class TrialRefusal:
    """Why a message is not asked again, as a sentence to translate. Nothing was written."""

    reason: str


class TrialStarter:
    """Begins trials for one server process, with the settings that ``starter`` knows."""

    def __init__(
        self, process_id: str, starter: RunStarter, name_model: Callable[[PersonaSettings], str]
    ) -> None:
        self._process_id = process_id
        self._starter = starter
        self._name_model = name_model

    def begin_trial(self, wish: TrialWish) -> BegunTrial | TrialRefusal:
        """An operation of the record. The run and the operator's act are written together."""
        versions = read_versions()
        self._starter.live.see(versions)
        going = Run.objects.filter(trial_of__isnull=False, state=Run.State.RUNNING)
        if going.filter(author=wish.author).exists():
            return TrialRefusal(BUSY)
        row = Message.objects.select_related("session").filter(pk=wish.message_pk).first()
        opening = load_opening(wish.run_pk) if row is not None else []
        if row is None or not opening:
            return TrialRefusal(NO_REQUEST)
        message = to_incoming(row, row.session)
        persona = self._choose(wish, message)
        if persona is None:
            return TrialRefusal(NO_PERSONA)
        run_pk = self._insert(wish, row, persona, versions[LiveKind.SETTINGS])
        return BegunTrial(
            Claim(run_pk, FIRST_CLAIM),
            persona,
            message,
            row.session_id,
            self._starter.live.find_account(message.chat.account),
            opening[1:],
            load_session_state(row.session_id),
        )

    def _choose(self, wish: TrialWish, message: IncomingMessage) -> PersonaSettings | None:
        """Who answers; None for a persona that is no more."""
        plan = RunPlan(Run.Origin.TEST, "", message.chat, message.sender_id)
        persona = self._starter.find_persona(plan)
        if wish.persona_pk is not None:
            rows = PersonaRow.objects.filter(enabled=True, kind=PersonaKind.PERSONA)
            if (row := rows.filter(pk=wish.persona_pk).first()) is None:
                return None
            persona = load_persona(row)
        if wish.endpoint_pk is None:
            return persona
        chosen = {**persona.endpoints, ModelRole.CHAT: (wish.endpoint_pk,)}
        return replace(persona, endpoints=chosen)

    def _insert(self, wish: TrialWish, row: Message, persona: PersonaSettings, version: int) -> int:
        run = Run.objects.create(
            trial_of=row,
            author=wish.author[:150],
            origin=Run.Origin.TEST,
            model=self._name_model(persona)[:200],
            claimed_by=self._process_id,
            claim_number=FIRST_CLAIM,
            started_at=timezone.now(),
            persona=persona.name[:100],
            config_version=version,
        )
        author = User.objects.filter(pk=wish.author_pk).first()
        record_act(ActKind.ASK_AGAIN, row.session_id, author, message=row, run=run)
        return run.pk

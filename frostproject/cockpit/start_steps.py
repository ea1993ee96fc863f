"""The steps of the start page: what is done, what is to do, and what is wrong, with a few short
queries."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from agent.access.chat_access import find_access
from agent.admin.endpoint_state import has_failed
from agent.admin.error_words import explain_error
from agent.domain.endpoint import Endpoint
from agent.domain.model_roles import ModelRole
from agent.domain.playground import is_playground
from agent.domain.states import MessageState
from agent.models import EndpointStatus, Message, Persona
from agent.record.settings.endpoints import load_endpoint_table
from onebot.admin.names import account_words, client_words
from onebot.models import Bot
from tools.text.error_words import ErrorWords

#: Rows of each kind that are looked at.
MOST_BOTS, MOST_MESSAGES = 20, 50
#: The prompt of an installation for which nobody has written one.
PLAIN_PROMPT = "你是一个乐于助人的助手。"


class StepState(StrEnum):
    DONE = "done"
    TODO = "todo"
    WRONG = "wrong"

    @property
    def label(self) -> str | Promise:
        return {"done": _("done"), "todo": _("to do"), "wrong": _("wrong")}[self.value]

    @property
    def badge(self) -> str:
        return {"done": "succeeded", "todo": "waiting", "wrong": "failed"}[self.value]


@dataclass(frozen=True)
class SetupStep:
    """One step; ``facts`` are what its template shows besides."""

    name: str
    title: str | Promise
    state: StepState
    facts: dict[str, Any] = field(default_factory=dict)
    error: ErrorWords | None = None


def may_set_up(user: Any) -> bool:
    """Whether ``user`` is somebody who sets the installation up: connects clients or models, of
    all chats."""
    names = ("onebot.change_bot", "agent.add_modelendpoint")
    return find_access(user).is_everything and any(user.has_perm(name) for name in names)


def leads_to_start(user: Any) -> bool:
    """Whether ``user`` is shown the start page first."""
    return may_set_up(user) and is_unfinished()


def is_unfinished() -> bool:
    """Whether nothing can be answered yet: no model, or no client that was ever here."""
    return not load_endpoint_table().resolve(ModelRole.CHAT) or not real_bots()


def real_bots() -> list[Bot]:
    """The accounts of clients, those that are connected first; none of playgrounds."""
    rows = Bot.objects.order_by("-online", "-connected_at", "self_id")[: 2 * MOST_BOTS]
    return [row for row in rows if not is_playground(row.self_id)][:MOST_BOTS]


def find_steps(user: Any, *, is_refused: bool = False) -> list[SetupStep]:
    """The steps that ``user`` may see, in order; ``is_refused`` as for :func:`client_step`."""
    bots = real_bots() if user.has_perm("onebot.view_bot") else []
    steps = []
    if user.has_perm("agent.view_modelendpoint"):
        steps.append(model_step())
    if user.has_perm("onebot.view_bot"):
        steps.append(client_step(bots, is_refused=is_refused))
    if user.has_perm("agent.view_persona"):
        steps.append(persona_step())
    if user.has_perm("onebot.view_bot"):
        steps.append(owners_step(bots))
    if user.has_perm("agent.view_message"):
        steps.append(try_step(bots))
    return steps


def model_step() -> SetupStep:
    """The endpoint that is asked first for chats."""
    title = _("A model")
    endpoints = load_endpoint_table().resolve(ModelRole.CHAT)
    if not endpoints:
        return SetupStep("model", title, StepState.TODO)
    first: Endpoint = endpoints[0]
    facts = {"endpoint": first, "name": first.name or first.model, "others": len(endpoints) - 1}
    if first.pk:
        facts["url"] = reverse("admin:agent_modelendpoint_change", args=(first.pk,))
    status = EndpointStatus.objects.filter(pk=first.pk).first() if first.pk else None
    facts["was_asked"] = status is not None and bool(status.answered_at or status.error_at)
    if status is not None and has_failed(status):
        return SetupStep("model", title, StepState.WRONG, facts, explain_error(status.error))
    return SetupStep("model", title, StepState.DONE, facts)


def client_step(bots: list[Bot], *, is_refused: bool = False) -> SetupStep:
    """Whether a client is connected; ``bots`` are all that ever were, ``is_refused`` whether one
    was turned away of late."""
    shown = [
        {
            "bot": bot,
            "words": account_words(bot),
            "client": client_words(bot),
            "is_offline": bot.online and bot.account_online is False,
        }
        for bot in bots
    ]
    online = [one for one in shown if one["bot"].online]  # type: ignore[attr-defined]
    state = StepState.DONE if online else StepState.WRONG if bots or is_refused else StepState.TODO
    if online and all(one["is_offline"] for one in online):
        state = StepState.WRONG
    return SetupStep("client", _("A OneBot client"), state, {"bots": shown, "online": online})


def persona_step() -> SetupStep:
    """The persona that answers where no other was chosen."""
    row = Persona.objects.filter(is_default=True).first()
    is_own = bool((row and row.prompt.strip()) or settings.SYSTEM_PROMPT != PLAIN_PROMPT)
    facts = {"persona": row, "prompt": (row and row.prompt) or settings.SYSTEM_PROMPT}
    return SetupStep("persona", _("A persona"), StepState.DONE if is_own else StepState.TODO, facts)


def owners_step(bots: list[Bot]) -> SetupStep:
    """The people that each account belongs to."""
    lacking = [bot for bot in bots if not bot.owner_ids]
    is_done = bool(bots) and not lacking
    facts = {"bots": bots, "lacking": len(lacking)}
    return SetupStep(
        "owners", _("Its owners"), StepState.DONE if is_done else StepState.TODO, facts
    )


def try_step(bots: list[Bot]) -> SetupStep:
    """Whether a message of a client was answered, and if the last one failed, why. Without a
    client, an answer in a playground counts."""
    account = next((account_words(bot) for bot in bots if bot.online), "")
    facts: dict[str, Any] = {"account": account, "now": timezone.now()}
    answered, played = _newest(MessageState.ANSWERED)
    failed, _played = _newest(MessageState.FAILED)
    facts |= {"answered": answered, "failed": failed, "played": None if answered else played}
    if failed and (answered is None or failed.pk > answered.pk):
        return SetupStep("try", _("Try it"), StepState.WRONG, facts, explain_error(failed.detail))
    state = StepState.DONE if answered or played else StepState.TODO
    return SetupStep("try", _("Try it"), state, facts)


def _newest(state: MessageState) -> tuple[Message | None, Message | None]:
    """The newest messages in ``state`` among the last few: of a client, and of a playground."""
    rows = Message.objects.filter(state=state).select_related("session").defer("segments", "raw")
    found: dict[bool, Message] = {}
    for row in rows.order_by("-pk")[:MOST_MESSAGES]:
        found.setdefault(is_playground(row.session.account), row)
    return found.get(False), found.get(True)

"""A chat whose messages a script answers, with an owner, and commands that are carried out."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agent.chat.conversation import ConversationHandler
from agent.commands.call import CommandServices
from agent.commands.desk import CommandDesk
from agent.domain.types import ChatAddress
from agent.models import Manners, Message
from agent.record.record import Record
from agent.record.settings.live import LiveSettings
from agent.record.sums.quotas import AnswerQuotas
from agent.run.engine import Engine, PersonaEngines
from agent.run.jobs import BackgroundCalls
from tests.agent.talk import GROUP, PROCESS, Mailbox, Script, arrival, give_owners, message
from tools.registry.registry import ToolRegistry

OWNER, MEMBER = "20009", "20001"


class Room:
    """What is said in chats of one account, and what comes of it."""

    def __init__(self, record: Record, quotas: AnswerQuotas, mailbox: Mailbox) -> None:
        self.record, self.mailbox, self.model = record, mailbox, Script()
        self.stopped = False
        self.askers: list[str | None] = []
        """On whose answers each "stop" was, None for anybody's."""
        engines = PersonaEngines(Engine(self.model, ToolRegistry()))
        services = CommandServices(quotas, self.mailbox, engines.name_model)
        self.conversations = ConversationHandler(
            record,
            engines,
            self.mailbox,
            BackgroundCalls(record, lambda _account: None),
            commands=CommandDesk(record, services),
            stop_answer=self._stop,
        )

    async def say(self, text: str, chat: ChatAddress = GROUP, **fields: Any) -> str:
        """Have a message decided on and, if it is to be, answered; what was sent for it, "" for
        nothing. Members say it, who are not the owner."""
        usual = {"sender_id": MEMBER, "sender_name": "Ann"}
        said = message(text, chat, **usual | fields)
        accepted = await self.record.submit_batched(
            self.record.arrivals.accept_messages, arrival(said)
        )
        before = len(self.mailbox.sent)
        if accepted.decision and accepted.decision.is_to_be_answered:
            await self.conversations.answer_message(accepted.to_pending(said))
        sent = self.mailbox.sent[before:]
        return sent[0][1] if sent else ""

    async def order(self, text: str, chat: ChatAddress = GROUP, **fields: Any) -> str:
        """As :meth:`say`, by the owner."""
        return await self.say(text, chat, sender_id=OWNER, sender_name="Olga", **fields)

    async def _stop(self, chat: ChatAddress, asker: str | None) -> bool:
        self.askers.append(asker)
        return self.stopped


@sync_to_async
def newest(**where: Any) -> Any:
    """The newest message on record, which has a run where one was begun."""
    return Message.objects.filter(**where).select_related("run", "session").latest("pk")


@pytest.fixture
async def room(transactional_db: None, settings: Any) -> AsyncIterator[Room]:
    settings.LANGUAGE_CODE = "en"
    settings.PERSON_ANSWERS_PER_MINUTE, settings.PERSON_ANSWERS_PER_DAY = 10, 50
    await Manners.objects.acreate(name="ours", command_prefix="/")
    give_owners(live := LiveSettings(), OWNER)
    quotas = AnswerQuotas(live, 0)
    record = Record(PROCESS, live, quotas)
    yield Room(record, quotas, Mailbox())
    await record.close()

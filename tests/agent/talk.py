"""What tests of the agent say and hear without sockets: messages, a model by script, and a way out
that remembers."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils import timezone

from agent.domain.errors import LLMError
from agent.domain.manners import ChatManners
from agent.domain.states import Pause
from agent.domain.types import AccountSettings, ChatAddress, Delivery, IncomingMessage, MessagePart
from agent.llm.answers.completion import parse_completion
from agent.llm.requests.base import LLMRequest, LLMResponse
from agent.models import Message, Run
from agent.record.arrivals.arrivals import AcceptedMessage, ArrivalStore, MessageArrival
from agent.record.runs.replies import OutgoingMessage, add_replies
from agent.record.runs.runs import ActiveRun, RunPlan, RunStarter, StartRun
from agent.record.settings.live import LiveSettings
from tools.live_rows import LiveKind

PROCESS = "p1"
PRIVATE = ChatAddress("10001", "private", "20001")
GROUP = ChatAddress("10001", "group", "30001")
PLAN = RunPlan(Run.Origin.CHAT, "m", PRIVATE)


def message(text: str = "hi", chat: ChatAddress = PRIVATE, **fields: Any) -> IncomingMessage:
    usual: dict[str, Any] = {
        "sender_id": "20001",
        "sender_name": "Ann",
        "segments": [],
        "spoken_text": text,
        "happened_at": timezone.now(),
    }
    return IncomingMessage(chat=chat, text=text, **usual | fields)


def arrivals(process_id: str = PROCESS) -> ArrivalStore:
    return ArrivalStore(process_id, beginnings(process_id))


def beginnings(process_id: str = PROCESS) -> RunStarter:
    return RunStarter(process_id)


def give_owners(live: LiveSettings, *owners: str) -> None:
    """Have two accounts belong to ``owners``, once the rows are read."""
    accounts = dict.fromkeys(("10001", "10002"), AccountSettings(frozenset(owners)))
    live.read_by(lambda known: replace(known, accounts=accounts), LiveKind.ACCOUNTS)


def begin(wishes: Sequence[StartRun], process_id: str = PROCESS) -> list[ActiveRun]:
    """The runs of messages that nobody else has taken over."""
    runs = [run for run in beginnings(process_id).begin_runs(wishes) if isinstance(run, ActiveRun)]
    assert len(runs) == len(wishes)
    return runs


def arrival(said: IncomingMessage, **fields: Any) -> MessageArrival:
    return MessageArrival(
        said,
        fields.pop("received_at", timezone.now()),
        **fields,
    )


def accept(*said: IncomingMessage, process_id: str = PROCESS) -> list[AcceptedMessage]:
    """Put messages on record, all in one commit."""
    return arrivals(process_id).accept_messages([arrival(one) for one in said])


def reasons(accepted: list[AcceptedMessage]) -> list[str]:
    """Why each message is answered or not; "" for one that was seen before."""
    return [str(one.decision.reason) if one.decision else "" for one in accepted]


def reply(
    wish: StartRun,
    run_pk: int,
    text: str = "hello",
    state: str = "sent",
    *,
    process_id: str = PROCESS,
    **fields: Any,
) -> int:
    """Put an outgoing message of a run on record; the key of its row."""
    assert wish.session_pk is not None
    usual: dict[str, Any] = {
        "segments": [{"type": "text"}],
        "echo": f"e-{text}",
        "state": Message.State(state),
    }
    (pk,) = add_replies(
        [(OutgoingMessage(wish.session_pk, run_pk, text, **usual | fields), process_id)]
    )
    return pk


class Script:
    """A model that gives the answers it was told to, in order: texts, tool calls, errors, or
    futures of them."""

    name = "script"
    is_demo = False

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[LLMRequest] = []

    async def complete(self, request: LLMRequest) -> LLMResponse:
        self.requests.append(LLMRequest([dict(one) for one in request.messages], request.tools))
        answer = self.answers.pop(0)
        if isinstance(answer, asyncio.Future):
            answer = await answer
        if isinstance(answer, LLMError):
            raise answer
        if isinstance(answer, str):
            answer = {"content": answer}
        choice = {"message": answer, "finish_reason": answer.get("finish_reason")}
        return parse_completion(
            {"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 2}}
        )

    async def close(self) -> None:
        """Nothing is held."""


def calling(*calls: tuple[str, str], content: str | None = None) -> dict[str, Any]:
    """An answer that asks for tools, by name and arguments; their ids are c1, c2 and so on."""
    wanted = [
        {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for place, (name, arguments) in enumerate(calls, 1)
    ]
    return {"content": content, "tool_calls": wanted}


class Mailbox:
    """The way out of the agent, without a wire: what was sent where, and what the client is made to
    say of it."""

    takes_any_length = False

    def __init__(self, state: str = "delivered", error: str = "") -> None:
        self.sent: list[tuple[ChatAddress, str]] = []
        self.connected = asyncio.Event()
        self.connected.set()
        self.delivery = Delivery(
            Message.State(state), "4711" if state == "delivered" else "", error
        )
        self.signs: list[tuple[str, bool]] = []
        self.turns: list[float] = []
        """The seconds that the next messages wait for their turns."""
        self.silent = False
        """Whether the client answers never."""

    def compose(self, parts: Sequence[MessagePart]) -> list[dict[str, Any]]:
        return [
            {
                "type": part.type,
                "text": part.text
                or part.mention_user_id
                or part.message_id
                or part.url
                or part.path,
            }
            for part in parts
        ]

    def compose_forward(
        self, chat: ChatAddress, messages: Sequence[Sequence[MessagePart]]
    ) -> list[dict[str, Any]]:
        return [{"type": "node", "text": part.text} for parts in messages for part in parts]

    def load_accounts(self) -> Mapping[str, AccountSettings]:
        return {}

    def replace_accounts(self, accounts: Mapping[str, AccountSettings]) -> None:
        """They are those of nobody."""

    def replace_pauses(self, pauses: Mapping[ChatAddress, Pause]) -> None:
        """There are none."""

    def is_connected(self, chat: ChatAddress) -> bool:
        return self.connected.is_set()

    async def wait_connected(self, chat: ChatAddress, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self.connected.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def show_working(
        self, chat: ChatAddress, message_id: str, manners: ChatManners, *, is_on: bool
    ) -> None:
        self.signs.append((message_id, is_on))

    def next_turn(self, chat: ChatAddress, sends_per_minute: int | None = None) -> float:
        return self.turns.pop(0) if self.turns else 0.0

    async def deliver(
        self,
        chat: ChatAddress,
        segments: list[dict[str, Any]],
        *,
        echo: str,
        temp_group_id: str = "",
    ) -> Delivery:
        self.sent.append((chat, "".join(segment["text"] for segment in segments)))
        if self.silent:
            await asyncio.Event().wait()
        return self.delivery

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.sent]

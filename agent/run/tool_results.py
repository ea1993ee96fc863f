"""What is made from a tool's result: what the model gets (text in the result itself, pictures after
it), and the record. Pure."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agent.domain.chat_state import StateChange, ToolDiscovery
from agent.domain.states import ToolCallState
from agent.domain.types import ChatAddress
from agent.llm.requests.messages import ChatMessage
from agent.record.runs.deferred_calls import CallSuspension
from agent.record.runs.steps import CallOutcome
from tools.contract import ToolContentItem, ToolExecutionResult, is_picture
from tools.refusals import CallVerdict, RefusalReason
from tools.text.fences import neutralize_content, neutralize_marks
from tools.text.storable import make_storable

PROVIDER_NAME = "maisaka_builtin"
"""The provider of the loop's own tools, by the name that MaiBot's documents give it; Maisaka is
MaiBot's persona."""
CONTINUE = "continue"
"""The tool by which the timing gate lets a message be answered."""
FENCED = "fenced"
"""The entry of a result's metadata by which a tool of this provider says that its words are
harmless but for its own fences."""

PAUSE = "pause_execution"
"""The entry of a result's metadata that ends the run: no later call of the same answer is made."""
FLOW = "flow"
"""The entry that says how the run ends, one of :class:`EndReason`."""


class EndReason(StrEnum):
    """Why a run ended by a tool. After ``no_action`` the next message needs no timing gate."""

    FINISH = "finish"
    NO_ACTION = "no_action"
    STAY_SILENT = "stay_silent"


@dataclass(slots=True)
class RunFlow:
    """State that the tools of one run share."""

    waits: int = 0
    """Waits in a row."""
    replies: dict[int, int] = field(default_factory=dict)
    """How often each message was replied to, by the key of its row."""

    def count_waits(self, tool_name: str) -> None:
        """A tool is called next: any but ``wait`` ends the row of waits."""
        if tool_name != "wait":
            self.waits = 0


class ChatPauses:
    """Waiting chats: a new message can end the wait of its chat. Used from one event loop."""

    def __init__(self) -> None:
        self._stirred: dict[ChatAddress, asyncio.Event] = {}
        self.has_more: Callable[[ChatAddress], bool] = lambda chat: False
        """Whether messages of a chat wait for their turn: then a breakable wait is over at once."""

    async def pause(self, chat: ChatAddress, seconds: float, *, breakable: bool) -> bool:
        """Wait; True when a message ended it before its time, which only a ``breakable`` wait lets
        happen."""
        event = self._stirred.setdefault(chat, asyncio.Event()) if breakable else asyncio.Event()
        if breakable and self.has_more(chat):
            event.set()
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return False
        finally:
            self._stirred.pop(chat, None)
        return True

    def wake(self, chat: ChatAddress) -> None:
        """A message came in ``chat``."""
        if event := self._stirred.get(chat):
            event.set()


def build_end_result(tool_name: str, end: EndReason, text: str) -> ToolExecutionResult:
    """The result of a tool that ends the run."""
    return ToolExecutionResult(
        tool_name, success=True, content=text, metadata={PAUSE: True, FLOW: end.value}
    )


def get_end_reason(result: ToolExecutionResult) -> str:
    """How ``result`` ends the run, "" if it continues.

    Any tool may end the run, but only the engine's own may say how: others finish it.
    """
    if not result.metadata.get(PAUSE):
        return ""
    is_own = result.metadata.get("provider_name") == PROVIDER_NAME
    return (
        str(result.metadata.get(FLOW, EndReason.FINISH.value)) if is_own else EndReason.FINISH.value
    )


#: What stands for a result that has nothing to say.
NO_TEXT = {True: "工具执行成功。", False: "工具执行失败。"}
#: Characters of a result that are kept on record when the model got fewer.
FULL_LIMIT = 1_000_000
ROLES = ("user", "assistant", "system")


def result_text(call_id: str, result: ToolExecutionResult, *, can_see: bool) -> str:
    """The content of the ``tool`` message: the result in words, then a line for each item they
    leave out.

    Many servers and plugins give their text twice, as a whole and as items: the second copy is
    dropped.
    """
    text = _told(call_id, result, can_see=can_see)
    is_own = (
        result.metadata.get("provider_name") == PROVIDER_NAME
        and result.metadata.get(FENCED) is True
    )
    return text if is_own else neutralize_marks(text)


def _told(call_id: str, result: ToolExecutionResult, *, can_see: bool) -> str:
    text = result.get_history_content() or NO_TEXT[result.success]
    if not result.content.strip():
        return text  # the items are the text already
    lines = [
        f"[{media_index(call_id, number)}]" if can_see and is_picture(item) else item.history_text()
        for number, item in enumerate(result.content_items, 1)
    ]
    return "\n".join(
        [text, *(line for line in lines if line.strip() and f"\n{line}\n" not in f"\n{text}\n")]
    )


def following_messages(
    call_id: str, result: ToolExecutionResult, *, can_see: bool
) -> Iterator[ChatMessage]:
    """Messages that go after the results of a step: pictures for a model that sees, and what the
    tool adds itself."""
    if can_see:
        for number, item in enumerate(result.content_items, 1):
            if is_picture(item):
                yield _picture(call_id, number, item)
    for message in result.post_history_messages:
        if message.get("role") in ROLES and message.get("content"):
            kept = {key: message[key] for key in ("role", "message_id") if key in message}
            yield kept | {"content": neutralize_content(message["content"])}


def media_index(call_id: str, number: int) -> str:
    """How a later call can name a picture of an earlier result."""
    return f"tool_result:{call_id}:{number}"


def drop_repeated_messages(messages: list[ChatMessage], known: set[str]) -> Iterator[ChatMessage]:
    """``messages`` without those whose ``message_id`` was there before; the id itself is not
    sent."""
    for message in messages:
        message_id = str(message.get("message_id") or "")
        if message_id and message_id in known:
            continue
        known.add(message_id)
        yield {key: value for key, value in message.items() if key != "message_id"}


def _picture(call_id: str, number: int, item: ToolContentItem) -> ChatMessage:
    parts: list[dict[str, Any]] = [
        {
            "type": "text",
            "text": neutralize_marks(
                f"[{media_index(call_id, number)}] {item.name or item.description}".strip()
            ),
        },
        {"type": "image_url", "image_url": {"url": f"data:{item.mime_type};base64,{item.data}"}},
    ]
    return {"role": "user", "content": parts}


def needs_approval(result: ToolExecutionResult) -> bool:
    return (
        result.metadata.get("refusal") == RefusalReason.NEEDS_APPROVAL
        and "arguments" in result.metadata
    )


def build_pending_result(name: str, text: str, *, worker: str = "") -> ToolExecutionResult:
    """Not a result yet: the text that the model gets meanwhile; ``worker`` is the process that
    works on it, "" for none."""
    return ToolExecutionResult(
        name, success=True, content=text, metadata={"pending": True, "worker": worker}
    )


def build_skipped_result(name: str, reason: str) -> ToolExecutionResult:
    """The result of a call that the loop itself does not make."""
    metadata = {"verdict": CallVerdict.NOT_MADE.value}
    return ToolExecutionResult(
        name, success=False, error_message=f"工具执行失败: {reason}", metadata=metadata
    )


def to_suspension(
    pk: int, result: ToolExecutionResult, told: str, next_pk: int | None
) -> CallSuspension | None:
    """How the record keeps a call that has no result yet; None for one that has."""
    if not result.metadata.get("pending"):
        return None
    provider_name = str(result.metadata.get("provider_name", ""))
    worker = str(result.metadata.get("worker", ""))
    return CallSuspension(pk, provider_name, told, worker, next_pk, *decision(result))


def decision(result: ToolExecutionResult) -> tuple[str, str]:
    """What was decided before a call, and whose row or word that was; "" where neither is known."""
    found = result.metadata
    return str(found.get("verdict", "")), str(found.get("decided_by", ""))


def call_outcome(
    pk: int, result: ToolExecutionResult, text: str, duration_ms: int, next_pk: int | None = None
) -> CallOutcome:
    """How the record keeps a call that has ended; ``text`` is what the model got."""
    verdict, decided_by = decision(result)
    is_unknown = result.metadata.get("stopped") or result.metadata.get("unknown")
    failed = ToolCallState.UNKNOWN if is_unknown else ToolCallState.FAILED
    return CallOutcome(
        pk=pk,
        state=ToolCallState.SUCCEEDED if result.success else failed,
        provider_name=str(result.metadata.get("provider_name", "")),
        mocked=bool(result.metadata.get("mock")),
        result=text,
        structured_content=make_storable(result.structured_content),
        error=make_storable(result.error_message),
        duration_ms=duration_ms,
        next_pk=next_pk,
        state_change=change
        if isinstance(change := result.metadata.get("state_change"), StateChange)
        else None,
        discovery=found
        if isinstance(found := result.metadata.get("discovery"), ToolDiscovery)
        else None,
        full_result=make_storable(result.metadata.get("full_content", ""))[:FULL_LIMIT],
        verdict=verdict,
        decided_by=decided_by,
    )

"""The course of one run, as far as its tools steer it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from agent.domain.types import ChatAddress
from tools.contract import ToolExecutionResult

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

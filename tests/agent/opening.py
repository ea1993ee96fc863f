"""A client that is asked about messages, without a socket: what it answers stands in a script."""

import asyncio
from typing import Any

from onebot.connections.client import Connections, OneBotClient, PendingActions, Relay
from onebot.gateway.media import OneBotMedia

Frame = dict[str, Any]


async def _nobody() -> dict[str, str]:
    return {}


class ScriptedSource(OneBotMedia):
    """The real source, whose questions are answered by ``answers``: by action and the id that is
    asked for."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(OneBotClient(Connections(), PendingActions(), Relay(_nobody)))
        self.answers = answers
        self.asked: list[tuple[str, str]] = []

    async def _ask(self, chat: Any, action: str, **params: Any) -> Any:
        one = str(params.get("message_id") or params.get("id") or params.get("file"))
        self.asked.append((action, one))
        answer = self.answers.get(f"{action}_{one}")
        return await answer if isinstance(answer, asyncio.Future) else answer


def text(words: str) -> Frame:
    return {"type": "text", "data": {"text": words}}


def image(url: str = "http://h.example/a.png") -> Frame:
    return {"type": "image", "data": {"file": "a.png", "url": url}}


def forward(one: str = "", content: Any = None) -> Frame:
    return {"type": "forward", "data": {"id": one} | ({"content": content} if content else {})}


def node(*segments: Frame, name: str = "Bob", user_id: Any = 20002) -> Frame:
    """A message in a forward as NapCat gives it."""
    return {
        "message": list(segments),
        "sender": {"user_id": user_id, "nickname": name},
        "time": 1795228533,
    }

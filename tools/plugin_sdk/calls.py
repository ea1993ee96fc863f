"""The call that a plugin's code is answering, wherever that code runs."""

from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls, and where: said by the server, never by the model. ``stream_id`` and ``chat_id``
    are the same chat."""

    token: str = ""
    session_id: str = ""
    stream_id: str = ""
    is_group_chat: bool | None = None
    group_id: str = ""
    user_id: str = ""
    platform: str = ""
    reasoning: str = ""
    call_id: str = ""

    @property
    def chat_id(self) -> str:
        return self.stream_id

    @classmethod
    def of(cls, token: str, context: dict[str, Any]) -> "Call":
        """The call with that ``token``; fields that are unknown here are left out."""
        known = {each.name for each in fields(cls)} - {"token"}
        return cls(token, **{name: value for name, value in context.items() if name in known})


CURRENT: ContextVar[Call] = ContextVar("plugin_call")

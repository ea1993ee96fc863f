"""The call that a plugin's code is answering, in any thread or task; and the error codes between
the server and a plugin. The codes are MaiBot's, except the last one."""

from contextvars import ContextVar
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls, and where: set by the server, never by the model. ``stream_id`` and ``chat_id``
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


class RpcErrorCode(StrEnum):
    """Why a request was not answered with a value."""

    TIMEOUT = "E_TIMEOUT"
    BAD_PAYLOAD = "E_BAD_PAYLOAD"
    PROTOCOL_MISMATCH = "E_PROTOCOL_MISMATCH"
    SHUTTING_DOWN = "E_SHUTTING_DOWN"
    UNAUTHORIZED = "E_UNAUTHORIZED"
    METHOD_NOT_ALLOWED = "E_METHOD_NOT_ALLOWED"
    BACK_PRESSURE = "E_BACK_PRESSURE"
    HOST_OVERLOADED = "E_HOST_OVERLOADED"
    PLUGIN_CRASHED = "E_PLUGIN_CRASHED"
    PLUGIN_NOT_FOUND = "E_PLUGIN_NOT_FOUND"
    RELOAD_IN_PROGRESS = "E_RELOAD_IN_PROGRESS"
    CAPABILITY_DENIED = "E_CAPABILITY_DENIED"
    CAPABILITY_FAILED = "E_CAPABILITY_FAILED"
    PLUGIN_FAILED = "E_PLUGIN_FAILED"
    """The plugin's own code raised an exception, or it cannot be loaded; its process lives on."""


class RpcError(Exception):
    """A request without a value: the other side refused it or could not answer it, or it never got
    there.

    ``code`` is a :class:`RpcErrorCode`, or whatever word the other side sent; ``str()`` is the
    message.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

"""What can go wrong between the server and a plugin, by code. The codes are MaiBot's, but for the
last."""

from enum import StrEnum


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

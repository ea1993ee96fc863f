"""What a plugin may ask of the server, each where the operator has granted it."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Protocol

from tools.plugin_sdk.calls import CURRENT, Call, RpcError, RpcErrorCode

LOGGER = logging.getLogger("plugin")
CapabilityError = RpcError


class Host(Protocol):
    """The server, as the process around the plugin sees it."""

    loop: asyncio.AbstractEventLoop

    async def capability(self, token: str, name: str, arguments: dict[str, Any]) -> Any:
        """What ``name`` gives. Raises :class:`CapabilityError`."""
        ...

    def progress(self, token: str, text: str, tell: bool) -> None:
        """From any thread."""
        ...


class Context:
    """A plugin's way to the server: ``self.ctx`` in a :class:`~tools.plugin_sdk.Plugin`, ``ctx`` in
    plain functions.

    What asks the server is awaited in an ``async def``; in a plain ``def``, which runs in a
    thread of its own, the same call waits and returns the value. It raises
    :class:`CapabilityError`, whose ``code`` says why: ``E_CAPABILITY_DENIED`` where the
    operator has not granted it, or no call is being answered.
    """

    def __init__(self) -> None:
        self.logger = LOGGER
        self.plugin_id = ""
        self.config: Mapping[str, Any] = {}
        self.send = Send(self)
        self.llm = Llm(self)
        self.storage = Storage(self)
        self._host: Host | None = None

    def attach(self, host: Host, plugin_id: str, config: Mapping[str, object]) -> None:
        """Begin to work. Called once by the process around the plugin, before anything else is."""
        self._host = host
        self.plugin_id = plugin_id
        self.config = config

    @property
    def call(self) -> Call:
        """The call that is being answered. Raises :class:`CapabilityError` where there is none."""
        if call := CURRENT.get(None):
            return call
        raise CapabilityError(RpcErrorCode.CAPABILITY_DENIED, "no call is being answered")

    def history(self, number: int = 20) -> Any:
        """The newest messages of the chat, oldest first, as a list of objects."""
        return self.ask("history.read", number=number)

    def report_progress(self, text: str, *, tell: bool = False) -> None:
        """Record the progress of a long-running tool; with ``tell`` the model also gets it. Returns
        immediately."""
        self._attached().progress(self.call.token, text, tell)

    def ask(self, name: str, **arguments: object) -> Any:
        """Use the capability ``name``."""
        host, call = self._attached(), CURRENT.get(None)
        work = host.capability(call.token if call else "", name, arguments)
        if _is_running(host.loop):
            return work
        return asyncio.run_coroutine_threadsafe(work, host.loop).result()

    def _attached(self) -> Host:
        if self._host is None:
            raise RuntimeError("the plugin is not loaded yet: ask in on_load, or in a tool")
        return self._host


class Send:
    """``ctx.send``: messages to the chat that the call comes from, and to no other. Needs
    ``send.text``."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def text(self, text: str, stream_id: str = "") -> Any:
        """Send ``text``; what is known of it then. ``stream_id`` need not be given, and can be no
        other chat's."""
        if stream_id not in ("", self._context.call.stream_id):
            raise CapabilityError(
                RpcErrorCode.CAPABILITY_DENIED, "a plugin can send to the chat of the call alone"
            )
        return self._context.ask("send.text", text=text)


class Llm:
    """``ctx.llm``: the chat model. Needs ``llm.generate``."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def generate(self, prompt: str) -> Any:
        """The model's answer to ``prompt``, a text."""
        return self._context.ask("llm.generate", prompt=prompt)


class Storage:
    """``ctx.storage``: values of the plugin's own, anything that JSON holds, kept in the server's
    database. Needs ``storage``."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def get(self, key: str) -> Any:
        """The value under ``key``; None when there is none."""
        return self._context.ask("storage.get", key=key)

    def set(self, key: str, value: object) -> Any:
        """Store ``value`` under ``key``."""
        return self._context.ask("storage.set", key=key, value=value)

    def delete(self, key: str) -> Any:
        """Forget ``key``; whether it was there."""
        return self._context.ask("storage.delete", key=key)

    def keys(self, prefix: str = "") -> Any:
        """The keys that begin with ``prefix``, in order."""
        return self._context.ask("storage.keys", prefix=prefix)


def _is_running(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this is the thread of ``loop``."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


ctx = Context()
"""The plugin's own: there is one plugin in a process."""

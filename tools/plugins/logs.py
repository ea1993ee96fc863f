"""What is logged in a plugin's process, on its way to the server."""

import asyncio
import contextlib
import logging

from tools.plugin_sdk.errors import RpcError
from tools.plugins.peer import RpcPeer

TEXT_CHARS = 8_000
WAITING = 1_000
"""Lines on their way to the event loop; what comes above that is left out, and their number is
told."""


class PeerLog(logging.Handler):
    """Sends each record as a notice ``log {level, text}``, from whatever thread it comes."""

    def __init__(self, peer: RpcPeer, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._peer = peer
        self._loop = loop
        self._waiting = 0
        self._left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        if self._waiting >= WAITING:
            self._left_out += 1
            return
        payload = {"level": record.levelname.lower()[:8], "text": self.format(record)[:TEXT_CHARS]}
        self._waiting += 1
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._send, payload)

    def _send(self, payload: dict[str, str]) -> None:
        self._waiting -= 1
        left_out, self._left_out = self._left_out, 0
        with contextlib.suppress(
            RpcError
        ):  # the server is gone, or does not read: nobody could be told
            self._peer.notify("log", payload)
            if left_out:
                self._peer.notify(
                    "log", {"level": "warning", "text": f"{left_out} lines were left out"}
                )

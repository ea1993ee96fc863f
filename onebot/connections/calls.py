"""Actions in flight: each waits for the response that carries its echo, on whatever socket it
comes."""

import asyncio
from dataclasses import dataclass

from onebot.connections.connections import Socket
from onebot.protocol.actions import ActionResponse
from onebot.protocol.errors import ActionTimeout, ConnectionLost, NotConnected
from tools.processes import crash_points
from tools.time_limits import TIME_LIMITS

#: How long the answer may still come, on the client's next socket, after its socket ended; in
#: seconds.
GRACE_SECONDS = TIME_LIMITS.lost_socket
#: How a frame begins that asks for information: no message is lost or repeated with it.
QUESTION = '{"action":"get_'


@dataclass(slots=True, eq=False)
class _Pending:
    account: str
    socket: Socket
    future: "asyncio.Future[ActionResponse]"


class PendingActions:
    """The actions of this process that have no answer yet."""

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}

    async def call(
        self, account: str, socket: Socket, text: str, echo: str, timeout_seconds: float
    ) -> ActionResponse:
        """Write the action ``text`` and wait for the response to ``echo``.

        Raises :class:`NotConnected` when the socket is closed already and nothing was
        written, :class:`ActionTimeout` when no answer came, :class:`ConnectionLost`
        when the socket ended and no answer came on a later one. After cancellation the
        action may have been carried out; its answer counts as late.
        """
        if not socket.is_open:
            raise NotConnected(account)
        pending = _Pending(account, socket, asyncio.get_running_loop().create_future())
        self._pending[echo] = pending  # before the frame goes out: an answer can be very fast
        try:
            async with asyncio.timeout(timeout_seconds):
                await socket.write(text)
                if not text.startswith(QUESTION):
                    crash_points.hit_crash_point_after_flush("frame_written")
                return await pending.future
        except TimeoutError as error:
            raise ActionTimeout(f"no answer within {timeout_seconds:g} s") from error
        finally:
            del self._pending[echo]

    def resolve(self, account: str, response: ActionResponse) -> bool:
        """Hand ``response`` to the call that waits for it; False if no call of ``account`` does."""
        pending = self._pending.get(response.echo or "")
        if pending is None or pending.account != account:
            return False
        if not pending.future.done():
            pending.future.set_result(response)
        return True

    def socket_ended(self, socket: Socket) -> None:
        """Let what was written to ``socket`` wait a little longer, and no more."""
        loop = asyncio.get_running_loop()
        for pending in self._pending.values():
            if pending.socket is socket:
                loop.call_later(GRACE_SECONDS, _give_up, pending.future)


def _give_up(future: "asyncio.Future[ActionResponse]") -> None:
    if not future.done():
        future.set_exception(ConnectionLost("the connection ended before the client answered"))

"""What an endpoint of a model does to its callers, one name each (see :mod:`chaos.marks`)."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from aiohttp import web

#: An answer without an end ends here, in bytes; a server that keeps its limit has hung up long
#: before.
ENDLESS_LIMIT = 64 * 2**20
_PIECE = b'{"choices": [{"message": {"content": "' + b"x" * 2**16


class Troubles:
    """Makes them, and remembers how much of the endless answers was read."""

    def __init__(self) -> None:
        self.most_read = 0
        """Bytes of one answer that a caller took, at most."""
        self._makers: dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {
            "500": self._fails,
            "429": self._refuses,
            "429after": self._refuses_for_a_second,
            "cuthead": self._cuts_in_the_head,
            "cutbody": self._cuts_in_the_body,
            "garbage": self._talks_nonsense,
            "hang": self._hangs,
            "endless": self._never_ends,
            "null": self._says_null,
            "blank": self._says_blanks,
        }

    async def make(self, name: str, request: web.Request) -> web.StreamResponse:
        return await self._makers[name](request)

    async def _fails(self, _request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "out of order"}}, status=500)

    async def _refuses(self, _request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "too many"}}, status=429)

    async def _refuses_for_a_second(self, _request: web.Request) -> web.Response:
        return web.json_response(
            {"error": {"message": "too many"}}, status=429, headers={"Retry-After": "1"}
        )

    async def _cuts_in_the_head(self, request: web.Request) -> web.StreamResponse:
        return await self._cut(request, b"HTTP/1.1 200 OK\r\nContent-Ty")

    async def _cuts_in_the_body(self, request: web.Request) -> web.StreamResponse:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n"
        return await self._cut(request, head + b'{"choices": [{"message": {"content": "hal')

    async def _cut(self, request: web.Request, written: bytes) -> web.StreamResponse:
        transport = request.transport
        if transport is not None:
            transport.write(written)
            await asyncio.sleep(0.05)  # so that what was written is read before the end is seen
            transport.close()
        raise asyncio.CancelledError

    async def _talks_nonsense(self, _request: web.Request) -> web.Response:
        return web.Response(body=b'\xff\xfe<html>{"choices": 1}', content_type="application/json")

    async def _hangs(self, _request: web.Request) -> web.Response:
        await asyncio.sleep(3600)
        raise AssertionError("the caller has gone before")

    async def _never_ends(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        read = 0
        try:
            while read < ENDLESS_LIMIT:
                await response.write(_PIECE)
                read += len(_PIECE)
        finally:
            self.most_read = max(self.most_read, read)
        return response

    async def _says_null(self, _request: web.Request) -> web.Response:
        return self._says(None)

    async def _says_blanks(self, _request: web.Request) -> web.Response:
        return self._says(" \n ")

    @staticmethod
    def _says(content: str | None) -> web.Response:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": content},
            "finish_reason": "stop",
        }
        return web.Response(
            text=json.dumps({"id": "c", "choices": [choice]}), content_type="application/json"
        )

"""A proxy before PostgreSQL that cuts a connection right at a COMMIT."""

import asyncio
import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Literal

#: A COMMIT as the driver sends it: a simple query.
_COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"
_SOCKET_NAME = ".s.PGSQL.5432"
_PIECE = 2**16

#: ``before``: the server never sees the COMMIT. ``behind``: it takes effect, and the client never
#: hears of it.
Place = Literal["before", "behind"]


class CommitCutter:
    """Listens on a socket in ``folder`` and passes everything on to the server whose socket is in
    ``target``."""

    def __init__(self, target: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="frost-proxy-"))
        self._folder = target
        self._target = str(Path(target) / _SOCKET_NAME)
        self._wanted: Place | None = None
        self._within = b""
        self._is_cut = asyncio.Event()

    async def __aenter__(self) -> "CommitCutter":
        self._server = await asyncio.start_unix_server(self._serve, str(self.folder / _SOCKET_NAME))
        return self

    def through(self, url: str) -> str:
        """``url`` of a database in the folder ``target``, with this proxy in the place of its
        server."""
        return url.replace(f"host={self._folder}", f"host={self.folder}")

    async def __aexit__(self, *_exc: object) -> None:
        self._server.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def want(self, place: Place, within: str = "") -> None:
        """Cut at the next COMMIT, of any connection, of a transaction that has said ``within``."""
        self._is_cut.clear()
        self._wanted, self._within = place, within.encode()

    async def is_cut(self, seconds: float = 10) -> None:
        """Wait until the cut that was wanted has happened."""
        async with asyncio.timeout(seconds):
            await self._is_cut.wait()

    def take_wish(self, transaction: bytes) -> Place | None:
        """The cut that is wanted, for the connection that has met the COMMIT of ``transaction``;
        nobody else gets it."""
        if self._wanted is None or self._within not in transaction:
            return None
        wanted, self._wanted = self._wanted, None
        self._is_cut.set()
        return wanted

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Either side may go away at any time, and so does the other; asyncio reports a cancelled
        # handler as an error.
        with contextlib.suppress(OSError, asyncio.CancelledError):
            answers, requests = await asyncio.open_unix_connection(self._target)
            try:
                await _Connection(self, reader, requests, answers, writer).carry()
            finally:
                requests.close()
        writer.close()


class _Connection:
    """One connection: requests go from ``reader`` to ``requests``, answers from ``answers`` to
    ``writer``."""

    def __init__(
        self,
        cutter: CommitCutter,
        reader: asyncio.StreamReader,
        requests: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._cutter, self._reader, self._requests = cutter, reader, requests
        self._answers, self._writer = answers, writer
        self._is_muted = False

    async def carry(self) -> None:
        """Pass everything on until one side ends, or the cut."""
        ways = [
            asyncio.create_task(self._pass_requests()),
            asyncio.create_task(self._pass_answers()),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass_requests(self) -> None:
        transaction = b""
        while data := await self._reader.read(_PIECE):
            transaction += data
            place = None
            if _COMMIT in transaction:
                place, transaction = self._cutter.take_wish(transaction), b""
            if place == "before":
                return
            self._is_muted = place == "behind"
            self._requests.write(data)
            await self._requests.drain()

    async def _pass_answers(self) -> None:
        while data := await self._answers.read(_PIECE):
            if self._is_muted:  # the server has answered, so that the COMMIT has taken effect
                return
            self._writer.write(data)
            await self._writer.drain()

"""Who is asked for what in this process: the endpoints as they are now, and their clients."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.domain.endpoint import Endpoint
from agent.domain.model_roles import ModelRole
from agent.llm.endpoints.demo import DemoModel
from agent.llm.endpoints.endpoint_pool import EndpointNews, EndpointPool, ignore_news
from agent.llm.endpoints.endpoint_table import EndpointTable, endpoint_key
from agent.llm.endpoints.routing import RoutedEmbedder, RoutedModel, RoutedTranscriber
from agent.llm.requests.base import LLMClient
from agent.llm.spending.spend_gate import SpendGate

#: Lists of endpoints that are remembered until the next change.
MOST_LISTS = 1_000


class EndpointBook:
    """The endpoints of one process. Used on one event loop, but for :meth:`reload`.

    ``load`` reads the table from the database. Until it is called for the first time, ``table``
    counts, which is what the environment names.
    """

    def __init__(
        self,
        pool: EndpointPool,
        table: EndpointTable,
        load: Callable[[], EndpointTable],
        gate: SpendGate | None = None,
        tell: Callable[[EndpointNews], None] = ignore_news,
    ) -> None:
        self.pool = pool
        self.gate = gate
        """Asked before each call; None: calls cost nothing that counts."""
        self._load = load
        self._tell = tell
        self._demo = DemoModel()
        self._lists: dict[tuple[ModelRole, tuple[int, ...]], tuple[Endpoint, ...]] = {}
        self._table = table
        self._seen = table
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def table(self) -> EndpointTable:
        return self._table

    def start(self) -> None:
        """Have clients that nobody needs any more closed on the running loop, as soon as that is
        known."""
        self._loop = asyncio.get_running_loop()

    def reload(self) -> None:
        """Read the rows again; the next model call obeys them. Runs in the database thread. Raises
        what the database raises, and then everything stays as it was."""
        self._replace(self._load())

    def replace_defaults(self, defaults: Mapping[ModelRole, tuple[int, ...]]) -> None:
        """Have the default persona ask ``defaults`` from now on. Runs in the database thread."""
        self._replace(replace(self._table, defaults=defaults))

    def _replace(self, table: EndpointTable) -> None:
        self._table = table
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._obey)

    def endpoints(self, role: ModelRole, choice: Sequence[int] = ()) -> tuple[Endpoint, ...]:
        """The endpoints that are asked for ``role``, the first to ask first."""
        if self._table is not self._seen:
            self._obey()
        key = (role, tuple(choice))
        found = self._lists.get(key)
        if found is None:
            if len(self._lists) >= MOST_LISTS:
                self._lists.clear()
            found = self._lists[key] = self._seen.resolve(role, choice)
        return found

    def has(self, role: ModelRole) -> bool:
        """Whether anybody can be asked for ``role``; the demo model does not count."""
        return bool(self.endpoints(role))

    def model(self, role: ModelRole, choice: Sequence[int] = ()) -> RoutedModel:
        """What is asked for ``role``; ``choice`` are keys of rows in order, as a persona has them.

        It costs nothing, holds nothing, and goes with every change of the rows. Where nobody can be
        asked, the demo model answers chats; for other roles ask :meth:`has` first.
        """
        return RoutedModel(RoleRoute(self, role, tuple(choice)), self._demo)

    def name_model(self, role: ModelRole, choice: Sequence[int] = ()) -> str:
        """The model that is asked first for ``role``. May be called in any thread."""
        found = self._table.resolve(role, choice)
        return found[0].model if found else self._demo.name

    def find_model(self, role: ModelRole, choice: Sequence[int] = ()) -> LLMClient | None:
        """As :meth:`model`; None where nobody can be asked."""
        return self.model(role, choice) if self.endpoints(role, choice) else None

    def transcriber(self, choice: Sequence[int] = ()) -> RoutedTranscriber | None:
        """What turns voice into words at this moment; None where nothing can."""
        found = self.endpoints(ModelRole.TRANSCRIPTION, choice)
        route = RoleRoute(self, ModelRole.TRANSCRIPTION)
        return RoutedTranscriber(route, found) if found else None

    def embedder(self) -> RoutedEmbedder | None:
        """What compares meanings at this moment; None where nothing can."""
        found = self.endpoints(ModelRole.EMBEDDING)
        return RoutedEmbedder(RoleRoute(self, ModelRole.EMBEDDING), found) if found else None

    async def close(self) -> None:
        """Close all clients; calls under way fail."""
        self._loop = None
        await self.pool.close()

    def _obey(self) -> None:
        """On the loop: the table was replaced."""
        table = self._table
        if table is self._seen:
            return
        self._lists.clear()
        known, self._seen = self._seen.faults, table
        self.pool.keep_only(lambda one: table.find(endpoint_key(one)) == one)
        for pk, words in table.faults.items() - known.items():
            self._tell(EndpointNews(Endpoint("", pk=pk), error=words))


@dataclass(frozen=True, slots=True)
class RoleRoute:
    """The :class:`agent.llm.endpoints.routing.Route` of one role."""

    book: EndpointBook
    role: ModelRole
    choice: tuple[int, ...] = ()

    @property
    def pool(self) -> EndpointPool:
        return self.book.pool

    @property
    def gate(self) -> SpendGate | None:
        return self.book.gate

    def endpoints(self) -> tuple[Endpoint, ...]:
        return self.book.endpoints(self.role, self.choice)

    def find_row(self, pk: int) -> Endpoint | None:
        return self.book.table.rows.get(pk)

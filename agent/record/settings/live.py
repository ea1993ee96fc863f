"""Which changes of rows this process has seen: the one holder of their versions."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from django.db import DatabaseError, transaction

from agent.access.players import may_change_tools
from agent.domain.types import DEFAULT_ACCOUNT, AccountSettings, is_playground
from agent.record.settings.installation import obey
from agent.record.settings.snapshot import LOADERS, Loader, Settings
from tools.live_rows import LiveKind
from tools.local_time import set_clock

logger = logging.getLogger(__name__)
Subscriber = Callable[[Settings, Settings], None]


class LiveSettings:
    """The settings of this process. Of what any process changed only that is read again, in the
    transaction that meets the change; everybody else has it after the commit."""

    def __init__(self) -> None:
        self.current = Settings()
        """As they are committed. May be read in any thread."""
        self.seen = self.current
        """As the transaction under way sees them. For the database thread alone, as all methods
        are."""
        self._loaders = [*LOADERS]
        self._subscribers: list[tuple[Subscriber, tuple[str, ...]]] = []
        self._told = self.current
        self._players: dict[str, bool] = {}
        """Of playgrounds met in this transaction: whether their users may change tools."""
        self._count()  # other settings may have been those of another database

    def read_by(self, loader: Loader, *kinds: LiveKind) -> None:
        """``loader`` is called within the transaction that meets a change of ``kinds``."""
        self._loaders.append((loader, kinds))

    def subscribe(self, subscriber: Subscriber, *parts: str) -> None:
        """``subscriber`` is called with the old and the new settings after the commit that changes
        one of ``parts`` (fields of :class:`Settings`), so that it learns nothing of rows that never
        come to be. What it raises is logged, and it is called again."""
        self._subscribers.append((subscriber, parts))

    def see(self, versions: Mapping[int, int]) -> None:
        """See the rows as of ``versions``, for the current transaction and after its commit."""
        self._players.clear()
        if versions != self.seen.versions:
            self._read(versions)
        if self.seen is not self._told:
            transaction.on_commit(self._publish, robust=True)

    def forget(self) -> None:
        """What was committed counts again: a transaction was not. Subscribers were told nothing of
        it."""
        self.seen = self.current
        self._count()

    def find_account(self, account: str) -> AccountSettings:
        """The settings of an account, those of the first start where it has none; of a playground
        without the rights of its senders, whom its user makes up, unless the user may change
        tools, which is no setting and is asked in each transaction."""
        found = self.seen.accounts.get(account, DEFAULT_ACCOUNT)
        if not is_playground(account):
            return found
        if account not in self._players:
            self._players[account] = may_change_tools(account)
        return found if self._players[account] else found.without_rights()

    def _read(self, versions: Mapping[int, int]) -> None:
        """Read what is new. A part whose rows make no sense stays as it is, and is tried again: no
        message is lost because of them. The first time nothing could stay: the error is raised
        then."""
        new, failed = self._find_new(versions), set[int]()
        for load, kinds in self._loaders:
            try:
                self.seen = self.seen if new.isdisjoint(kinds) else load(self.seen)
            except DatabaseError:
                raise
            except Exception:
                if not self.seen.versions:  # an empty part would let everybody in
                    raise
                logger.exception("What was changed could not be read, and is not obeyed")
                failed.update(kinds)
        read = {kind: versions[kind] for kind in versions if kind not in failed}
        self.seen = replace(self.seen, versions=read)
        self._count()

    def _count(self) -> None:
        """Have the row of the installation count in the whole process, as it is seen."""
        set_clock(self.seen.clock)
        obey(self.seen.said)

    def _find_new(self, versions: Mapping[int, int]) -> set[LiveKind]:
        """The kinds of which something is new: all settings, where a change did not say of what."""
        known = self.seen.versions
        new = {kind for kind in LiveKind if versions[kind] != known.get(kind)}
        settings = {kind for kind in LiveKind if kind.is_set_by_operators}
        *of_kinds, in_all = (
            versions[kind] - known.get(kind, 0) for kind in sorted(settings, reverse=True)
        )
        return new | settings if in_all > sum(of_kinds) else new

    def _publish(self) -> None:
        old, new = self._told, self.seen
        self.current = new
        for subscriber, parts in self._subscribers:
            if any(getattr(old, part) is not getattr(new, part) for part in parts):
                subscriber(old, new)
        self._told = new

"""Which changes of rows this process has seen: the one holder of their versions."""

from collections.abc import Callable, Mapping

from django.db import transaction

from tools.live_rows import LiveKind

Follower = Callable[[], None]


class _Followers:
    """Who is called when rows of a kind are new, and the versions at which that was done last."""

    def __init__(self) -> None:
        self._followers: list[tuple[Follower, tuple[LiveKind, ...]]] = []
        self._known: Mapping[int, int] = {}

    def add(self, follower: Follower, *kinds: LiveKind) -> None:
        self._followers.append((follower, kinds))

    def has_news(self, versions: Mapping[int, int]) -> bool:
        return versions != self._known

    def call(self, versions: Mapping[int, int]) -> None:
        """Call each whose kinds are new, in order. After an error the next call tries all again."""
        if not self.has_news(versions):
            return
        new = self._find_new(versions)
        for follower, kinds in self._followers:
            if not new.isdisjoint(kinds):
                follower()
        self._known = dict(versions)

    def forget(self) -> None:
        self._known = {}

    def _find_new(self, versions: Mapping[int, int]) -> set[LiveKind]:
        """The kinds of which something is new: all settings, where a change did not say of what."""
        new = {kind for kind in LiveKind if versions[kind] != self._known.get(kind)}
        settings = {kind for kind in LiveKind if kind.is_set_by_operators}
        *of_kinds, in_all = (
            versions[kind] - self._known.get(kind, 0) for kind in sorted(settings, reverse=True)
        )
        return new | settings if in_all > sum(of_kinds) else new


class LiveSettings:
    """Has rows read again when they were changed by any process, and only those. Used by the
    database thread only."""

    def __init__(self) -> None:
        self._readers = _Followers()
        self._subscribers = _Followers()
        self._committing: Mapping[int, int] = {}

    def read_by(self, reader: Follower, *kinds: LiveKind) -> None:
        """``reader`` is called within the transaction that meets a change of ``kinds``."""
        self._readers.add(reader, *kinds)

    def subscribe(self, subscriber: Follower, *kinds: LiveKind) -> None:
        """``subscriber`` is called after the commit of that transaction, so that nothing is learnt
        of rows that never come to be. What it raises is logged, and it is called again."""
        self._subscribers.add(subscriber, *kinds)

    def see(self, versions: Mapping[int, int]) -> None:
        """See the rows as of ``versions``, for the current transaction and after its commit."""
        self._readers.call(versions)
        if self._subscribers.has_news(versions):
            self._committing = versions
            transaction.on_commit(self._publish, robust=True)

    def forget(self) -> None:
        """Trust nothing that was read: a transaction was not committed. Subscribers were told
        nothing of it."""
        self._readers.forget()

    def _publish(self) -> None:
        self._subscribers.call(self._committing)

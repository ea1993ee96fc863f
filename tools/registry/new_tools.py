"""Tools that were listed for the first time: each gets a row, for every kind of provider."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from tools.contract import ToolProvider, ToolSpec
from tools.registry.catalogue import ensure_tool_rows
from tools.registry.live_provider import DatabaseThread
from tools.registry.provider_set import Listed

MOST_KNOWN = 5_000
"""The most tools that are tracked; a provider that keeps inventing names gets no more rows."""


class NewToolTracker:
    """What was listed and is not on record as it is now. Used from one event loop."""

    def __init__(self) -> None:
        self._known: dict[str, ToolSpec] = {}
        self._fresh: dict[str, tuple[ToolProvider, ToolSpec]] = {}

    def see(self, pairs: Listed) -> None:
        """Take note of what is listed; the first of a name counts. No I/O."""
        firsts = {spec.name: (provider, spec) for provider, spec in reversed(pairs)}
        for name, (provider, spec) in firsts.items():
            if self._known.get(name) != spec and len(self._known) < MOST_KNOWN:
                self._fresh[name] = provider, spec

    async def put_down(self, desk: DatabaseThread, but: Collection[ToolProvider] = ()) -> None:
        """Make rows for what is new, or follow its declaration; without I/O where nothing is. The
        tools of the providers
        ``but``, which see to their rows themselves, are left out.

        Raises what the database raises, and then it is all still new.
        """
        fresh, specs = dict(self._fresh), []
        for provider, spec in fresh.values():
            if provider not in but:
                named = spec.provider_name or provider.provider_name
                specs.append(
                    replace(
                        spec,
                        provider_name=named,
                        provider_type=spec.provider_type or provider.provider_type,
                    )
                )
        if specs:
            await desk.submit_batched(_ensure, specs)
        for name, pair in fresh.items():
            self._known[name] = pair[1]
            if self._fresh.get(name) is pair:
                del self._fresh[name]


def _ensure(wishes: Sequence[Sequence[ToolSpec]]) -> list[int]:
    return [ensure_tool_rows(specs) for specs in wishes]

"""Providers in order, each listed for itself: what one of them does wrong costs its own tools
only."""

import asyncio
import logging

from tools.contract import TOOL_NAME, ToolAvailabilityContext, ToolProvider, ToolSpec
from tools.error_boundary import capture_error, contain, log_errors
from tools.registry.execution import check_declaration
from tools.time_limits import TIME_LIMITS

logger = logging.getLogger(__name__)

LIST_SECONDS = TIME_LIMITS.tool_listing
"""How long a provider may take to list its tools."""
CLOSE_SECONDS = TIME_LIMITS.provider_close
REST_SECONDS = 30
"""How long a provider that timed out is not asked again. Otherwise every message would wait for
it."""

MOST_SEEN = 4096
"""Specs that are remembered as usable."""
MOST_REPORTS = 1000
"""The most errors that are logged; a provider that keeps producing new ones is ignored after
that."""

Listed = list[tuple[ToolProvider, ToolSpec]]
ListingKey = tuple[tuple[ToolProvider, object], ...]
ChatKind = tuple[bool | None, bool] | None


class ProviderSet:
    """Used from one event loop. A provider is broken from a listing that failed to the next one
    that works."""

    def __init__(self) -> None:
        self._providers: dict[str, ToolProvider] = {}
        self._broken: set[str] = set()
        self._rests: dict[str, float] = {}
        self._last: dict[str, list[ToolSpec]] = {}
        self._lists: dict[ChatKind, tuple[ListingKey, Listed]] = {}
        """The newest listing for each kind of chat, for as long as its key is the same."""
        self._seen: dict[int, ToolSpec] = {}
        """Specs that were found usable, by their ids; a spec is not changed once it was listed."""
        self._reported: set[tuple[str, str]] = set()

    def put(self, provider: ToolProvider) -> None:
        """Add ``provider`` at the end, in the place of one of the same name."""
        self.drop(provider.provider_name)
        self._providers[provider.provider_name] = provider

    def drop(self, provider_name: str) -> None:
        """Take out the provider of that name, if there is one."""
        self._broken.discard(provider_name)
        self._rests.pop(provider_name, None)
        self._last.pop(provider_name, None)
        self._providers.pop(provider_name, None)

    def names(self) -> list[str]:
        return list(self._providers)

    async def listed(self, context: ToolAvailabilityContext | None) -> Listed:
        """The tools of all providers, duplicates included; none of a broken one, which is logged
        once. The same list, not to be changed, while no provider has anything new."""
        kind = None if context is None else (context.is_group_chat, context.is_owner)
        key, kept = self._listing_key(context), self._lists.get(kind)
        if key is not None and kept is not None and kept[0] == key:
            return kept[1]
        pairs: Listed = []
        for name, provider in list(self._providers.items()):
            pairs += [(provider, spec) for spec in await self._specs(name, provider, context)]
        if key is not None and not self._broken:
            self._lists[kind] = key, pairs
        return pairs

    def _listing_key(self, context: ToolAvailabilityContext | None) -> ListingKey | None:
        """What the next listing depends on; None when a provider has to be asked for it.

        A provider may have a method ``listing_key(context)``: as long as what it returns is equal,
        its :meth:`list_tools` offers the same, the same objects. It is called before each listing,
        so that a disabled tool is gone immediately. None means that the list must not be cached.
        """
        parts = []
        with capture_error() as attempt:
            for provider in self._providers.values():
                make = getattr(provider, "listing_key", None)
                if make is None or (part := make(context)) is None:
                    return None
                parts.append((provider, part))
        return tuple(parts) if attempt.error is None else None

    def is_down(self, tool_name: str, provider_name: str) -> bool:
        """Whether the tool is missing because its provider is broken: the one that offered it last,
        or that one by name."""
        return provider_name in self._broken or any(
            spec.name == tool_name for name in self._broken for spec in self._last.get(name, ())
        )

    def absence(self, tool_name: str) -> str:
        """The reason a provider gives for its tool being unavailable; "" when no provider knows the
        tool."""
        for name, provider in self._providers.items():
            if (explain := getattr(provider, "absence", None)) is None:
                continue
            with log_errors(
                logger, "tool provider %s cannot say why %s is missing", name, tool_name
            ):
                if told := str(explain(tool_name)):
                    return told
        return ""

    async def close(self) -> None:
        """Close every provider once; one that fails does not keep the others open."""
        for name in list(self._providers):
            provider = self._providers[name]
            self.drop(name)
            with log_errors(logger, "tool provider %s could not be closed", name):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await contain(provider.close())

    async def _specs(
        self, name: str, provider: ToolProvider, context: ToolAvailabilityContext | None
    ) -> list[ToolSpec]:
        loop = asyncio.get_running_loop()
        if self._rests.get(name, 0) > loop.time():
            return []
        limit = asyncio.timeout(LIST_SECONDS)
        with capture_error() as attempt:
            async with limit:
                listed, seen = await contain(provider.list_tools(context)), self._seen
            # One that no model endpoint takes would cost the model every tool.
            specs = [
                spec
                for spec in listed
                if seen.get(id(spec), seen) is spec or self._is_usable(name, spec)
            ]
            self._broken.discard(name)
            self._last[name] = specs
            return specs
        if limit.expired():
            self._rests[name] = loop.time() + REST_SECONDS
        if name not in self._broken:
            logger.error(
                "tool provider %s cannot list its tools; they are left out",
                name,
                exc_info=attempt.error,
            )
        self._broken.add(name)
        return []

    def _is_usable(self, provider_name: str, spec: object) -> bool:
        if not isinstance(spec, ToolSpec):
            return self._report(provider_name, f"a {type(spec).__name__} is no tool")
        if not (isinstance(spec.name, str) and TOOL_NAME.fullmatch(spec.name)):
            return self._report(provider_name, f"{spec.name!r:.100} is no name of a tool")
        if problem := check_declaration(spec):
            return self._report(provider_name, f"{spec.name}: {problem}")
        if len(self._seen) >= MOST_SEEN:  # a provider creates new specs for each listing
            self._seen.clear()
        self._seen[id(spec)] = spec
        return True

    def _report(self, provider_name: str, problem: str) -> bool:
        if (provider_name, problem) not in self._reported and len(self._reported) < MOST_REPORTS:
            self._reported.add((provider_name, problem))
            logger.warning("tool provider %s: %s; it is left out", provider_name, problem)
        return False

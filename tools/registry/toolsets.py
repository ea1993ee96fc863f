"""Providers made of other providers: filtered, prefixed, renamed, combined.

::

    registry.register_provider(PrefixedToolset(FilteredToolset(files, {"read", "list"}), "files"))

A toolset has the name of the provider it wraps. Only the toolset knows the outer name of a tool:
the inner provider gets its own names.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from tools.contract import (
    TOOL_NAME,
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolProvider,
    ToolSpec,
)
from tools.errors import InvalidDeclaration
from tools.registry import outcomes
from tools.registry.provider_set import ProviderSet

ToolPredicate = Callable[[ToolAvailabilityContext | None, ToolSpec], bool]


class Toolset(ABC):
    """A provider that shows the tools of another one under names of its own."""

    def __init__(self, provider: ToolProvider) -> None:
        self.provider = provider
        self.provider_name = provider.provider_name
        self.provider_type = provider.provider_type
        self._shown: dict[str, tuple[ToolSpec, ToolSpec]] = {}

    @abstractmethod
    def name_of(self, spec: ToolSpec, context: ToolAvailabilityContext | None) -> str | None:
        """What a tool of the inner provider is called here; None for one that is left out."""

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        specs = await self.provider.list_tools(context)
        return [
            self._as(name, spec)
            for spec in specs
            if (name := self.name_of(spec, context)) is not None
        ]

    async def invoke(
        self, invocation: ToolInvocation, context: ToolExecutionContext | None = None
    ) -> ToolExecutionResult:
        """Have the inner provider execute the call; a tool that is not shown here is not found."""
        chat = context.availability() if context else None
        for spec in await self.provider.list_tools(chat):
            if self.name_of(spec, chat) == invocation.tool_name:
                result = await self.provider.invoke(
                    replace(invocation, tool_name=spec.name), context
                )
                return replace(result, tool_name=invocation.tool_name)
        return outcomes.not_found_result(invocation.tool_name)

    async def close(self) -> None:
        await self.provider.close()

    def _as(self, name: str, spec: ToolSpec) -> ToolSpec:
        """``spec`` under ``name``, and the same object for as long as it is the same."""
        if name == spec.name:
            return spec
        inner, outer = self._shown.get(name, (None, spec))
        if inner is not spec:
            outer = replace(spec, name=name)
            self._shown[name] = (spec, outer)
        return outer


class FilteredToolset(Toolset):
    """Only the tools of these names, or those for which a function of the chat and the spec returns
    true."""

    def __init__(self, provider: ToolProvider, keep: Collection[str] | ToolPredicate) -> None:
        super().__init__(provider)
        self._keep: ToolPredicate = keep if callable(keep) else lambda _, spec: spec.name in keep

    def name_of(self, spec: ToolSpec, context: ToolAvailabilityContext | None) -> str | None:
        return spec.name if self._keep(context, spec) else None


class PrefixedToolset(Toolset):
    """Every tool as ``<prefix>_<name>``. Raises :class:`InvalidDeclaration` for a prefix that no
    name can begin with."""

    def __init__(self, provider: ToolProvider, prefix: str) -> None:
        super().__init__(provider)
        if not TOOL_NAME.fullmatch(f"{prefix}_"):
            raise InvalidDeclaration(f"{prefix!r} cannot begin the name of a tool")
        self.prefix = prefix

    def name_of(self, spec: ToolSpec, context: ToolAvailabilityContext | None) -> str | None:
        return f"{self.prefix}_{spec.name}"


class RenamedToolset(Toolset):
    """Tools under new names: ``{new: old}``; the others keep theirs.

    Raises :class:`InvalidDeclaration` for a name that no endpoint takes, and for one
    tool that is given two names.
    """

    def __init__(self, provider: ToolProvider, names: Mapping[str, str]) -> None:
        super().__init__(provider)
        for name in names:
            if not TOOL_NAME.fullmatch(name):
                raise InvalidDeclaration(f"{name!r} cannot be the name of a tool")
        self._new = {old: new for new, old in names.items()}
        if len(self._new) < len(names):
            raise InvalidDeclaration("a tool cannot have two names")

    def name_of(self, spec: ToolSpec, context: ToolAvailabilityContext | None) -> str | None:
        return self._new.get(spec.name, spec.name)


class CombinedToolset:
    """Several providers as one, in order; the first of two tools of one name wins, and a broken
    provider hides its own only.

    Raises :class:`InvalidDeclaration` for two providers of one name.
    """

    def __init__(
        self, provider_name: str, provider_type: str, providers: Iterable[ToolProvider]
    ) -> None:
        self.provider_name = provider_name
        self.provider_type = provider_type
        self._roster = ProviderSet()
        for provider in providers:
            if provider.provider_name in self._roster.names():
                raise InvalidDeclaration(f"duplicate provider: {provider.provider_name}")
            self._roster.put(provider)

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        return [spec for _, spec in await self._roster.listed(context)]

    async def invoke(
        self, invocation: ToolInvocation, context: ToolExecutionContext | None = None
    ) -> ToolExecutionResult:
        for provider, spec in await self._roster.listed(
            context.availability() if context else None
        ):
            if spec.name == invocation.tool_name and spec.enabled:
                return await provider.invoke(invocation, context)
        return outcomes.not_found_result(invocation.tool_name)

    async def close(self) -> None:
        await self._roster.close()

"""The registry: the one view of all tools, and the one place every call passes.

Names and rules are MaiBot's; what is added stands in the product's own contract:
arguments are checked, calls are limited in time, results in length, and the
operator's row decides over each tool.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tools import outcomes
from tools.arguments import check_arguments, parse_arguments
from tools.boundary import survive
from tools.catalogue import own_settings
from tools.configs import ToolSettings
from tools.contract import (
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolProvider,
    ToolSpec,
)
from tools.errors import InvalidArguments, ToolFailed
from tools.templates import render_mock

logger = logging.getLogger(__name__)

Settings = Mapping[str, ToolSettings]


class ToolRegistry:
    """Providers in order, seen as one set of tools. Used from one event loop.

    ``settings`` gives the rows as they are now, by tool name, without I/O; it is asked
    at each listing and each call.
    """

    def __init__(self, settings: Callable[[], Settings] = dict) -> None:
        self._settings = settings
        self._providers: dict[str, ToolProvider] = {}
        self._broken: set[str] = set()
        self._reported: set[tuple[str, str, str]] = set()
        self._described: dict[str, tuple[ToolSpec, ToolSpec]] = {}

    def register_provider(self, provider: ToolProvider) -> None:
        """Add ``provider`` at the end; one of the same name is dropped, and closing it is its owner's."""
        self.unregister_provider(provider.provider_name)
        self._providers[provider.provider_name] = provider

    def unregister_provider(self, provider_name: str) -> None:
        """Drop the provider of that name, if there is one."""
        self._providers.pop(provider_name, None)
        self._broken.discard(provider_name)

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        """Every enabled tool in provider order, as the operator describes it; the first of a name wins."""
        settings = self._settings()
        listed: dict[str, tuple[ToolProvider, ToolSpec]] = {}
        for provider, spec in await self._offers(settings, context):
            if spec.name in listed:
                self._report_duplicate(spec.name, listed[spec.name][0], provider)
            else:
                listed[spec.name] = (provider, self._with_description(spec, settings))
        return [spec for _, spec in listed.values()]

    async def get_tool_spec(self, name: str, context: ToolAvailabilityContext | None = None) -> ToolSpec | None:
        return next((spec for spec in await self.list_tools(context) if spec.name == name), None)

    async def has_tool(self, name: str, context: ToolAvailabilityContext | None = None) -> bool:
        return await self.get_tool_spec(name, context) is not None

    async def get_llm_definitions(self, context: ToolAvailabilityContext | None = None) -> list[dict[str, Any]]:
        """What the model is told of each listed tool; the caller may change it."""
        return [spec.llm_definition() for spec in await self.list_tools(context)]

    async def invoke(self, invocation: ToolInvocation, context: ToolExecutionContext | None = None) -> ToolExecutionResult:
        """Execute one call; every way it can go wrong is a failed result, never an exception.

        ``invocation.arguments`` may also be the model's JSON text. When cancelled, the
        tool was cancelled with it; a synchronous one may still be running.
        """
        settings = self._settings()
        offers = await self._offers(settings, context.availability() if context else None)
        offer = next((offer for offer in offers if offer[1].name == invocation.tool_name), None)
        if offer is None:
            return outcomes.not_found(invocation.tool_name)
        provider, spec = offer
        row = settings.get(spec.name) or own_settings(spec)
        result = await _passed(provider, spec, row, invocation, context)
        return replace(result, metadata={**result.metadata, "provider_name": provider.provider_name})

    async def close(self) -> None:
        """Close every provider once; one that fails does not keep the others open."""
        for name in list(self._providers):
            provider = self._providers.pop(name)
            with survive(logger, "tool provider %s could not be closed", name):
                await provider.close()

    async def _offers(self, settings: Settings, context: ToolAvailabilityContext | None) -> list[tuple[ToolProvider, ToolSpec]]:
        """Enabled tools of all providers, duplicates included."""
        offers = []
        for provider in list(self._providers.values()):
            for spec in await self._listed(provider, context):
                row = settings.get(spec.name)
                if spec.enabled and (row is None or row.enabled):
                    offers.append((provider, spec))
        return offers

    async def _listed(self, provider: ToolProvider, context: ToolAvailabilityContext | None) -> list[ToolSpec]:
        """The provider's tools; none while it is broken, which is logged once."""
        name = provider.provider_name
        try:
            specs = list(await provider.list_tools(context))
        except Exception:
            if name not in self._broken:
                logger.exception("tool provider %s cannot list its tools; they are left out", name)
            self._broken.add(name)
            return []
        self._broken.discard(name)
        return specs

    def _report_duplicate(self, name: str, kept: ToolProvider, skipped: ToolProvider) -> None:
        report = (name, kept.provider_name, skipped.provider_name)
        if report not in self._reported:
            self._reported.add(report)
            logger.warning("tool %s of provider %s is skipped: %s offers one of that name", name, report[2], report[1])

    def _with_description(self, spec: ToolSpec, settings: Settings) -> ToolSpec:
        """``spec`` with the row's description. Copies are kept: making one takes longer than listing ten tools."""
        row = settings.get(spec.name)
        if row is None or not row.description.strip():
            return spec
        original, described = self._described.get(spec.name, (None, spec))
        if original is not spec or described.description != row.description.strip():
            described = replace(spec, description=row.description)
            self._described[spec.name] = (spec, described)
        return described


async def _passed(
    provider: ToolProvider,
    spec: ToolSpec,
    settings: ToolSettings,
    invocation: ToolInvocation,
    context: ToolExecutionContext | None,
) -> ToolExecutionResult:
    """The call through every gate: arguments, mock, time limit."""
    try:
        arguments = check_arguments(spec.parameters_schema, parse_arguments(invocation.arguments))
    except InvalidArguments as error:
        return outcomes.invalid(spec.name, error)
    except ToolFailed as error:
        logger.exception("the parameters schema of tool %s cannot be used", spec.name)
        return outcomes.raised(spec.name, error)
    if settings.mock_enabled:
        return outcomes.mocked(spec.name, render_mock(settings.mock_value, arguments))
    return await _executed(provider, replace(invocation, arguments=arguments), context, settings.timeout_seconds)


async def _executed(
    provider: ToolProvider, invocation: ToolInvocation, context: ToolExecutionContext | None, seconds: float
) -> ToolExecutionResult:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            result = await provider.invoke(invocation, context)
        if not isinstance(result, ToolExecutionResult):
            raise TypeError(f"{provider.provider_name} returned {type(result).__name__} and no result")
        return outcomes.clipped(outcomes.worded(result))
    except InvalidArguments as error:
        return outcomes.invalid(invocation.tool_name, error)
    except ToolFailed as error:
        return outcomes.raised(invocation.tool_name, error)
    except Exception as error:
        if limit.expired():
            logger.warning("tool %s was stopped after %g s", invocation.tool_name, seconds)
            return outcomes.timed_out(invocation.tool_name, seconds)
        logger.exception("tool %s raised", invocation.tool_name)
        return outcomes.raised(invocation.tool_name, error)

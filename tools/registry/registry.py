"""The registry: the one view of all tools, and the one place every call passes.

Names and rules are MaiBot's. Added by this project: the operator's row controls each tool,
arguments are checked, calls are limited in time and number, results in length.

The definitions of the offered tools as the model gets them, cached between messages.
"""

import copy
import logging
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from tools import refusals
from tools.contract import (
    ApprovalNeeded,
    CallRefused,
    InvalidArguments,
    RecordedCall,
    ToolAvailabilityContext,
    ToolError,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolProvider,
    ToolSpec,
)
from tools.models.tool_config import ApprovalMode
from tools.refusals import CallVerdict, RefusalReason, ToolRefusal
from tools.registry import catalogue
from tools.registry.catalogue import DatabaseThread, declared_settings, ensure_tool_rows
from tools.registry.execution import (
    AfterHook,
    BeforeHook,
    ExecutionRequest,
    Hooks,
    add_own_messages,
    execute_call,
    hooks_of,
    look_ahead,
    refuse_undo,
    requires_approval,
    run_after_hooks,
    run_undo,
    undo_by_tool,
)
from tools.registry.offers import (
    OfferedTools,
    ResolvedTool,
    SplitTools,
    ToolResolver,
    split_deferred,
)
from tools.registry.policy import check_approval, check_availability, decide_call, reachable_chats
from tools.registry.provider_set import Listed, ProviderSet
from tools.registry.settings import ToolSettings
from tools.schemas.arguments import check_arguments, parse_arguments
from tools.token_bucket import TokenBuckets

MOST_KEPT = 4096
"""The most definitions in the cache; a provider that creates new specs for each listing fills
it."""


class DefinitionCache:
    """One definition for each spec, the same object for as long as the spec is: copying fifty takes
    a quarter of a millisecond.

    They are shared and never changed. A client that gets the same object again need not encode it
    again.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[ToolSpec, dict[str, Any]]] = {}
        """By the ids of the specs, which are kept too, so that no other takes over an id."""

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, specs: Sequence[ToolSpec]) -> list[dict[str, Any]]:
        """The definition of each spec, in their order."""
        kept = self._kept
        return [known[1] if (known := kept.get(id(spec))) else self._made(spec) for spec in specs]

    def _made(self, spec: ToolSpec) -> dict[str, Any]:
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        definition = spec.llm_definition()
        self._kept[id(spec)] = (spec, definition)
        return definition


def sort_for_model(specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """The specs that are meant for the model, the highest priority first, and otherwise in their
    order."""
    if all(spec.annotation is None for spec in specs):
        return list(specs)
    return sorted((spec for spec in specs if spec.is_for_model), key=lambda spec: -spec.priority)


logger = logging.getLogger(__name__)


# Tools that were listed for the first time: each gets a row, for every kind of provider.

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
            await desk.submit(ensure_tool_rows, specs)
        for name, pair in fresh.items():
            self._known[name] = pair[1]
            if self._fresh.get(name) is pair:
                del self._fresh[name]


SettingsByName = Mapping[str, ToolSettings]
SpecFilter = Callable[[ToolSpec], bool]
HOOK_SECONDS = 60
"""How long a hook may take over a call of a tool that there is not."""


class ToolView(NamedTuple):
    """What was computed from a listing and the rows for one kind of chat. Going through 200 tools
    for every message is expensive."""

    pairs: Listed
    settings: SettingsByName
    offers: list[ResolvedTool]
    shelves: SplitTools


DayLimit = Callable[[ToolInvocation, int, bool], Awaitable[ToolRefusal | None]]
"""Why a call may not be made any more today, where a chat has had so many; the last says that it
begins now, and is counted, in the database, so that it counts over kills."""


class ToolRegistry:
    """Providers in order, seen as one set of tools. Used from one event loop.

    ``settings`` gives the rows as they are now, by tool name, without I/O; it is called at each
    listing and each call. ``clock`` counts monotonic seconds, for the rates. Tools from outside are
    deferred once there are more than ``defer_above`` in a view.
    """

    def __init__(
        self,
        settings: Callable[[], SettingsByName] = dict,
        *,
        clock: Callable[[], float] = time.monotonic,
        defer_above: float = math.inf,
    ) -> None:
        self._settings = settings
        self._defer_above = defer_above
        self._roster = ProviderSet()
        self._offers = ToolResolver()
        self._views: dict[tuple[bool | None, bool] | None, ToolView] = {}
        self._definitions = DefinitionCache()
        self._rates = TokenBuckets(clock=clock)
        self._hooks = Hooks()
        self._reported: set[tuple[str, str, str]] = set()
        self._keep: SpecFilter | None = None
        self.day_limit: DayLimit | None = None
        self.newcomers = NewToolTracker()
        """Listed tools without a row yet; the server process stores them."""

    def register_provider(self, provider: ToolProvider) -> None:
        """Add ``provider`` at the end; one of the same name is dropped, and closing it is its
        owner's."""
        self._roster.put(provider)

    def unregister_provider(self, provider_name: str) -> None:
        """Drop the provider of that name, if there is one."""
        self._roster.drop(provider_name)

    def add_hooks(
        self,
        before: BeforeHook | None = None,
        after: AfterHook | None = None,
        on_error: AfterHook | None = None,
    ) -> None:
        """Have these asked about every call, after those that were added before them (see
        :class:`tools.registry.execution.Hooks`)."""
        added = Hooks(
            (before,) if before else (), (after,) if after else (), (on_error,) if on_error else ()
        )
        self._hooks += added

    def narrowed(self, keep: SpecFilter) -> "ToolRegistry":
        """This registry with only the tools for which ``keep`` returns true; the others are not
        found.

        It shares everything else: rows, rates, hooks and providers. Closing either one closes the
        providers.
        """
        view, wider = copy.copy(self), self._keep
        view._views = {}
        view._keep = keep if wider is None else lambda spec: wider(spec) and keep(spec)
        return view

    def under(self, settings: Callable[[], SettingsByName]) -> "ToolRegistry":
        """This registry with other rows, for a user who may review every tool, so that none counts
        as new.

        It shares everything else, as in :meth:`narrowed`.
        """
        view = copy.copy(self)
        view._settings = settings
        view._offers, view._views = ToolResolver(trusting=True), {}
        return view

    def on_trial(self, stand_in: BeforeHook) -> "ToolRegistry":
        """This registry for runs that change nothing: ``stand_in`` is asked first about every call
        that may be made, and no rate counts it. All else is shared, as in :meth:`narrowed`."""
        view = copy.copy(self)
        view._hooks = Hooks((stand_in,)) + self._hooks
        view._rates, view.day_limit = TokenBuckets(), None
        return view

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        """Every tool in the view of ``context`` in provider order, as the operator describes it;
        the first of a name wins."""
        return [offer.spec for offer in (await self._view(context)).offers]

    async def get_tool_spec(
        self, name: str, context: ToolAvailabilityContext | None = None
    ) -> ToolSpec | None:
        return next((spec for spec in await self.list_tools(context) if spec.name == name), None)

    async def find_settings(self, name: str) -> ToolSettings:
        """The row of a tool; what it declares where there is none."""
        listed = await self._listed(None)
        declared = (declared_settings(spec) for _, spec in listed if spec.name == name)
        return self._settings().get(name) or next(declared, ToolSettings(name))

    async def has_tool(self, name: str, context: ToolAvailabilityContext | None = None) -> bool:
        return await self.get_tool_spec(name, context) is not None

    async def get_llm_definitions(
        self, context: ToolAvailabilityContext | None = None
    ) -> list[dict[str, Any]]:
        """The definitions of the tools that the model may see, by priority; the caller may change
        the list."""
        return copy.deepcopy((await self.offering(context)).definitions)

    async def offering(
        self, context: ToolAvailabilityContext | None = None, discovered: Sequence[str] = ()
    ) -> OfferedTools:
        """What a model is offered that has found the tools ``discovered``: these come last, in that
        order.

        Nothing is deferred in a view without the tool that finds tools, and that tool is
        not offered where there is nothing to find.
        """
        shelves = (await self._view(context)).shelves
        told = sort_for_model(shelves.shown)
        if discovered:
            told = [*told, *shelves.found(discovered)]
        return OfferedTools(self._definitions.of(told), shelves.deferred, shelves.named)

    async def invoke(
        self,
        invocation: ToolInvocation,
        context: ToolExecutionContext | None = None,
        *,
        approved: bool = False,
    ) -> ToolExecutionResult:
        """Execute one call; every error is a failed result, never an exception.

        ``invocation.arguments`` may also be the model's JSON text. A call that is not made has the
        reason (a :class:`tools.refusals.RefusalReason`) in the result's ``metadata["refusal"]``.
        ``needs_approval`` is one of them: the checked arguments are in ``metadata["arguments"]``,
        and the call is made when it comes again with ``approved``, which only the caller may set.
        An approved call is checked again in everything but the rates, which counted the first
        request.

        When cancelled, the tool was cancelled too; a synchronous tool may still be running.
        """
        name = invocation.tool_name
        offer = await self._offer(name, context)
        if isinstance(offer, ToolRefusal):
            call = ExecutionRequest(
                ToolSpec(name=name), invocation, context, self._hooks, HOOK_SECONDS
            )
            specs = await self.list_tools(context.availability() if context else None)
            near = refusals.find_near_names(name, [spec.name for spec in sort_for_model(specs)])
            result = catalogue.refused_result(name, offer, near)
            row = self._settings().get(name)
            return _decided(await run_after_hooks(call, result), offer.reason, row)
        if context is not None and offer.settings.other_chats:
            context = replace(context, other_chats=reachable_chats(offer.settings, context))
        call = ExecutionRequest(
            offer.spec,
            invocation,
            context,
            self._hooks + hooks_of(offer.declared),
            offer.settings.timeout_seconds,
        )
        must_ask = False
        try:
            arguments = self._admitted(offer, invocation, context, self._rates, approved=approved)
        except ApprovalNeeded as needed:
            arguments, must_ask = needed.arguments, True
        except ToolError as error:
            result, verdict = _denied(offer, error), str(CallVerdict.INVALID)
            if isinstance(error, CallRefused):
                verdict = error.refusal.reason
            return _from(offer, await run_after_hooks(call, result), verdict)
        call = replace(call, invocation=replace(invocation, arguments=arguments))
        return await self._proceed(offer, call, must_ask=must_ask, approved=approved)

    async def _proceed(
        self, offer: ResolvedTool, call: ExecutionRequest, *, must_ask: bool, approved: bool
    ) -> ToolExecutionResult:
        """The result of an admitted call: it is asked about first, or made, unless what the tool
        finds before it, or the day's limit, is against it."""
        name, invocation = call.spec.name, call.invocation
        basis = await look_ahead(call)
        if isinstance(basis, ToolExecutionResult):
            verdict = basis.metadata.get("refusal", CallVerdict.NOT_MADE)
            return _from(offer, await run_after_hooks(call, basis), verdict)
        asks = basis.asks and offer.settings.requires_approval != ApprovalMode.NEVER
        is_question = must_ask or (asks and not approved)
        refusal = check_approval(name, call.context) if is_question else None
        limit = offer.settings.calls_per_day_chat
        if refusal is None and limit is not None and self.day_limit is not None:
            refusal = await self.day_limit(invocation, limit, not is_question)
        if refusal is not None:
            result = catalogue.refused_result(name, refusal)
            return _from(offer, await run_after_hooks(call, result), refusal.reason)
        if is_question:  # the call has not started, so no hook is called
            result = catalogue.unapproved_result(name, invocation.arguments, basis)
            return _from(offer, result, RefusalReason.NEEDS_APPROVAL)
        result = await execute_call(call, offer.provider, offer.settings)
        verdict = _allowance(result, approved=approved)
        return _from(offer, await run_after_hooks(call, result), verdict)

    async def needs_approval(
        self, invocation: ToolInvocation, context: ToolExecutionContext | None = None
    ) -> bool:
        """Whether the call is valid except for an owner's approval. Rates are neither checked nor
        counted."""
        offer = await self._offer(invocation.tool_name, context)
        if isinstance(offer, ToolRefusal):
            return False
        try:
            self._admitted(offer, invocation, context, TokenBuckets(), approved=False)
        except ApprovalNeeded:
            return True
        except ToolError:
            return False
        return False

    async def undoable(self) -> frozenset[str]:
        """The tools that declare what takes their calls back, and those that ask first: of these
        it is said that nothing does."""
        listed = await self._listed(None)
        keys = ("undo", "requires_approval")
        return frozenset(spec.name for _, spec in listed if any(map(spec.metadata.get, keys)))

    async def undo(self, call: RecordedCall, context: ToolExecutionContext) -> str:
        """Have ``call`` taken back by what its tool declares for that, whatever its row says now;
        what there is to say about it.

        Raises :class:`ToolFailed` where it was not, :class:`OutcomeUnknown` where nobody can tell.
        """
        listed = await self._listed(None)
        found = [pair for pair in listed if pair[1].name == call.tool_name]
        undo = found[0][1].metadata.get("undo") if found else None
        if isinstance(undo, str):
            provider, spec = found[0]
            own = (one.name for _, one in listed if one.provider_name == spec.provider_name)
            undo = partial(undo_by_tool, provider, undo) if undo in own else None
        return await run_undo(undo or refuse_undo, call, context)

    async def close(self) -> None:
        """Close every provider once; one that fails does not keep the others open."""
        await self._roster.close()

    def _admitted(
        self,
        offer: ResolvedTool,
        invocation: ToolInvocation,
        context: ToolExecutionContext | None,
        rates: TokenBuckets,
        *,
        approved: bool,
    ) -> dict[str, Any]:
        """The checked arguments of a call that may be made, which is counted. Raises a
        :class:`ToolError` otherwise."""
        rates = TokenBuckets() if approved else rates
        verdict = decide_call(offer.declared, offer.settings, context, rates)
        if isinstance(verdict, ToolRefusal):
            raise CallRefused(verdict)
        given = parse_arguments(invocation.arguments)
        try:
            arguments = check_arguments(offer.declared.parameters_schema, given)
        except InvalidArguments as error:
            raise add_own_messages(error, offer.declared, context) from error
        rates.take(*verdict.quotas)
        if not approved and requires_approval(offer.declared, offer.settings, arguments):
            if refusal := check_approval(offer.declared.name, context):
                raise CallRefused(refusal)
            raise ApprovalNeeded(arguments)
        return arguments

    def defer(self, above: float) -> None:
        """Have tools deferred once there are more than ``above``."""
        self._defer_above = above
        self._views.clear()

    async def _view(self, context: ToolAvailabilityContext | None) -> ToolView:
        pairs, settings = await self._roster.listed(context), self._settings()
        kind = None if context is None else (context.is_group_chat, context.is_owner)
        view = self._views.get(kind)
        if (
            view is None
            or view.settings is not settings
            or (view.pairs is not pairs and view.pairs != pairs)
        ):
            self.newcomers.see(pairs)
            offers = self._offers_of(pairs, settings, context)
            view = self._views[kind] = ToolView(
                pairs, settings, offers, split_deferred(offers, self._defer_above)
            )
        return view

    def _offers_of(
        self, pairs: Listed, settings: SettingsByName, context: ToolAvailabilityContext | None
    ) -> list[ResolvedTool]:
        listed: dict[str, ResolvedTool] = {}
        for provider, declared in self._kept(pairs):
            offer = self._offers.of(provider, declared, settings.get(declared.name))
            if check_availability(declared, offer.settings, context) is not None:
                continue
            first = listed.setdefault(declared.name, offer)
            if first is not offer:
                self._report_duplicate(declared.name, first.provider, provider)
        knows_all = context is None or context.is_owner
        return [offer for offer in listed.values() if knows_all or not offer.is_unlooked]

    async def _listed(self, context: ToolAvailabilityContext | None) -> Listed:
        return self._kept(await self._roster.listed(context))

    def _kept(self, pairs: Listed) -> Listed:
        return pairs if self._keep is None else [pair for pair in pairs if self._keep(pair[1])]

    async def _offer(
        self, name: str, context: ToolExecutionContext | None
    ) -> ResolvedTool | ToolRefusal:
        """The tool that is called ``name`` in the view of ``context``, or why there is none."""
        row = self._settings().get(name)
        chat = context.availability() if context else None
        found: ToolRefusal | None = None
        for provider, declared in await self._listed(chat):
            if declared.name == name:
                offer = self._offers.of(provider, declared, row)
                refusal = check_availability(declared, offer.settings, chat)
                if refusal is None:
                    return offer
                found = found or refusal
        return found or await self._absence(name, row, chat)

    async def _absence(
        self, name: str, row: ToolSettings | None, chat: ToolAvailabilityContext | None
    ) -> ToolRefusal:
        """Why no provider has a tool called ``name`` here."""
        if chat is not None and any(spec.name == name for _, spec in await self._listed(None)):
            return refusals.NOT_HERE
        if told := self._roster.absence(name):
            return ToolRefusal(refusals.RefusalReason.SERVER_DOWN, told)
        if self._roster.is_down(name, row.provider_name if row else ""):
            return refusals.SERVER_DOWN
        return refusals.UNKNOWN

    def _report_duplicate(self, name: str, kept: ToolProvider, skipped: ToolProvider) -> None:
        report = (name, kept.provider_name, skipped.provider_name)
        if report not in self._reported:
            self._reported.add(report)
            logger.warning(
                "tool %s of provider %s is skipped: %s offers one of that name",
                name,
                report[2],
                report[1],
            )


def _denied(offer: ResolvedTool, error: ToolError) -> ToolExecutionResult:
    """The result of a call that was not begun."""
    name = offer.spec.name
    match error:
        case CallRefused():
            return catalogue.refused_result(name, error.refusal)
        case InvalidArguments():
            return catalogue.invalid_arguments_result(name, error)
        case _:
            logger.error("the parameters schema of tool %s cannot be used", name, exc_info=error)
            return catalogue.raised_result(name, error)


def _allowance(result: ToolExecutionResult, *, approved: bool) -> str:
    """What was decided of a call that was made."""
    if result.metadata.get("mock"):
        return CallVerdict.MOCKED
    if result.metadata.get("stood_in"):
        return CallVerdict.STOOD_IN
    return CallVerdict.APPROVED if approved else CallVerdict.ALLOWED


def _decided(
    result: ToolExecutionResult, verdict: str, row: ToolSettings | None, **metadata: object
) -> ToolExecutionResult:
    """``result`` with what was decided of its call, and by whose row."""
    metadata |= {"verdict": str(verdict), "decided_by": row.label if row else ""}
    return replace(result, metadata={**result.metadata, **metadata})


def _from(offer: ResolvedTool, result: ToolExecutionResult, verdict: str) -> ToolExecutionResult:
    long = {"is_long_running": True} if offer.declared.is_long_running else {}
    provider_name = offer.provider.provider_name
    return _decided(result, verdict, offer.settings, provider_name=provider_name, **long)

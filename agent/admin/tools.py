"""The page of a tool with what only the agent knows: how it was used, and what it does when it is
run by hand."""

import math
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from asgiref.sync import async_to_sync
from django.contrib import admin
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from agent.models import ToolCall, ToolUse
from agent.record.runs import steps, test_runs
from agent.record.settings.endpoints import load_endpoint_table
from agent.record.settings.personas import load_persona_table
from agent.record.settings.snapshot import Settings
from agent.run.tool_results import PROVIDER_NAME, call_outcome, result_text
from agent.runtime import serving, wiring
from tools.admin import ToolConfigAdmin
from tools.admin.declared import ArgumentForm
from tools.contract import (
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    is_picture,
)
from tools.local_time import current_day
from tools.models import ToolConfig
from tools.models.tool_config import AllowedCallers, ToolScope, ToolVisibility
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings, load_tool_settings
from tools.text.readable import drop_surrogates, format_readable, shorten_text
from tools.text.storable import make_storable

CALL_ID = "trial"
T = TypeVar("T")


def explain_obstacle(config: ToolConfig) -> str:
    """Why the tool cannot be run by hand, as a translated sentence; "" where it can."""
    if not config.enabled:
        return gettext("The tool is disabled: enable it to run it.")
    anywhere, without_chat = with_registry(lambda registry: _listed(registry, config.name))
    if not anywhere:
        return gettext("Nobody provides this tool at present.")
    return (
        ""
        if without_chat
        else gettext("This tool acts in a chat, and there is none here. Ask the bot to use it.")
    )


def run_trial(config: ToolConfig, arguments: Any, by: str) -> tuple[ToolExecutionResult, int]:
    """Call the tool, without a chat, its state and a sender; every error becomes a failed result.
    What it came to, and all the time that it took, in ms.

    A user who may change the row may also approve: the call does not wait for an owner. It is on
    record as a test of the user ``by``.
    """
    started_at = timezone.now()
    invocation = ToolInvocation(config.name, arguments, call_id=CALL_ID)
    context = ToolExecutionContext(metadata={"state": {}})
    begin = time.monotonic()
    result = with_registry(lambda registry: registry.invoke(invocation, context, approved=True))
    took = round((time.monotonic() - begin) * 1000)
    call = steps.NewCall(CALL_ID, config.name, make_storable(arguments), "")
    text = result_text(CALL_ID, result, can_see=False)
    decided = replace(result, metadata={**result.metadata, "decided_by": by})
    test_runs.record_test_run(
        [steps.NewStep(0, 1, [], [], None, calls=(call,))],
        [call_outcome(0, decided, text, took)],
        by=by,
        started_at=started_at,
    )
    return result, took


async def _listed(registry: ToolRegistry, name: str) -> tuple[bool, bool]:
    return await registry.has_tool(name), await registry.has_tool(name, ToolAvailabilityContext())


def with_registry(work: Callable[[ToolRegistry], Coroutine[Any, Any, T]]) -> T:
    """What ``work`` comes to with the registry that serves, on its own loop; where none does, with
    one made for it. The rows count as they are now, without what they say of chats and senders: an
    operator is neither. Whether a tool is enabled, its mock and its time limit count as for every
    call."""
    everyone: dict[str, Any] = {
        "visibility": ToolVisibility.VISIBLE.value,
        "scope": ToolScope.ALL.value,
        "allowed": AllowedCallers.EVERYONE.value,
    }
    rows = {name: replace(row, **everyone) for name, row in load_tool_settings().items()}
    if serving_now := serving.get_serving():
        return serving_now.run(lambda registry: work(registry.under(lambda: rows)))
    return run_with_own_registry(rows, work)


def run_with_own_registry(
    rows: Mapping[str, ToolSettings], work: Callable[[ToolRegistry], Coroutine[Any, Any, T]]
) -> T:
    """What ``work`` comes to with a registry that is made for it, of the tools that need no
    server."""
    book = wiring.build_endpoint_book(table=load_endpoint_table())
    settings = Settings(tools=rows, personas=load_persona_table())

    async def worked() -> T:
        registry = wiring.build_tool_registry(lambda: settings, book=book)
        try:
            return await work(registry)
        finally:
            await registry.close()
            await book.close()

    return async_to_sync(worked)()


admin.site.unregister(ToolConfig)


@admin.register(ToolConfig)
class ToolPageAdmin(ToolConfigAdmin):
    row_pages = ("trial",)

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        super().prepare_rows(request, rows)
        sees = request.user.has_perm("agent.view_toolcall")
        today = ToolUse.objects.filter(day=current_day()).order_by().values_list("tool")
        sums = today.annotate(Sum("calls"), Sum("failures")) if sees else ()
        uses = {tool: (calls, failures) for tool, calls, failures in sums}
        for row in rows:
            row.sees_use, (row.calls, row.failures) = sees, uses.get(row.name, (0, 0))

    def page_context(self, request: HttpRequest, config: ToolConfig) -> dict[str, Any]:
        page = super().page_context(request, config)
        if request.user.has_perm("agent.view_toolcall"):
            page["use"] = load_tool_use(config.name)
            page["calls_url"] = reverse(
                "admin:agent_toolcall_changelist", query={"tool": config.name}
            )
        if self.has_change_permission(request, config):
            if config.provider_name == PROVIDER_NAME:  # among them are those that act in a chat
                page["trial_obstacle"] = explain_obstacle(config)
            page["trial_url"] = reverse("admin:tools_toolconfig_trial", args=(config.pk,))
        return page

    def trial_view(self, request: HttpRequest, config: ToolConfig) -> HttpResponse:
        """The form for the tool's arguments and, once it is sent, what the call came to."""
        form = ArgumentForm(
            config.declaration.get("parameters_schema"),
            request.POST if request.method == "POST" else None,
        )
        page: dict[str, Any] = {"form": form, "obstacle": explain_obstacle(config)}
        if not page["obstacle"] and form.is_valid():
            arguments = form.arguments()
            result, took = run_trial(config, arguments, request.user.get_username())
            page |= trial_context(arguments, result) | {"duration_ms": took}
            self.log_change(request, config, gettext("Test run: %(outcome)s.") % page)
        return self.show_page(request, "trial", gettext("Test run"), config, **page)


def trial_context(arguments: object, result: ToolExecutionResult) -> dict[str, Any]:
    """A call and its result as a page shows them, for results of any form."""
    text = result.get_history_content() if result.success else result.content
    return {
        "result": result,
        "outcome": gettext("succeeded") if result.success else gettext("failed"),
        "request_json": format_readable(arguments),
        "text": drop_surrogates(shorten_text(text)),
        "error": drop_surrogates(shorten_text(result.error_message)),
        "detail": drop_surrogates(shorten_text(str(result.metadata.get("error_detail") or ""))),
        "structured_json": ""
        if result.structured_content is None
        else format_readable(result.structured_content),
        "pictures": [
            f"data:{item.mime_type};base64,{item.data}"
            for item in result.content_items
            if is_picture(item)
        ],
    }


# How a tool was used lately: counted over its newest calls, however many there are.

#: Newest calls of a tool that are read.
CALL_LIMIT = 1_000
PERIOD = timedelta(days=7)


def load_tool_use(tool_name: str) -> dict[str, Any]:
    """Calls within :data:`PERIOD`; the durations in ms ``p50`` and ``p95`` are those of calls that
    reached the tool, None without any. One query of :data:`CALL_LIMIT` rows at most; the period is
    cut here, so that no old row is walked over for it."""
    newest = ToolCall.objects.filter(tool_name=tool_name).order_by("-pk")
    rows = list(newest.values_list("created_at", "state", "mocked", "duration_ms")[:CALL_LIMIT])
    begin = timezone.now() - PERIOD
    recent = [(state, mocked, duration) for at, state, mocked, duration in rows if at >= begin]
    durations = sorted(
        duration for _, mocked, duration in recent if duration is not None and not mocked
    )
    return {
        "calls": len(recent),
        "failures": sum(state == ToolCall.State.FAILED for state, _, _ in recent),
        "mocked": sum(mocked for _, mocked, _ in recent),
        "p50": percentile(durations, 50),
        "p95": percentile(durations, 95),
        "is_capped": len(recent) == CALL_LIMIT,
        "limit": CALL_LIMIT,
    }


def percentile(ordered: list[int], percent: int) -> int | None:
    """The smallest value that ``percent`` % of the ``ordered`` ones do not exceed (nearest rank);
    None of nothing."""
    return ordered[math.ceil(len(ordered) * percent / 100) - 1] if ordered else None

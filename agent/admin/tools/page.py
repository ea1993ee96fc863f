"""The page of a tool with what only the agent knows: how it was used, and what it does when it is
run."""

import math
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from agent.admin.tools.trial import ToolTrial, explain_obstacle, run_trial
from agent.models import ToolCall
from agent.run.tool_results import PROVIDER_NAME
from tools.admin import ToolConfigAdmin
from tools.admin.argument_form import ArgumentForm
from tools.contract import is_picture
from tools.models import ToolConfig
from tools.text.readable import drop_surrogates, format_readable, shorten_text

admin.site.unregister(ToolConfig)


@admin.register(ToolConfig)
class ToolPageAdmin(ToolConfigAdmin):
    row_pages = ("trial",)

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
            trial = run_trial(config, form.arguments(), request.user.get_username())
            outcome = {"outcome": _outcome(trial)}
            self.log_change(request, config, gettext("Test run: %(outcome)s.") % outcome)
            page |= trial_context(trial)
        return self.show_page(request, "trial", gettext("Test run"), config, **page)


def trial_context(trial: ToolTrial) -> dict[str, Any]:
    """A call and its result as a page shows them, for results of any form."""
    result = trial.result
    text = result.get_history_content() if result.success else result.content
    return {
        "trial": trial,
        "outcome": _outcome(trial),
        "request_json": format_readable(trial.arguments),
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


def _outcome(trial: ToolTrial) -> str:
    return gettext("succeeded") if trial.result.success else gettext("failed")


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

"""Tool calls: what each tool was given, who asked, and what came back."""

from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from agent.models import Approval, ToolCall
from agent.pages.error_words import error_block, format_error
from agent.pages.own_chats import OwnPartsAdmin
from agent.pages.runs.run_rows import RUN_LIMIT, load_outcome_runs
from agent.pages.runs.step_facts import describe_verdict
from tools.admin.filters import RecordedSince, Rows
from tools.admin.record_pages import (
    EXCERPT,
    StateRecordAdmin,
    clamp_text,
    format_moment,
    parse_row_number,
    record_link,
    render_badge,
)
from tools.models import ToolConfig
from tools.text.readable import (
    arguments_text,
    drop_surrogates,
    json_block,
    shorten_text,
    text_block,
)

#: Tools offered as a filter.
TOOL_LIMIT = 200
#: Characters of a whole result that its page holds.
WHOLE_LIMIT = 1_000_000


class ToolFilter(admin.SimpleListFilter):
    """By tool, the names being those that are configured: listing those called would scan the
    table."""

    title = _("tool")
    parameter_name = "tool"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        if not request.user.has_perm("tools.view_toolconfig"):
            return []
        return [
            (name, name)
            for name in ToolConfig.objects.order_by("name").values_list("name", flat=True)[
                :TOOL_LIMIT
            ]
        ]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        return queryset.filter(tool_name=self.value()) if self.value() else queryset


@admin.register(ToolCall)
class ToolCallAdmin(OwnPartsAdmin, StateRecordAdmin):
    list_display = ("recorded", "run_link", "tool", "took", "given", "answer")
    list_filter = (RecordedSince, "state", ToolFilter)
    list_excerpts = ("result", "error")
    list_defer = ("structured_content", "progress", "full_result")
    text_fields = ("result", "error", "requested_by")
    indexed_lookups = frozenset({"state__exact", "tool"})
    search_help_text: ClassVar = _(
        "The name of a tool or the number of a run; words of results and errors are found among"
        " the newest 100,000 calls, or the newest 20,000 of a filtered list."
    )
    fields = (
        "tool_name",
        "provider_name",
        "outcome",
        "mocked",
        "decision",
        "decided_by",
        "requested_by",
        "approval_link",
        "run_link",
        "later_runs",
        "inner_runs",
        "step",
        "call_id",
        "created_at",
        "duration_ms",
        "arguments_json",
        "progress_text",
        "result_text",
        "whole_result",
        "structured_json",
        "error_text",
    )

    def exact_matches(self, term: str) -> Iterable[Q]:
        yield Q(tool_name=term)
        yield Q(run=parse_row_number(term))

    @admin.display(description=_("recorded at"))
    def recorded(self, call: ToolCall) -> str:
        return format_moment(call.created_at)

    @admin.display(description=_("tool"))
    def tool(self, call: ToolCall) -> str:
        return (
            format_html("{} {}", call.tool_name, render_badge("mock", _("mock")))
            if call.mocked
            else call.tool_name
        )

    @admin.display(description=_("state"))
    def took(self, call: ToolCall) -> str:
        duration = "" if call.duration_ms is None else f"{call.duration_ms:,} ms"
        return format_html('{} <div class="quiet">{}</div>', self.outcome(call), duration)

    @admin.display(description=_("run"))
    def run_link(self, call: ToolCall) -> str:
        return record_link("agent_run", call.run_id, f"#{call.run_id}")

    @admin.display(description=_("verdict"))
    def decision(self, call: ToolCall) -> str:
        return describe_verdict(call.verdict) or "-"

    @admin.display(description=_("runs of agents"))
    def inner_runs(self, call: ToolCall) -> str:
        """The runs that the call set off."""
        pks = call.agent_runs.order_by("pk").values_list("pk", flat=True)[:RUN_LIMIT]
        return (
            format_html_join(" ", "{}", ((record_link("agent_run", pk, f"#{pk}"),) for pk in pks))
            or "-"
        )

    @admin.display(description=_("approval"))
    def approval_link(self, call: ToolCall) -> str:
        """The question to the owners that the call waits or has waited for."""
        approval = Approval.objects.only("code", "state").filter(call=call).first()
        return render_approval_badge(approval) if approval else "-"

    @admin.display(description=_("outcome told in"))
    def later_runs(self, call: ToolCall) -> str:
        """The runs that announced progress and outcome in the chat, for a call that outlasted its
        own run."""
        told = load_outcome_runs([call]).get(call.pk, ())
        return (
            format_html_join(
                " ", "{}", ((record_link("agent_run", run.pk, f"#{run.pk}"),) for run in told)
            )
            or "-"
        )

    @admin.display(description=_("arguments"))
    def given(self, call: ToolCall) -> str:
        return clamp_text(arguments_text(call.arguments)[:EXCERPT])

    @admin.display(description=_("result"))
    def answer(self, call: ToolCall) -> str:
        if error := getattr(call, "error_excerpt", ""):
            return format_error(error)
        return clamp_text(getattr(call, "result_excerpt", ""))

    @admin.display(description=_("arguments"))
    def arguments_json(self, call: ToolCall) -> str:
        return json_block(call.arguments)

    @admin.display(description=_("result"))
    def result_text(self, call: ToolCall) -> str:
        return text_block(call.result)

    @admin.display(description=_("progress"))
    def progress_text(self, call: ToolCall) -> str:
        return text_block(call.progress)

    @admin.display(description=_("whole result"))
    def whole_result(self, call: ToolCall) -> str:
        """The full result, if it was cut for the model; "-" otherwise."""
        if not call.full_result:
            return "-"
        return format_html(
            '<details><summary>{}</summary><div class="words">{}</div></details>',
            *_whole(call.full_result),
        )

    @admin.display(description=_("structured result"))
    def structured_json(self, call: ToolCall) -> str:
        return json_block(call.structured_content)

    @admin.display(description=_("error"))
    def error_text(self, call: ToolCall) -> str:
        return error_block(call.error) or "-"


def render_approval_badge(approval: Approval) -> str:
    """A link to the question, and its outcome."""
    link = record_link("agent_approval", approval.pk, approval.code)
    return format_html("{} {}", link, render_badge(approval.state, approval.get_state_display()))


def _whole(text: str) -> tuple[str, str]:
    count = ngettext("%(count)s character", "%(count)s characters", len(text)) % {
        "count": f"{len(text):,}"
    }
    return count, drop_surrogates(shorten_text(text, WHOLE_LIMIT))

"""Steps: single model calls, with all that was sent and answered."""

from collections.abc import Iterable
from typing import ClassVar

from django.contrib import admin
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agent.models import Step
from tools.admin.filters import RecordedSince
from tools.admin.record_pages import (
    RecordAdmin,
    clamp_text,
    format_moment,
    parse_row_number,
    record_link,
)
from tools.text.readable import json_block, text_block


@admin.register(Step)
class StepAdmin(RecordAdmin):
    list_display = (
        "recorded",
        "run_link",
        "number",
        "phase",
        "finish_reason",
        "tokens",
        "latency_ms",
        "failure",
    )
    list_filter = (RecordedSince,)
    list_excerpts = ("error",)
    list_defer = ("request", "tools", "response")
    search_help_text: ClassVar = _("The number of a run.")
    fields = (
        "run_link",
        "number",
        "phase",
        "created_at",
        "finish_reason",
        "input_tokens",
        "output_tokens",
        "latency_ms",
        "error_text",
        "answer_json",
        "request_json",
        "tools_json",
    )

    def exact_matches(self, term: str) -> Iterable[Q]:
        yield Q(run=parse_row_number(term))

    @admin.display(description=_("recorded at"))
    def recorded(self, step: Step) -> str:
        return format_moment(step.created_at)

    @admin.display(description=_("run"))
    def run_link(self, step: Step) -> str:
        return record_link("agent_run", step.run_id, f"#{step.run_id}")

    @admin.display(description=_("tokens"))
    def tokens(self, step: Step) -> str:
        return f"{step.input_tokens:,} + {step.output_tokens:,}"

    @admin.display(description=_("error"))
    def failure(self, step: Step) -> str:
        return clamp_text(getattr(step, "error_excerpt", ""))

    @admin.display(description=_("error"))
    def error_text(self, step: Step) -> str:
        return text_block(step.error)

    @admin.display(description=_("sent to the model"))
    def request_json(self, step: Step) -> str:
        return json_block(step.request)

    @admin.display(description=_("tools offered"))
    def tools_json(self, step: Step) -> str:
        return json_block(step.tools)

    @admin.display(description=_("the model's answer"))
    def answer_json(self, step: Step) -> str:
        return json_block(step.response)

"""Steps: single model calls, with all that was sent and answered."""

import json
from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.models import Step
from agent.pages.error_words import error_block, format_error
from agent.pages.own_chats import OwnPartsAdmin
from agent.pages.runs.held_back import hold_back, may_see_prompts
from agent.pages.runs.step_facts import format_cost, read_definitions
from agent.record.runs.requests import rebuild_request
from agent.runtime import wiring
from tools.admin.filters import RecordedSince
from tools.admin.record_pages import (
    RecordAdmin,
    format_moment,
    parse_row_number,
    record_link,
)
from tools.text.readable import json_block


@admin.register(Step)
class StepAdmin(OwnPartsAdmin, RecordAdmin):
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
    list_defer = ("request", "tools", "response", "parameters", "sent", "response_rest")
    search_help_text: ClassVar = _("The number of a run.")
    fields = (
        "run_link",
        "number",
        "phase",
        "created_at",
        "finish_reason",
        "endpoint_name",
        "model",
        "attempts_json",
        "input_tokens",
        "cached_tokens",
        "output_tokens",
        "reasoning_tokens",
        "cost",
        "latency_ms",
        "error_text",
        "answer_json",
        "rest_json",
        "request_link",
        "request_json",
        "sent_json",
        "parameters_json",
        "tools_json",
    )

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.request_view)
        own = path("<int:pk>/request/", view, name="agent_step_request")
        return [own, *super().get_urls()]

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        step = super().get_object(request, object_id, from_field)
        if step is not None:
            hold_back(step, request.user)
        return step

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Without the file of the request for those who do not see what is in it."""
        hidden = () if may_see_prompts(request.user) else ("request_link",)
        return [name for name in super().get_fields(request, obj) if name not in hidden]

    def request_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The request of a step as a file, byte for byte as it was sent."""
        step = get_object_or_404(self.get_queryset(request).select_related("offer"), pk=pk)
        if not (self.has_view_permission(request, step) and may_see_prompts(request.user)):
            raise PermissionDenied
        body = rebuild_request(step, wiring.build_file_store().shown)
        if body is None:
            raise Http404
        name = f'attachment; filename="request-{step.run_id}-{step.number}.json"'
        headers = {"Content-Disposition": name, "X-Content-Type-Options": "nosniff"}
        return HttpResponse(body, content_type="application/json", headers=headers)

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
        return format_error(getattr(step, "error_excerpt", ""))

    @admin.display(description=_("error"))
    def error_text(self, step: Step) -> str:
        return error_block(step.error) or "-"

    @admin.display(description=_("sent to the model"))
    def request_json(self, step: Step) -> str:
        return json_block(step.request)

    @admin.display(description=_("tools offered"))
    def tools_json(self, step: Step) -> str:
        return json_block(read_definitions(step.offer.definitions) if step.offer else step.tools)

    @admin.display(description=_("asked before"))
    def attempts_json(self, step: Step) -> str:
        return json_block(step.attempts)

    @admin.display(description=_("cost"))
    def cost(self, step: Step) -> str:
        return format_cost(step.cost_nano, step.currency) or "-"

    @admin.display(description=_("rest of the answer"))
    def rest_json(self, step: Step) -> str:
        return json_block(step.response_rest)

    @admin.display(description=_("really sent"))
    def sent_json(self, step: Step) -> str:
        return json_block(json.loads(step.sent)) if step.sent is not None else "-"

    @admin.display(description=_("parameters"))
    def parameters_json(self, step: Step) -> str:
        return json_block(json.loads(step.parameters)) if step.parameters else "-"

    @admin.display(description=_("request"))
    def request_link(self, step: Step) -> str:
        """The request as a file."""
        if step.parameters is None:
            return "-"
        url = reverse("admin:agent_step_request", args=(step.pk,))
        return format_html('<a href="{}">{}</a>', url, gettext("Download it as it was sent"))

    @admin.display(description=_("the model's answer"))
    def answer_json(self, step: Step) -> str:
        return json_block(step.response)

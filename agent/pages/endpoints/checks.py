"""*Test*: an endpoint is asked what only a tool knows, and the page shows what came of it."""

from typing import Any, NamedTuple

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.domain.budgets import cost_words
from agent.domain.endpoint import Endpoint
from agent.llm.client.model_list import find_alike
from agent.llm.errors.refusals import RefusalKind
from agent.llm.probing.probe import ProbeReport, probe_endpoint
from agent.llm.probing.probe_words import ProbeLine, describe_probe, question_words
from agent.models import ModelEndpoint
from agent.pages.endpoints.address import find_address_problem
from agent.pages.endpoints.models import (
    EndpointModelsAdmin,
    ModelsUnknown,
    load_models,
    row_endpoint,
)
from agent.pages.endpoints.record import record_probe
from agent.pages.endpoints.state import list_learnt
from agent.pages.endpoints.throttle import throttle
from agent.runtime import serving
from tools.text.error_words import explain_network_error

MOST_TESTED = 5
"""Endpoints that the action of the list tests."""


class TriedEndpoint(NamedTuple):
    """One endpoint on the page of results."""

    row: ModelEndpoint
    report: ProbeReport | None
    lines: list[ProbeLine]
    learnt: list[tuple[str, str, str]]
    alike: list[str]
    run_pk: int = 0

    @property
    def outcome(self) -> str:
        if self.report is None or self.report.fault:
            return gettext("failed")
        return gettext("works") if self.report.works else gettext("works in part")

    @property
    def badge(self) -> str:
        if self.report is None or self.report.fault:
            return "failed"
        return "succeeded" if self.report.works else "waiting"

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The rows of the table."""
        report = self.report
        currency = report.endpoint.prices.currency if report else ""
        return [
            {
                "what": question_words(call.what),
                "seconds": call.seconds,
                "response": call.response,
                "cost": _cost(call.response, currency),
            }
            for call in (report.calls if report else ())
        ]


def _cost(response: Any, currency: str) -> str:
    if response is None or response.cost_nano is None:
        return "-"
    return cost_words(response.cost_nano, currency)


class EndpointTestAdmin(EndpointModelsAdmin):
    """The button *Test*, *Save and test*, and the action of the list."""

    actions = ("test_selected",)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.test_view)
        own = [path("<path:object_id>/test/", view, name="agent_modelendpoint_test")]
        return [*own, *super().get_urls()]

    def test_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask the stored endpoint, and show what came of it."""
        row = self.changeable(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        return self._results(request, [row])

    @admin.action(description=_("Test the selected endpoints"), permissions=["change"])
    def test_selected(self, request: HttpRequest, queryset: QuerySet[ModelEndpoint]) -> Any:
        rows = list(queryset[: MOST_TESTED + 1])
        if len(rows) > MOST_TESTED:
            words = gettext("At most %d endpoints are tested at once.") % MOST_TESTED
            self.message_user(request, words, messages.WARNING)
        return self._results(request, rows[:MOST_TESTED])

    def _results(self, request: HttpRequest, rows: list[ModelEndpoint]) -> HttpResponse:
        tried = [self.try_row(request, row) for row in rows]
        page = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": gettext("Test"),
            "original": rows[0] if len(rows) == 1 else None,
            "subtitle": str(rows[0]) if len(rows) == 1 else None,
            "tried": tried,
        }
        return TemplateResponse(request, "admin/agent/modelendpoint/test.html", page)

    def try_row(self, request: HttpRequest, row: ModelEndpoint) -> TriedEndpoint:
        """Ask the stored ``row``; what came of it is on record."""
        started_at = timezone.now()
        try:
            endpoint = row_endpoint(row)
            _permit(request.user, endpoint)
            with throttle.testing(row.pk) as hindrance:
                if hindrance:
                    raise ModelsUnknown({"": [hindrance]})
                report = run_probe(endpoint)
        except ModelsUnknown as error:
            words = [line for lines in error.problems.values() for line in lines]
            return TriedEndpoint(row, None, [ProbeLine("fail", line) for line in words], [], [])
        run_pk = record_probe(row, report, request.user.get_username(), started_at)
        row.refresh_from_db()
        alike = list_alike(request.user, report)
        lines, learnt = describe_report(report), list(list_learnt(row))
        found = TriedEndpoint(row, report, lines, learnt, alike, run_pk)
        self.log_change(request, row, gettext("Tested: %(outcome)s") % {"outcome": found.outcome})
        return found

    # --- After saving -----------------------------------------------------------

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._onward(request, obj) or super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        return self._onward(request, obj) or super().response_change(request, obj)

    def _onward(self, request: HttpRequest, row: ModelEndpoint) -> HttpResponse | None:
        """To the page that the pressed button names, by POST as what it does is no reading."""
        for button, page in (("_test", "test"), ("_fetch", "models")):
            if button in request.POST and self.has_change_permission(request, row):
                address = reverse(f"admin:agent_modelendpoint_{page}", args=(row.pk,))
                return HttpResponseRedirect(address, preserve_request=True)
        return None


def describe_report(report: ProbeReport) -> list[ProbeLine]:
    """What ``report`` shows; of a connection that failed, how it did, which the endpoint's own
    words tell."""
    lines = describe_probe(report)
    told = explain_network_error(report.words) if report.fault == RefusalKind.DOWN else None
    if told is None:
        return lines
    return [
        line._replace(text=told.sentence, advice=told.advice) if line.level == "fail" else line
        for line in lines
    ]


def run_probe(endpoint: Endpoint) -> ProbeReport:
    """Ask ``endpoint`` on the loop that serves, where the calls are counted as any others; where
    none does, on one made for it."""
    if serving_now := serving.get_serving():
        return serving_now.run(lambda _registry: probe_endpoint(endpoint))
    return async_to_sync(probe_endpoint)(endpoint)


def _permit(user: Any, endpoint: Endpoint) -> None:
    if words := find_address_problem(user, endpoint.url):
        raise ModelsUnknown({"base_url": [words]})


def list_alike(user: Any, report: ProbeReport) -> list[str]:
    """Models of the endpoint that may be meant by one that it does not know."""
    if report.fault != RefusalKind.UNKNOWN_MODEL:
        return []
    try:
        return find_alike(report.endpoint.model, load_models(user, report.endpoint))
    except ModelsUnknown:
        return []

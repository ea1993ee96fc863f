"""The model step of the start page: a provider and a key are tried first, and kept if they work."""

from dataclasses import dataclass, field
from typing import Any

from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone

from agent.llm.providers.presets import PRESETS
from agent.models import ModelEndpoint
from agent.pages.endpoints.checks import (
    ModelsUnknown,
    ask_row,
    describe_report,
    entered_endpoint,
    list_alike,
    load_models,
    record_probe,
    try_row,
)
from tools.admin.record_pages import parse_row_number
from tools.findings import Finding, FindingLevel, fail_finding

#: Models that are offered to choose from.
MOST_OFFERED = 200


@dataclass
class ModelTry:
    """What came of it, for the template."""

    lines: list[Finding] = field(default_factory=list)
    #: To choose one of.
    models: list[str] = field(default_factory=list)
    alike: list[str] = field(default_factory=list)
    said: str = ""
    saved: ModelEndpoint | None = None
    #: Whether it can be kept although it did not work.
    may_keep: bool = False

    @property
    def is_doubtful(self) -> bool:
        """Whether something did not work as it should."""
        return any(line.level is not FindingLevel.OK for line in self.lines)


def try_model(request: HttpRequest, site: AdminSite) -> ModelTry:
    """Test a new endpoint, or the stored one that ``row`` of the form names. Raises
    PermissionDenied and Http404."""
    admin: Any = site.get_model_admin(ModelEndpoint)
    try:
        return (_try_stored if "row" in request.POST else _try_new)(request, admin)
    except ModelsUnknown as error:
        return ModelTry([fail_finding(line) for line in error.lines])


def _try_stored(request: HttpRequest, admin: Any) -> ModelTry:
    row = get_object_or_404(ModelEndpoint, pk=parse_row_number(request.POST["row"]))
    if not admin.has_change_permission(request, row):
        raise PermissionDenied
    found = try_row(admin, request, row)
    said = found.report.words if found.report else ""
    return ModelTry(found.lines, alike=found.alike, said=said)


def _try_new(request: HttpRequest, admin: Any) -> ModelTry:
    """What the page holds are some fields of the endpoint's own form. Without a model, those are
    listed that the provider has; else the endpoint is asked, and kept if it answers, or is to be
    kept anyway."""
    if not admin.has_add_permission(request):
        raise PermissionDenied
    entered = request.POST.copy()
    entered["model"] = entered.get("model", "").strip() or _first_model(entered.get("preset", ""))
    made = admin.get_form(request)
    made.is_partial = True
    form = made(entered)
    if not entered["model"]:
        found = load_models(request.user, entered_endpoint(form))
        return ModelTry(models=[one.name for one in found][:MOST_OFFERED])
    if not form.is_valid():
        lines = [fail_finding(str(line)) for lines in form.errors.values() for line in lines]
        return ModelTry(lines)
    row, started_at = form.save(commit=False), timezone.now()
    report = None if "anyway" in request.POST else ask_row(request.user, row)
    lines = describe_report(report) if report else []
    if report and report.fault:
        alike = list_alike(request.user, report)
        return ModelTry(lines, alike=alike, said=report.words, may_keep=True)
    admin.save_model(request, row, form, change=False)
    admin.log_addition(request, row, [{"added": {}}])
    if report:
        record_probe(row, report, request.user.get_username(), started_at)
    return ModelTry(lines, saved=row)


def _first_model(preset: str) -> str:
    """The model that a chat begins with at the provider; "" where none is known."""
    known = PRESETS.get(preset)
    return next((one.name for one in known.models if one.answers), "") if known else ""


def describe_providers() -> list[dict[str, Any]]:
    """The providers to choose from, with what is said of each."""
    return [
        {
            "preset": preset,
            "first": _first_model(preset.id),
            "models": [one.name for one in preset.models if one.answers],
            "needs_address": not preset.base_url,
        }
        for preset in PRESETS.values()
    ]

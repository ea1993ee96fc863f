"""The model step of the start page: a provider and a key are tried first, and kept if they work."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from django import forms
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone

from agent.domain.endpoint import Endpoint
from agent.llm.probing.probe import ProbeReport
from agent.llm.providers.presets import PRESETS
from agent.models import ModelEndpoint
from agent.pages.endpoints.checks import (
    ModelsUnknown,
    describe_report,
    list_alike,
    load_models,
    record_probe,
    row_endpoint,
    run_probe,
    throttle,
    try_row,
)
from tools.admin.changes import HistoryAdmin
from tools.admin.record_pages import parse_row_number
from tools.findings import Finding, FindingLevel, fail_finding

#: Models that are offered to choose from.
MOST_OFFERED = 200
#: No row's: what a test of an endpoint that is not stored counts as.
NOT_STORED = 0


@dataclass
class ModelTry:
    """What came of it, for the template."""

    lines: list[Finding] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    """To choose one of."""
    alike: list[str] = field(default_factory=list)
    said: str = ""
    saved: ModelEndpoint | None = None
    may_keep: bool = False
    """Whether it can be kept although it did not work."""

    @property
    def is_doubtful(self) -> bool:
        """Whether something did not work as it should."""
        return any(line.level is not FindingLevel.OK for line in self.lines)


def try_model(request: HttpRequest, site: AdminSite) -> ModelTry:
    """Test a new endpoint, or the stored one that ``row`` of the form names. Raises
    PermissionDenied and Http404."""
    admin = cast("HistoryAdmin", site.get_model_admin(ModelEndpoint))
    return _try_stored(request, admin) if "row" in request.POST else _try_new(request, admin)


def _try_stored(request: HttpRequest, admin: HistoryAdmin) -> ModelTry:
    row = get_object_or_404(ModelEndpoint, pk=parse_row_number(request.POST["row"]))
    if not admin.has_change_permission(request, row):
        raise PermissionDenied
    found = try_row(admin, request, row)
    said = found.report.words if found.report else ""
    return ModelTry(found.lines, alike=found.alike, said=said)


def _try_new(request: HttpRequest, admin: HistoryAdmin) -> ModelTry:
    if not admin.has_add_permission(request):
        raise PermissionDenied
    entered = {name: request.POST.get(name, "").strip() for name in ("preset", "key", "base_url")}
    model = request.POST.get("chosen", "").strip() or request.POST.get("model", "").strip()
    try:
        model = model or _first_model(entered["preset"])
        made = admin.get_form(request)
        if not model:
            return ModelTry(models=_list_models(request, made, entered))
        form = made(_form_data(made, entered | {"model": model}))
        if not form.is_valid():
            return ModelTry(_problems(form, ()))
        return _try_row(request, admin, form)
    except ModelsUnknown as error:
        lines = [line for found in error.problems.values() for line in found]
        return ModelTry([fail_finding(line) for line in lines])


def _try_row(request: HttpRequest, admin: HistoryAdmin, form: Any) -> ModelTry:
    """Ask the endpoint in ``form``, and keep it if it answers, or is to be kept anyway."""
    row, started_at = form.save(commit=False), timezone.now()
    report: ProbeReport | None = None
    if "anyway" not in request.POST:
        with throttle.testing(NOT_STORED) as hindrance:
            if hindrance:
                return ModelTry([fail_finding(hindrance)])
            report = run_probe(row_endpoint(row))
        if report.fault:
            alike = list_alike(request.user, report)
            lines = describe_report(report)
            return ModelTry(lines, alike=alike, said=report.words, may_keep=True)
    admin.save_model(request, row, form, change=False)
    admin.log_addition(request, row, [{"added": {}}])
    if report is None:
        return ModelTry(saved=row)
    record_probe(row, report, request.user.get_username(), started_at)
    return ModelTry(describe_report(report), saved=row)


def _first_model(preset: str) -> str:
    """The model that a chat begins with at the provider; "" where none is known."""
    known = PRESETS.get(preset)
    return next((one.name for one in known.models if one.answers), "") if known else ""


def _list_models(request: HttpRequest, made: Any, entered: Mapping[str, str]) -> list[str]:
    """The names of the models that the provider has. Raises :class:`ModelsUnknown`."""
    form = made(_form_data(made, entered))
    form.full_clean()
    if problems := _problems(form, ("model",)):
        raise ModelsUnknown({"": [line.text for line in problems]})
    data = form.cleaned_data
    endpoint = Endpoint(data["base_url"], tuple(data["keys"] or ()), headers=data["headers"] or {})
    return [one.name for one in load_models(request.user, endpoint)][:MOST_OFFERED]


def _problems(form: Any, apart_from: tuple[str, ...]) -> list[Finding]:
    return [
        fail_finding(str(line))
        for name, lines in form.errors.items()
        if name not in apart_from
        for line in lines
    ]


def _form_data(made: Any, entered: Mapping[str, str]) -> dict[str, Any]:
    """What a browser would send of the whole form of an endpoint, in which only ``entered`` was
    filled in."""
    blank = made()
    data: dict[str, Any] = {}
    for name, one in blank.fields.items():
        value = blank[name].value()
        if isinstance(one, forms.BooleanField):
            data |= {name: "on"} if value and name != "filled" else {}
        elif value is not None:
            data[name] = value
    given = {name: entered.get(name, "") for name in ("preset", "base_url", "model")}
    return data | given | {"keys": entered.get("key", ""), "name": ""}


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

"""The list of models that a provider has, fetched for the form of an endpoint."""

from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError
from agent.llm.client.model_list import ListedModel, fetch_models
from agent.llm.endpoints.environment_endpoints import environment_endpoints
from agent.llm.errors.fault_words import explain_fault, name_fault
from agent.llm.providers.presets import PRESETS
from agent.models import ModelEndpoint
from agent.pages.endpoints.address import find_address_problem
from agent.pages.endpoints.presets import fill_in
from agent.pages.endpoints.throttle import throttle
from agent.record.settings.endpoints import to_endpoint
from tools.admin.changes import HistoryAdmin
from tools.admin.record_pages import parse_row_number
from tools.admin.row_history import record_changes
from tools.secrets.encryption import DecryptionError

SHOWN = 100
"""Models on the page that works without a script."""
_ADDRESS_FIELDS = ("base_url", "keys", "headers")


class ModelsUnknown(Exception):  # noqa: N818 - it says what is wrong
    """The list could not be had; by the field that is to blame, sentences for the person."""

    def __init__(self, problems: dict[str, list[str]]) -> None:
        super().__init__(str(problems))
        self.problems = problems


class EndpointModelsAdmin(HistoryAdmin):
    """Choosing a model from the provider's list: in the form by a script, else on a page."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.models_view)
        own = [
            path("models/", view, name="agent_modelendpoint_models_of_new"),
            path("<path:object_id>/models/", view, name="agent_modelendpoint_models"),
        ]
        return [*own, *super().get_urls()]

    def changeable(self, request: HttpRequest, object_id: str) -> ModelEndpoint:
        """The row, for a user who may change it. Raises PermissionDenied or Http404."""
        row: ModelEndpoint = get_object_or_404(ModelEndpoint, pk=parse_row_number(object_id))
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        return row

    def models_view(self, request: HttpRequest, object_id: str = "") -> HttpResponse:
        """The models, as JSON for the script of the form with what stands in its fields, or as a
        page to choose one for the stored row."""
        row = self.changeable(request, object_id) if object_id else None
        if row is None and not self.has_add_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if "application/json" in request.headers.get("accept", ""):
            return self._as_json(request, row)
        if row is None:
            raise Http404
        if chosen := request.POST.get("chosen", "")[:200]:
            return self._choose(request, row, chosen)
        return self._page(request, row)

    def _as_json(self, request: HttpRequest, row: ModelEndpoint | None) -> JsonResponse:
        try:
            found = load_models(request.user, self._entered(request, row))
        except ModelsUnknown as error:
            return JsonResponse({"problems": error.problems}, status=400)
        return JsonResponse({"models": [[one.name, one.window] for one in found]})

    def _entered(self, request: HttpRequest, row: ModelEndpoint | None) -> Endpoint:
        """The endpoint as the form has it now. Raises :class:`ModelsUnknown`."""
        if row is not None and row.environment:
            return row_endpoint(row)
        made = self.get_form(request, row, change=row is not None)
        form = made(request.POST, instance=row)
        with transaction.atomic():  # the form compares the row, locked, with what was seen
            form.full_clean()
        problems = {
            name: [str(line) for line in form.errors[name]]
            for name in _ADDRESS_FIELDS
            if name in form.errors
        }
        if problems:
            raise ModelsUnknown(problems)
        entered = form.cleaned_data
        return Endpoint(
            url=entered["base_url"],
            keys=tuple(entered["keys"] or ()),
            headers=entered["headers"] or {},
        )

    def _page(self, request: HttpRequest, row: ModelEndpoint) -> HttpResponse:
        words = request.POST.get("q", "")[:200].strip()
        found: list[ListedModel] = []
        problems: list[str] = []
        try:
            found = load_models(request.user, row_endpoint(row))
        except ModelsUnknown as error:
            problems = [line for lines in error.problems.values() for line in lines]
        wanted = [m for m in found if all(w in m.name.lower() for w in words.lower().split())]
        page: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "title": _("Models"),
            "subtitle": str(row),
            "words": words,
            "problems": problems,
            "models": wanted[:SHOWN],
            "more": len(wanted) - SHOWN,
        }
        return TemplateResponse(request, "admin/agent/modelendpoint/models.html", page)

    def _choose(self, request: HttpRequest, row: ModelEndpoint, name: str) -> HttpResponse:
        if row.environment or not name.isprintable():
            raise PermissionDenied
        values = {field.name: getattr(row, field.name) for field in row._meta.concrete_fields}
        values["model"] = name
        if preset := PRESETS.get(row.preset):
            fill_in(values, preset, is_new=not row.model)
        with record_changes(request.user, row):  # type: ignore[arg-type] # signed in
            for field, value in values.items():
                setattr(row, field, value)
            row.learnt = {}
            row.save()
        self.log_change(request, row, _("Chose the model %s.") % name)
        self.message_user(request, _("The model is %s now.") % name, messages.SUCCESS)
        return redirect("admin:agent_modelendpoint_change", row.pk)


def row_endpoint(row: ModelEndpoint) -> Endpoint:
    """``row`` as the agent asks it. Raises :class:`ModelsUnknown` where its keys cannot be read."""
    try:
        return to_endpoint(row, environment_endpoints().get(row.environment))
    except DecryptionError as error:
        words = _("The keys or headers cannot be read any more: enter them again.")
        raise ModelsUnknown({"keys": [words]}) from error


def load_models(user: Any, endpoint: Endpoint) -> list[ListedModel]:
    """The models of ``endpoint``, asked for by ``user``. Raises :class:`ModelsUnknown`."""
    if words := find_address_problem(user, endpoint.url):
        raise ModelsUnknown({"base_url": [words]})
    if words := throttle.refuse("models"):
        raise ModelsUnknown({"model": [words]})
    try:
        found = async_to_sync(fetch_models)(endpoint)
    except LLMError as error:
        told = explain_fault(name_fault(error))
        raise ModelsUnknown({"model": [f"{told.text} {told.advice}", str(error)]}) from error
    if not found:
        raise ModelsUnknown({"model": [_("The list of models is empty: type the model's name.")]})
    return found

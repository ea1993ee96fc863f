"""The pages that make HTTP tools of an OpenAPI document: read, choose, look, make."""

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters

from tools.admin.row_history import record_changes
from tools.http_tools.admin.openapi_forms import (
    OPERATIONS_SHOWN,
    ChoiceForm,
    SourceForm,
    filter_operations,
    pack_document,
    unpack_document,
)
from tools.http_tools.admin.openapi_plan import (
    ImportResult,
    PlannedTool,
    check_secret_hosts,
    find_wanted_hosts,
    find_wanted_secrets,
    plan_tools,
    propose_tool_names,
    read_source,
    save_plan,
)
from tools.http_tools.admin.secrets import build_secret_field
from tools.http_tools.openapi.document import DocumentError
from tools.http_tools.openapi.operations import outline_document
from tools.http_tools.openapi.security import SecretWanted
from tools.secrets.models import Secret

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = object


@dataclass(frozen=True, slots=True)
class PackedDocument:
    """A document on its way through the pages: as it is, packed for the next page, and where it was
    fetched from."""

    document: dict[str, Any]
    packed: str
    source_url: str


class SecretsForm(forms.Form):
    """An input for each secret that is missing, or can no longer be read. What is left empty is
    entered later."""

    def __init__(
        self, wanted: list[SecretWanted], planned: list[PlannedTool], data: Any = None
    ) -> None:
        super().__init__(data, prefix="secret")
        self.wanted = wanted
        for secret in wanted:
            places = gettext("Sent to: %(hosts)s.") % {
                "hosts": find_wanted_hosts(planned, secret.name).words
            }
            self.fields[secret.name] = build_secret_field(
                label=secret.name, required=False, help_text=f"{secret.hint}. {places}"
            )

    def values(self) -> dict[str, str]:
        """What was entered, by name, as requests carry it: a user and a password go in Base64
        (RFC 7617)."""
        values = {}
        for secret in self.wanted:
            if value := self.cleaned_data.get(secret.name):
                values[secret.name] = (
                    base64.b64encode(value.encode()).decode() if secret.is_pair else value
                )
        return values


class ImportPages(ModelAdmin):
    """The import as pages of the admin of HTTP tools. Nothing is kept between requests but what the
    pages carry."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.import_view)
        return [path("import/", view, name="tools_httptool_import"), *super().get_urls()]

    @method_decorator(sensitive_post_parameters())
    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Read a document, select operations, preview the tools, create them."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        step = request.POST.get("step", "")
        form = SourceForm()
        try:
            if step in ("choose", "make") or "again" in request.POST:
                packed = request.POST.get("document", "")
                source_url = request.POST.get("source_url", "")[:2000]
                carried = PackedDocument(unpack_document(packed), packed, source_url)
                return self._chosen(request, carried, is_made=step == "make")
            if step == "read":
                form = SourceForm(request.POST, request.FILES)
                if form.is_valid():
                    document = read_source(form.cleaned_data)
                    url = form.cleaned_data["url"]
                    carried = PackedDocument(document, pack_document(document), url)
                    return self._choice_page(
                        request, carried, ChoiceForm(outline_document(document, url))
                    )
            return self._import_page(request, "source", form=form)
        except DocumentError as problem:
            form = SourceForm(request.POST if step == "read" else None)
            return self._import_page(request, "source", form=form, problem=problem)

    def _chosen(
        self, request: HttpRequest, carried: PackedDocument, *, is_made: bool
    ) -> HttpResponse:
        form = ChoiceForm(outline_document(carried.document, carried.source_url), request.POST)
        if "again" in request.POST or not form.is_valid():
            return self._choice_page(request, carried, form)
        choice = form.cleaned_data
        if not self.has_change_permission(request):
            choice = choice | {"existing": "skip"}
        planned = plan_tools(carried.document, form.contents, choice)
        missing, there = find_wanted_secrets(planned)
        may_enter = request.user.has_perms(("tools.add_secret", "tools.change_secret"))
        secrets = SecretsForm(
            missing if may_enter else [], planned, request.POST if is_made else None
        )
        if is_made and secrets.is_valid():
            replaced = [plan.row for plan in planned if plan.is_made and plan.is_there]
            entered = Secret.objects.filter(name__in=secrets.values())
            with record_changes(cast("User", request.user), *replaced, *entered):
                outcome = save_plan(planned, secrets.values())
            return self._report_result(request, outcome, planned)
        return self._import_page(
            request,
            "preview",
            form=form,
            carried=carried,
            made=[plan for plan in planned if plan.is_made],
            left=[plan for plan in planned if not plan.is_made and not plan.problem],
            refused=[plan for plan in planned if plan.problem],
            sent=[(name, value) for name in form.fields for value in form.sent(name)],
            secrets=secrets,
            kept_secrets=there,
            refusals=check_secret_hosts(planned, there),
            missing_secrets=[] if may_enter else missing,
        )

    def _report_result(
        self, request: HttpRequest, outcome: ImportResult, planned: list[PlannedTool]
    ) -> HttpResponse:
        for row in outcome.made:
            self.log_addition(request, row, gettext("Imported from an OpenAPI document."))
        for row in outcome.replaced:
            self.log_change(request, row, gettext("Replaced from an OpenAPI document."))
        for secret in outcome.secrets:
            self.log_change(
                request, secret, gettext("Entered during the import of an OpenAPI document.")
            )
        counts = {"made": len(outcome.made), "replaced": len(outcome.replaced)}
        counts["left"] = len(planned) - counts["made"] - counts["replaced"]
        words = (
            gettext("Tools made: %(made)d; replaced: %(replaced)d; left out: %(left)d.") % counts
        )
        self.message_user(
            request,
            words,
            messages.SUCCESS if counts["made"] or counts["replaced"] else messages.WARNING,
        )
        return redirect("admin:tools_httptool_changelist")

    # --- Pages ----------------------------------------------------------------------

    def _choice_page(
        self, request: HttpRequest, carried: PackedDocument, form: ChoiceForm
    ) -> HttpResponse:
        contents, words = form.contents, request.POST.get("find", "")[:200]
        chosen = set(form.sent("operations"))
        shown = [operation for operation in contents.operations if operation.key in chosen]
        found = filter_operations(contents.operations, words)
        rest = [operation for operation in found if operation.key not in chosen]
        shown += rest[: max(0, OPERATIONS_SHOWN - len(shown))]
        names = propose_tool_names(contents, "")
        return self._import_page(
            request,
            "choose",
            form=form,
            carried=carried,
            find=words,
            is_checked="again" not in request.POST,
            operations=[(one, names[one.key], one.key in chosen) for one in shown],
            hidden_count=len(contents.operations) - len(shown),
        )

    def _import_page(self, request: HttpRequest, name: str, **page: Any) -> HttpResponse:
        page |= {"title": gettext("Import from OpenAPI"), "opts": self.opts, "media": self.media}
        template = f"admin/tools/httptool/import_{name}.html"
        return TemplateResponse(
            request, template, {**self.admin_site.each_context(request), **page}
        )

"""HTTP tools: requests that the operator sets up without code, and tries out before the model
may."""

from functools import cache
from operator import attrgetter
from typing import Any, ClassVar

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _

from tools.admin.argument_form import ArgumentForm
from tools.admin.record_pages import (
    Column,
    clamp_text,
    render_badge,
)
from tools.admin.settings_page import author_of
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import run_with_fetcher
from tools.http_tools.admin.form import HttpToolForm
from tools.http_tools.admin.openapi import ImportPages
from tools.http_tools.provider import DryRun, dry_run_tool
from tools.http_tools.validation import (
    PROVIDER,
    ValidationContext,
    check_http_tool,
    secret_names,
    tool_warnings,
)
from tools.models import HttpTool, Secret, ToolConfig
from tools.models.row_history import record_changes
from tools.secrets.hosts import format_origin, parse_host
from tools.secrets.masked import MASK, mask_url
from tools.secrets.models import load_secrets
from tools.text.readable import drop_surrogates, format_readable, shorten_text

#: The most secrets that are read for a page.
SECRETS_READ = 1_000
NO_ARGUMENTS = {"type": "object", "properties": {}}


@admin.register(HttpTool)
class HttpToolAdmin(ImportPages):
    form = HttpToolForm
    actions = ("enable", "disable")
    list_display = ("name", "enabled", "changed")
    list_editable = ("enabled",)
    list_filter = ("enabled",)
    search_fields = ("name", "description", "url")
    save_as = True
    change_form_template = "admin/tools/httptool/change_form.html"
    change_list_template = "admin/tools/httptool/change_list.html"
    row_pages = ("trial",)
    # Users who may only view see host and names: everything else may contain keys, although these
    # belong in secrets.
    unseen: ClassVar = {
        "url": "address",
        "query": "query_names",
        "headers": "header_names",
        "body_kind": "body_state",
        "body": "",
        "form_fields": "",
    }
    fieldsets = (
        (None, {"fields": ("name", "enabled", "description")}),
        (_("What the model says"), {"fields": ("parameters_schema",)}),
        (
            _("Request"),
            {"fields": ("method", "url", "query", "headers", "body_kind", "body", "form_fields")},
        ),
        (
            _("Answer"),
            {
                "fields": (
                    "answer_kind",
                    "answer_path",
                    "timeout_seconds",
                    "max_kib",
                    "cache_seconds",
                )
            },
        ),
    )

    class Media:
        css = {"all": ("tools/http_tool.css",)}  # noqa: RUF012 - Django's own way to say it
        js = ("tools/http_tool.js",)

    def get_search_fields(self, request: HttpRequest) -> Any:
        """Users who may only view could otherwise find out a key character by character."""
        return (
            self.search_fields if self.has_change_permission(request) else ("name", "description")
        )

    def save_model(self, request: HttpRequest, obj: HttpTool, form: object, change: bool) -> None:
        """Another host is an event of its own in the tool's history."""
        before = HttpTool.objects.get(pk=obj.pk).url if change else obj.url
        super().save_model(request, obj, form, change)
        if parse_host(before) != parse_host(obj.url):
            addresses = {
                "before": format_origin(before) or "-",
                "after": format_origin(obj.url) or "-",
            }
            self.log_change(
                request, obj, gettext("Address changed from %(before)s to %(after)s.") % addresses
            )

    # --- The list -------------------------------------------------------------------

    address = Column(_("URL"), lambda row: mask_url(row.url))
    query_names = Column(_("query"), lambda row: _names(row.query))
    header_names = Column(_("headers"), lambda row: _names(row.headers))
    body_state = Column(
        _("body"), lambda row: f"{row.get_body_kind_display()} {MASK if row.body else ''}"
    )

    def get_list_display(self, request: HttpRequest) -> Any:
        """The secrets are read once for all rows."""
        secrets = cache(load_secret_states)
        address = attrgetter("url") if self.has_change_permission(request) else self.address

        @admin.display(description=_("HTTP tool"), ordering="name")
        def tool(row: HttpTool) -> str:
            words = '{}<div class="quiet">{}</div><code class="address">{} {}</code>'
            return format_html(
                words, row.name, clamp_text(row.description), row.method, address(row)
            )

        @admin.display(description=_("state"))
        def state(row: HttpTool) -> str:
            if lines := list_problems(row, secrets()):
                return format_html(
                    '<span title="{}">{}</span>',
                    "\n".join(lines),
                    render_badge("failed", _("cannot be used")),
                )
            return (
                render_badge("succeeded", _("ready"))
                if row.enabled
                else render_badge("off", _("off"))
            )

        return (tool, "enabled", state, "changed")

    @admin.action(description=_("Enable selected tools"), permissions=["change"])
    def enable(self, request: HttpRequest, rows: Any) -> None:
        self._switch(request, rows, enabled=True)

    @admin.action(description=_("Disable selected tools"), permissions=["change"])
    def disable(self, request: HttpRequest, rows: Any) -> None:
        self._switch(request, rows, enabled=False)

    def _switch(self, request: HttpRequest, rows: Any, *, enabled: bool) -> None:
        changed = list(rows.exclude(enabled=enabled))
        with record_changes(author_of(request), *changed):
            rows.filter(pk__in=[row.pk for row in changed]).update(enabled=enabled)
        self.message_user(
            request, gettext("Changed: %(count)d.") % {"count": len(changed)}, messages.SUCCESS
        )

    # --- One tool -------------------------------------------------------------------

    def page_context(self, request: HttpRequest, row: HttpTool | None) -> dict[str, Any]:
        secrets = load_secret_states()
        page: dict[str, Any] = {"secrets": secrets}
        if row is None or not row.pk:
            return page
        page |= {
            "troubles": list_problems(row, secrets),
            "warnings": list(tool_warnings(row.to_settings())),
        }
        page["config"] = config = (
            ToolConfig.objects.filter(name=row.name)
            .only("name", "enabled", "provider_name")
            .first()
        )
        page["other"] = config.provider_name if config and config.provider_name != PROVIDER else ""
        if self.has_change_permission(request, row):
            page["trial_url"] = reverse("admin:tools_httptool_trial", args=(row.pk,))
        return page

    def response_add(
        self, request: HttpRequest, obj: Model, post_url_continue: str | None = None
    ) -> HttpResponse:
        """A new tool is tried out next."""
        if "_try" in request.POST:
            return self.response_change(request, obj)
        return super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: Model) -> HttpResponse:
        if "_try" in request.POST:
            return redirect("admin:tools_httptool_trial", obj.pk)
        return super().response_change(request, obj)

    def trial_view(self, request: HttpRequest, row: HttpTool) -> HttpResponse:
        """The form for the arguments and, once it is sent, the request that was made and what came
        of it."""
        form = ArgumentForm(
            row.parameters_schema or NO_ARGUMENTS,
            request.POST if request.method == "POST" else None,
        )
        page: dict[str, Any] = {
            "form": form,
            "troubles": list_problems(row, load_secret_states()),
        }
        if form.is_valid():
            trial = run_dry_run(row, form.arguments())
            words = gettext("succeeded") if trial.result.success else gettext("failed")
            self.log_change(request, row, gettext("Test run: %(outcome)s.") % {"outcome": words})
            page |= dry_run_context(trial) | {"outcome": words}
        return self.show_page(request, "trial", gettext("Test run"), row, **page)


def load_secret_states() -> dict[str, bool]:
    """The names of all secrets, and whether each can still be read."""
    return {
        secret.name: secret.is_readable for secret in Secret.objects.order_by("name")[:SECRETS_READ]
    }


def _names(entries: object) -> str:
    return (
        ", ".join(f"{name} = {MASK}" for name in entries) or "-"
        if isinstance(entries, dict)
        else "-"
    )


def list_problems(row: HttpTool, secrets: dict[str, bool]) -> list[str]:
    """Why ``row`` does not work as it is: a translated line each."""
    context = ValidationContext(
        secrets=secrets,
        hosts=Secret.known_hosts(),
        allow=AllowList.parse(settings.FETCH_ALLOW, "tools"),
    )
    lines = [
        line for found in check_http_tool(row.to_settings(), context).values() for line in found
    ]
    return lines + [
        gettext("The secret “%(name)s” can no longer be read: enter it anew.") % {"name": name}
        for name in sorted(secret_names(row.to_settings()))
        if secrets.get(name) is False
    ]


def run_dry_run(row: HttpTool, arguments: Any) -> DryRun:
    """Make the request of ``row`` once, switched on or not, over a way out of its own that is
    closed again."""
    secrets = load_secrets()
    return run_with_fetcher("tools", lambda fetcher: dry_run_tool(row, arguments, secrets, fetcher))


def dry_run_context(trial: DryRun) -> dict[str, Any]:
    """The request and the answer as a page shows them, whatever a server sent; secrets are masked
    already."""
    result = trial.result
    return {
        "trial": trial,
        "milliseconds": round(trial.seconds * 1000),
        "request_url": drop_surrogates(trial.url),
        "request_headers": _lines(trial.headers),
        "request_body": drop_surrogates(shorten_text(trial.body)),
        "answer_headers": _lines(trial.answer_headers),
        "answer_text": drop_surrogates(shorten_text(trial.text)),
        "told": drop_surrogates(shorten_text(result.get_history_content() or "")),
        "structured_json": ""
        if result.structured_content is None
        else format_readable(result.structured_content),
        "error": drop_surrogates(shorten_text(trial.error)),
    }


def _lines(headers: Any) -> str:
    return drop_surrogates("\n".join(f"{name}: {value}" for name, value in headers.items()))

"""HTTP tools: requests that the operator sets up without code, and tries out before the model
may."""

from functools import cache
from operator import attrgetter
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tools.admin.argument_form import ArgumentForm
from tools.admin.changes import HistoryAdmin
from tools.admin.record_pages import clamp_text, format_moment, parse_row_number, render_badge
from tools.admin.row_history import record_changes
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import run_with_fetcher
from tools.http_tools.admin.form import HttpToolForm
from tools.http_tools.admin.openapi import ImportPages
from tools.http_tools.dry_run import DryRun, dry_run_tool
from tools.http_tools.settings import PROVIDER, secret_names
from tools.http_tools.validation import ValidationContext, check_http_tool, tool_warnings
from tools.models import HttpTool, Secret, ToolConfig
from tools.secrets.hosts import format_origin, parse_host
from tools.secrets.masked import MASK
from tools.secrets.store import load_secrets
from tools.secrets.url_masking import mask_url
from tools.text.readable import drop_surrogates, format_readable, shorten_text

#: The most secrets that are read for a page.
SECRETS_READ = 1_000
LOOKED_AT = ("address", "query_names", "header_names", "body_state")
"""The request, for users who may only view."""
NO_ARGUMENTS = {"type": "object", "properties": {}}


@admin.register(HttpTool)
class HttpToolAdmin(ImportPages, HistoryAdmin):
    form = HttpToolForm
    actions = ("enable", "disable")
    list_display = ("name", "enabled", "changed")
    list_editable = ("enabled",)
    list_filter = ("enabled",)
    list_per_page = 50
    show_facets = admin.ShowFacets.NEVER
    show_full_result_count = False
    search_fields = ("name", "description", "url")
    save_as = True
    change_form_template = "admin/tools/httptool/change_form.html"
    change_list_template = "admin/tools/httptool/change_list.html"
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

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Users who may only view see host and names: everything else may contain keys, although
        these belong in secrets."""
        if obj is None or self.has_change_permission(request, obj):
            return self.fieldsets
        parts = {title: part["fields"] for title, part in self.fieldsets}
        parts[_("Request")] = ("method", *LOOKED_AT)
        return [(title, {"fields": names}) for title, names in parts.items()]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        looks = obj is not None and not self.has_change_permission(request, obj)
        return (*super().get_readonly_fields(request, obj), *(LOOKED_AT if looks else ()))

    def get_search_fields(self, request: HttpRequest) -> Any:
        """Users who may only view could otherwise find out a key character by character."""
        return (
            self.search_fields if self.has_change_permission(request) else ("name", "description")
        )

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        return lookup in ("enabled__exact", "enabled")

    def save_model(self, request: HttpRequest, obj: HttpTool, form: Any, change: bool) -> None:
        """Another host is an event of its own in the tool's history."""
        before = HttpTool.objects.get(pk=obj.pk).url if change else obj.url
        super().save_model(request, obj, form, change)
        if parse_host(before) != parse_host(obj.url):
            places = {
                "before": format_origin(before) or "-",
                "after": format_origin(obj.url) or "-",
            }
            self.log_change(
                request, obj, gettext("Address changed from %(before)s to %(after)s.") % places
            )

    def get_changelist_form(self, request: HttpRequest, **kwargs: Any) -> Any:
        """The list edits a switch; the form's own fields are of its page."""
        return forms.ModelForm

    # --- The list -------------------------------------------------------------------

    @admin.display(description=_("URL"))
    def address(self, row: HttpTool) -> str:
        return mask_url(row.url)

    @admin.display(description=_("query"))
    def query_names(self, row: HttpTool) -> str:
        return _names(row.query)

    @admin.display(description=_("headers"))
    def header_names(self, row: HttpTool) -> str:
        return _names(row.headers)

    @admin.display(description=_("body"))
    def body_state(self, row: HttpTool) -> str:
        return f"{row.get_body_kind_display()} {MASK if row.body else ''}"

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

    @admin.display(description=_("changed"), ordering="updated_at")
    def changed(self, row: HttpTool) -> str:
        return format_moment(row.updated_at)

    @admin.action(description=_("Enable selected tools"), permissions=["change"])
    def enable(self, request: HttpRequest, rows: Any) -> None:
        self._switch(request, rows, enabled=True)

    @admin.action(description=_("Disable selected tools"), permissions=["change"])
    def disable(self, request: HttpRequest, rows: Any) -> None:
        self._switch(request, rows, enabled=False)

    def _switch(self, request: HttpRequest, rows: Any, *, enabled: bool) -> None:
        for row in (changed := list(rows.exclude(enabled=enabled))):
            self.log_change(request, row, [{"changed": {"fields": ["enabled"]}}])
        with record_changes(cast("User", request.user), *changed):
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

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.trial_view)
        return [
            path("<path:object_id>/trial/", view, name="tools_httptool_trial"),
            *super().get_urls(),
        ]

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

    def trial_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The form for the arguments and, once it is sent, the request that was made and what came
        of it."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        row = get_object_or_404(HttpTool, pk=parse_row_number(object_id))
        form = ArgumentForm(
            row.parameters_schema or NO_ARGUMENTS,
            request.POST if request.method == "POST" else None,
        )
        page: dict[str, Any] = {
            "form": form,
            "troubles": list_problems(row, load_secret_states()),
            "title": gettext("Test run"),
            "subtitle": str(row),
        }
        if form.is_valid():
            trial = run_dry_run(row, form.arguments())
            words = gettext("succeeded") if trial.result.success else gettext("failed")
            self.log_change(request, row, gettext("Test run: %(outcome)s.") % {"outcome": words})
            page |= dry_run_context(trial) | {"outcome": words}
        page |= {"original": row, "opts": self.opts, "media": self.media}
        return TemplateResponse(
            request,
            "admin/tools/httptool/trial.html",
            {**self.admin_site.each_context(request), **page},
        )


def load_secret_states() -> dict[str, bool]:
    """The names of all secrets, and whether each can still be read."""
    return {
        secret.name: secret.is_readable for secret in Secret.objects.order_by("name")[:SECRETS_READ]
    }


def _names(entries: Any) -> str:
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

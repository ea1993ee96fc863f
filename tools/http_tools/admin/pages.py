"""x"""

import json
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _

from tools.admin.declared import ArgumentForm
from tools.admin.fields import JSON_INPUT
from tools.admin.record_pages import (
    Column,
    author_of,
    clamp_text,
    render_badge,
)
from tools.admin.settings_page import SettingsForm, mask_values
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import run_with_fetcher
from tools.http_tools.admin.openapi import ImportPages
from tools.http_tools.admin.table_field import EntriesField, ParametersField
from tools.http_tools.provider import DryRun, dry_run_tool
from tools.http_tools.validation import (
    PROVIDER,
    ValidationContext,
    check_http_tool,
    parse_json_or_none,
    secret_names,
    tool_warnings,
)
from tools.models import HttpTool, Secret, ToolConfig
from tools.models.row_history import record_changes
from tools.secrets.hosts import format_origin, parse_host
from tools.secrets.masked import MASK, mask_url
from tools.secrets.models import load_secrets
from tools.text.readable import drop_surrogates, format_readable, shorten_text

FORM = HttpTool.Body.FORM.value
NONE = HttpTool.Body.NONE.value
HELP = {
    "name": _("What the model calls it by, e.g. city_weather: letters, digits, _ and - only."),
    "enabled": _("A disabled tool is not offered to the model, but can be tried out here."),
    "description": _(
        "What the tool is good for and when to use it. The model decides by these words alone."
    ),
    "url": _(
        "{city} stands for the argument “city”. Host and beginning are always the same, whatever "
        "the arguments are."
    ),
    "body_kind": _("What is sent along with POST, PUT or PATCH."),
    "body": _(
        'JSON: an argument stands in quotes, also where it is a number or a list: {"city": '
        '"{city}", "days": "{days}"}.'
        " Parts whose argument was not given are left out. In JSON only texts are templates; a "
        "plain brace in one is written twice."
    ),
    "answer_kind": _(
        "The whole answer, or only the part of a JSON answer that is of use: it costs less and is "
        "understood better."
    ),
    "answer_path": _("E.g. $.current.temperature or $.items[*].title"),
    "timeout_seconds": _("A request that takes longer is stopped."),
    "max_kib": _("A larger answer is refused."),
    "cache_seconds": _(
        "The same request within this time gets the same answer without being sent again. 0: every "
        "request is sent."
    ),
}
PLACEHOLDERS = {
    "name": "city_weather",
    "url": "https://api.example.com/v1/weather/{city}",
    "answer_path": "$.current",
}


class HttpToolForm(SettingsForm):
    """One tool. What makes no sense is refused by the model, field by field."""

    parameters_schema = ParametersField(
        label=_("Arguments"),
        help_text=_("What the model has to say, or may say, when it uses the tool."),
    )
    query = EntriesField(
        "q",
        "{city}",
        label=_("Query"),
        help_text=_(
            "What stands behind the “?” of the URL. An entry whose argument was not given is left "
            "out."
        ),
    )
    headers = EntriesField(
        "Authorization",
        "Bearer {secret:weather_key}",
        label=_("Headers"),
        help_text=_("Keys belong here or into the query as {secret:NAME}, never as they are."),
    )
    form_fields = EntriesField(
        "city",
        "{city}",
        label=_("Form fields"),
        help_text=_("What is sent as browsers send forms."),
    )

    class Meta:
        model = HttpTool
        fields = (
            "name",
            "enabled",
            "description",
            "method",
            "url",
            "query",
            "headers",
            "body_kind",
            "body",
            "answer_kind",
            "answer_path",
            "timeout_seconds",
            "max_kib",
            "cache_seconds",
            "parameters_schema",
        )
        help_texts = HELP
        widgets = {  # noqa: RUF012 - Django's own way to say it
            "description": forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
            "url": forms.TextInput(
                attrs={"class": "vLargeTextField template", "spellcheck": "false"}
            ),
            "body": forms.Textarea(attrs=JSON_INPUT | {"rows": 6}),
            "answer_path": forms.TextInput(
                attrs={"class": "vTextField template", "spellcheck": "false"}
            ),
        }

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        if self.instance.body_kind == FORM and isinstance(
            entries := parse_json_or_none(self.instance.body), dict
        ):
            self.initial.update({"form_fields": entries, "body": ""})
        for name in PLACEHOLDERS.keys() & self.fields.keys():
            self.fields[name].widget.attrs["placeholder"] = PLACEHOLDERS[name]

    def clean(self) -> dict[str, Any]:
        """A form's fields are the body; a request without one has none."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("body_kind") == FORM and "form_fields" in cleaned:
            cleaned["body"] = json.dumps(cleaned["form_fields"], ensure_ascii=False)
        elif cleaned.get("body_kind") == NONE:
            cleaned["body"] = ""
        return cleaned

    def _update_errors(self, errors: ValidationError) -> None:
        """What is wrong with the body of a form is shown where its fields are."""
        found = getattr(errors, "error_dict", {})
        if self.cleaned_data.get("body_kind") == FORM and "body" in found:
            found["form_fields"] = found.pop("body")
        super()._update_errors(errors)  # type: ignore[misc]


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
    first_fields = (
        *("name", "enabled", "description", "parameters_schema", "method", "url", "headers"),
    )
    more_fields: ClassVar = (
        (_("Request"), ("query", "body_kind", "body", "form_fields")),
        (
            _("Answer"),
            ("answer_kind", "answer_path", "timeout_seconds", "max_kib", "cache_seconds"),
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
    query_names = Column(_("query"), lambda row: mask_values(row.query))
    header_names = Column(_("headers"), lambda row: mask_values(row.headers))
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
    def enable(self, request: HttpRequest, rows: object) -> None:
        self._switch(request, rows, enabled=True)

    @admin.action(description=_("Disable selected tools"), permissions=["change"])
    def disable(self, request: HttpRequest, rows: object) -> None:
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

"""The page of a tool with what only the agent knows: how it was used, and what it does when it is
run."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext

from agent.admin.tools.trial import ToolTrial, explain_obstacle, run_trial
from agent.admin.tools.use import load_tool_use
from agent.run.flow import PROVIDER_NAME
from tools.admin import ToolConfigAdmin
from tools.admin.argument_form import ArgumentForm
from tools.contract import ToolContentItem, is_picture
from tools.models import ToolConfig
from tools.text.readable import drop_surrogates, format_readable, shorten_text

admin.site.unregister(ToolConfig)


@admin.register(ToolConfig)
class ToolPageAdmin(ToolConfigAdmin):
    def page_context(self, request: HttpRequest, config: ToolConfig) -> dict[str, Any]:
        page = super().page_context(request, config)
        if request.user.has_perm("agent.view_toolcall"):
            page["use"] = load_tool_use(config.name)
            page["calls_url"] = reverse(
                "admin:agent_toolcall_changelist", query={"tool": config.name}
            )
        if self.has_change_permission(request, config):
            if config.provider_name == PROVIDER_NAME:  # among them are those that act in a chat
                page["trial_obstacle"] = explain_obstacle(config)
            page["trial_url"] = reverse("admin:tools_toolconfig_trial", args=(config.pk,))
        return page

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.trial_view)
        return [
            path("<path:object_id>/trial/", view, name="tools_toolconfig_trial"),
            *super().get_urls(),
        ]

    def trial_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The form for the tool's arguments and, once it is sent, what the call came to."""
        config = self.changeable(request, object_id)
        form = ArgumentForm(
            config.declaration.get("parameters_schema"),
            request.POST if request.method == "POST" else None,
        )
        page: dict[str, Any] = {"form": form, "obstacle": explain_obstacle(config)}
        if not page["obstacle"] and form.is_valid():
            trial = run_trial(config, form.arguments(), request.user.get_username())
            self.log_change(
                request, config, gettext("Test run: %(outcome)s.") % {"outcome": _outcome(trial)}
            )
            page |= trial_context(trial)
        page |= {
            "title": gettext("Test run"),
            "subtitle": str(config),
            "original": config,
            "opts": self.opts,
        }
        return TemplateResponse(
            request,
            "admin/tools/toolconfig/trial.html",
            {**self.admin_site.each_context(request), **page},
        )


def trial_context(trial: ToolTrial) -> dict[str, Any]:
    """A call and its result as a page shows them, for results of any form."""
    result = trial.result
    text = result.get_history_content() if result.success else result.content
    return {
        "trial": trial,
        "outcome": _outcome(trial),
        "request_json": format_readable(trial.arguments),
        "text": drop_surrogates(shorten_text(text)),
        "error": drop_surrogates(shorten_text(result.error_message)),
        "detail": drop_surrogates(shorten_text(str(result.metadata.get("error_detail") or ""))),
        "structured_json": ""
        if result.structured_content is None
        else format_readable(result.structured_content),
        "pictures": [_data_url(item) for item in result.content_items if is_picture(item)],
    }


def _outcome(trial: ToolTrial) -> str:
    return gettext("succeeded") if trial.result.success else gettext("failed")


def _data_url(item: ToolContentItem) -> str:
    return f"data:{item.mime_type};base64,{item.data}"

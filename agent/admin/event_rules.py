"""Rules of events and keywords: what becomes of what happens in chats, and of what is said."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _

from agent.admin.tools import with_registry
from agent.domain.event_rules import KEYWORD, EventAction
from agent.models import EventRule
from agent.models.scope import SCOPE
from agent.pages.manners import scope_words, shorten_list
from tools.admin.fields import JSON_INPUT, IndentedJSONField, choosing, name_source
from tools.admin.record_pages import Column, clamp_text, record_link, render_badge
from tools.admin.settings_page import SettingsAdmin, SettingsForm
from tools.contract import InvalidArguments, ToolFailed
from tools.models import ToolConfig
from tools.schemas.arguments import check_arguments
from tools.text.readable import shorten_text

#: Characters of what a broader row says that a form shows.
SHOWN = 200


class YesNo(forms.NullBooleanSelect):
    """Takes what a box sends, too, as scripts do that were written for one."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> bool | None:
        return data.get(name) == "on" or super().value_from_datadict(data, files, name)


class EventRuleForm(SettingsForm):
    """One row. What is wrong with a value is said beside its field."""

    class Meta:
        model = EventRule
        exclude = ()
        field_classes = {"arguments": IndentedJSONField}  # noqa: RUF012 - Django's own way to say it
        widgets = {  # noqa: RUF012 - as above
            "account": forms.TextInput(attrs=choosing("account")),
            "chats": forms.Textarea(attrs={"rows": 3} | choosing("chat", "chat")),
            "text": forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
            "mention": YesNo,
            "words": forms.Textarea(attrs={"rows": 3}),
            "tool": forms.TextInput(attrs={"class": "vTextField"} | choosing("tool")),
            "arguments": forms.Textarea(attrs=JSON_INPUT),
        }

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        row: EventRule = self.instance
        self.initial["arguments"] = self.initial.get("arguments") or None
        if not row.pk:  # a new one, for what a link leads to
            row = EventRule(**{name: self.initial.get(name) or "" for name in ("kind", *SCOPE)})
        for name, words, source in find_holding(row):
            self.show_unsaid(name, words, source)

    def clean_arguments(self) -> Any:
        given = self.cleaned_data["arguments"]
        return {} if given is None else given

    def _post_clean(self) -> None:
        """What the tool takes is asked where all else is right."""
        super()._post_clean()
        rule = self.instance.find_whole()
        if rule.action == EventAction.TOOL and not self.errors:
            for field, line in _tool_problems(rule.tool, rule.arguments):
                self.add_error(field, line)


def find_holding(row: EventRule) -> Iterator[tuple[str, Any, str]]:
    """What counts where ``row`` says nothing, with its words and where it comes from."""
    rule = row.find_whole()
    named = EventRule.objects.filter(name__in=rule.said_by.values())
    links = {one.name: record_link("agent_eventrule", one.pk, one.name) for one in named}
    yield "action", EventAction.NOTHING.value, name_source("")
    yield "mention", False, name_source("")
    for name, broader in rule.said_by.items():
        value, link = getattr(rule, name), links.get(broader, broader)
        if isinstance(value, dict):
            value = json.dumps(value, ensure_ascii=False)
        words = shorten_text(value, SHOWN) if isinstance(value, str) else value
        yield name, words, format_html("{} “{}”", EventRule._meta.verbose_name, link)


def _tool_problems(name: str, arguments: dict[str, Any]) -> list[tuple[str, str]]:
    """What is wrong with a call, each with its field. Of a tool that is away its name alone is
    known."""
    spec = with_registry(lambda registry: registry.get_tool_spec(name))
    if spec is None:
        is_known = ToolConfig.objects.filter(name=name).exists()
        return [] if is_known else [("tool", gettext("There is no tool of that name."))]
    try:
        check_arguments(spec.parameters_schema, arguments)
    except (InvalidArguments, ToolFailed) as error:  # the first has a line for each problem
        return [("arguments", line) for line in str(error).splitlines()]
    return []


_TWO_LINES = '{} <div class="quiet">{}</div>'


def _done(row: EventRule) -> str:
    said = row.tool if row.action == EventAction.TOOL else row.text or row.file
    action = row.get_action_display() or _("as the broader row says")
    return format_html(_TWO_LINES, action, clamp_text(said[:200]))


def _about(row: EventRule) -> str:
    words = shorten_list(row.lines) if row.kind == KEYWORD else ""
    return format_html(_TWO_LINES, row.get_kind_display(), words)


@admin.register(EventRule)
class EventRuleAdmin(SettingsAdmin):
    form = EventRuleForm
    list_display = ("name", "state", "about", "done", "scope", "changed")
    list_filter = ("enabled", "kind", "action", "chat_kind")
    search_fields = ("name", "text", "words", "tool", "account", "chats")
    columns: ClassVar = {
        "state": Column(
            _("state"),
            lambda row: render_badge(
                *(("succeeded", _("on")) if row.enabled else ("off", _("off")))
            ),
        ),
        "about": Column(_("kind"), _about),
        "done": Column(_("what is done"), _done),
        "scope": Column(_("where it counts"), scope_words),
    }
    first_fields = ("name", "kind", "words", "match", "action", "text", "mention", "chats")
    more_fields: ClassVar = (
        (_("Picture or tool"), ("file", "tool", "arguments")),
        (_("Where it counts"), ("enabled", "account", "chat_kind")),
    )

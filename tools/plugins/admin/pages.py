"""Plugins: their status, capabilities, configuration and history. All words of plugins are made
harmless here."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, ClassVar, cast
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import F, Model
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from tools.admin.declared import look_badge
from tools.admin.record_pages import (
    Column,
    RecordAdmin,
    Rows,
    author_of,
    clamp_text,
    format_moment,
    parse_row_number,
    record_link,
    render_badge,
    require,
)
from tools.admin.settings_page import SettingsAdmin, SettingsForm
from tools.models import Plugin, PluginLogLine, PluginStatus, PluginValue, ToolConfig
from tools.models.row_history import record_changes
from tools.plugins.admin.config import PluginConfigForm
from tools.plugins.capabilities import CAPABILITIES
from tools.plugins.folder import STALE
from tools.plugins.manifest import RequirementStatus, check_requirements
from tools.plugins.rows import config_properties
from tools.text.error_words import retell, tell_again
from tools.text.readable import (
    TEXT_LIMIT,
    drop_surrogates,
    escape_invisible_chars,
    format_readable,
    shorten_text,
)

State = PluginStatus.PluginState
#: Lines of the log, crashes and stored values that a page shows; names of a list.
LINES, CRASHES, VALUES, NAMES = 200, 20, 20, 200
#: Versions and packages that a page shows.
REQUIREMENTS = 53
#: Characters of one line, of the last words of a crash, and of a value.
LINE_CHARS, LAST_WORDS, VALUE_CHARS = 4_000, 20_000, 200
#: Characters of what a tool says of itself.
TOOL_CHARS = 300
LEVELS = ("debug", "info", "warning", "error", "stdout", "stderr")
#: From the worst to the best.
STATES = (State.BROKEN, State.WAITING, State.STARTING, State.RUNNING)
BADGES = {
    State.BROKEN: "failed",
    State.WAITING: "waiting",
    State.STARTING: "pending",
    State.RUNNING: "succeeded",
}
#: What stays as it is: layout, the wide space, and signs without which some scripts and pictures
#: fall apart.
PLUGIN_UNESCAPED_CHARS = "\n\t\u3000\u200c\u200d\ufe0e\ufe0f"


def escape_plugin_text(text: object, limit: int = LINE_CHARS) -> str:
    """``text``, cut, with every character that would do something and not be seen written as its
    escape."""
    return escape_invisible_chars(
        drop_surrogates(shorten_text(str(text), limit)), keep=PLUGIN_UNESCAPED_CHARS
    )


def tell_fault(text: str) -> str:
    """What is wrong with a plugin, in the reader's language as far as it is of ours; what the
    plugin said itself is marked as such."""
    told = tell_again(text)
    shown = escape_plugin_text(told.sentence)
    return format_html('<span lang="">{}</span>', shown) if text and told.is_foreign else shown


# --- Capabilities ---------------------------------------------------------------


def requested_capabilities(plugin: Plugin) -> list[str]:
    """The capabilities that the manifest requests, in its order."""
    asked = manifest_of(plugin).get("capabilities")
    return (
        list(dict.fromkeys(name for name in asked if isinstance(name, str)))[:NAMES]
        if isinstance(asked, list)
        else []
    )


def grantable_capabilities(plugin: Plugin) -> list[str]:
    """Those of them that there are."""
    return [name for name in requested_capabilities(plugin) if name in CAPABILITIES]


def new_capabilities(plugin: Plugin) -> list[str]:
    """The capabilities that it requests now and did not at the last decision about it; none before
    the first decision."""
    if not isinstance(plugin.decided, list):
        return []
    return [name for name in grantable_capabilities(plugin) if name not in plugin.decided]


def manifest_of(plugin: Plugin) -> dict[str, Any]:
    return plugin.manifest if isinstance(plugin.manifest, dict) else {}


def config_schema_of(plugin: Plugin) -> Any:
    """The schema of its configuration; None where there is nothing to configure."""
    schema = manifest_of(plugin).get("config_schema")
    return schema if config_properties(schema) else None


# --- Status ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PluginPresence:
    """A plugin in one server process; ``is_stale``: the process has not been heard of for too
    long."""

    status: PluginStatus
    is_stale: bool
    badge: str
    error: str


def list_presences(statuses: Iterable[PluginStatus]) -> list[PluginPresence]:
    """The processes that know the plugin, those heard of last first."""
    now = timezone.now()
    return [
        _presence(one, now)
        for one in sorted(statuses, key=lambda one: (one.seen_at, one.process_id), reverse=True)
    ]


def _presence(status: PluginStatus, now: datetime) -> PluginPresence:
    is_stale = now - status.seen_at > STALE
    label = ("silent", gettext("no longer heard of")) if is_stale else _state(status.state)
    return PluginPresence(status, is_stale, render_badge(*label), tell_fault(status.error))


def _state(state: str) -> tuple[str, str]:
    if (
        state == State.RUNNING
    ):  # the same English word is used of messages, and is another one in other languages
        return BADGES[State.RUNNING], gettext("up and running")
    return (
        (BADGES[State(state)], str(State(state).label))
        if state in State.values
        else ("silent", escape_plugin_text(state, 40))
    )


def plugin_badge(plugin: Plugin, known: Sequence[PluginPresence]) -> str:
    """The plugin's state in one label: the worst one of all processes."""
    if plugin.fault:
        return render_badge("failed", gettext("cannot run"))
    if not plugin.enabled:
        return render_badge("silent", gettext("disabled"))
    states = {one.status.state for one in known if not one.is_stale}
    worst = next((state for state in STATES if state in states), None)
    return (
        render_badge(*_state(worst))
        if worst
        else render_badge("pending", gettext("not running anywhere"))
    )


def plugin_error(plugin: Plugin, known: Sequence[PluginPresence]) -> str:
    """What is wrong with it, in its row or in a process; "" where nothing is."""
    return tell_fault(plugin.fault) or next(
        (one.error for one in known if one.error and not one.is_stale), ""
    )


def list_requirements(plugin: Plugin) -> list[RequirementStatus]:
    """The versions and the Python packages that the manifest requires."""
    return [
        replace(
            need,
            what=escape_plugin_text(need.what, 200),
            found=escape_plugin_text(need.found, 40),
        )
        for need in islice(check_requirements(manifest_of(plugin)), REQUIREMENTS)
    ]


# --- Its tools ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PluginToolSummary:
    """A tool that the plugin names; ``config`` is the row of settings, where there is one that is
    its own."""

    name: str
    description: str
    is_offered: bool
    config: ToolConfig | None

    @property
    def look(self) -> str:
        """The badge of a tool that needs a review."""
        return look_badge(self.config) if self.config else ""


def list_plugin_tools(plugin: Plugin, known: Sequence[PluginPresence]) -> list[PluginToolSummary]:
    """The tools that it offers now, and those that its manifest names."""
    offered = [str(name) for one in known if not one.is_stale for name in _listed(one.status.tools)]
    named = {
        str(tool.get("name")): str(tool.get("description") or "")
        for tool in _named(plugin)
        if tool.get("name")
    }
    names = list(dict.fromkeys([*offered, *named]))[:NAMES]
    configs = {
        config.name: config
        for config in ToolConfig.objects.filter(name__in=names, provider_name=plugin.plugin_id)
    }
    declared = {name: config.declaration.get("description") for name, config in configs.items()}
    return [
        PluginToolSummary(
            escape_plugin_text(name, 100),
            escape_plugin_text(declared.get(name) or named.get(name, ""), TOOL_CHARS),
            name in offered,
            configs.get(name),
        )
        for name in names
    ]


def plugin_tool_names(plugin: Plugin, known: Sequence[PluginPresence]) -> list[str]:
    """What the list shows: the tools that are offered now; where none are, those that the manifest
    names."""
    offered = [str(name) for one in known if not one.is_stale for name in _listed(one.status.tools)]
    names = offered or [str(tool.get("name")) for tool in _named(plugin)]
    return [escape_plugin_text(name, 100) for name in dict.fromkeys(names)]


def _named(plugin: Plugin) -> list[dict[str, Any]]:
    return [tool for tool in _listed(manifest_of(plugin).get("tools")) if isinstance(tool, dict)]


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


# --- Log and history ------------------------------------------------------------


def log_page(plugin: Plugin, level: str, before: int) -> dict[str, Any]:
    """The newest lines of its log, or those before the line ``before``; of one ``level``, or of all
    for any other word."""
    rows = PluginLogLine.objects.filter(plugin=plugin)
    level = level if level in LEVELS else ""
    rows = rows.filter(level=level) if level else rows
    found = list((rows.filter(pk__lt=before) if before else rows).order_by("-pk")[: LINES + 1])
    lines = [
        (line.at, escape_plugin_text(line.level, 8), escape_plugin_text(line.text))
        for line in found[:LINES]
    ]
    older = found[LINES - 1].pk if len(found) > LINES else 0
    return {"lines": lines, "level": level, "levels": LEVELS, "older": older, "before": before}


def list_crashes(plugin: Plugin) -> list[tuple[datetime, str, str]]:
    """When its process ended, why, and its last words; the newest first."""
    rows = plugin.crash_reports.order_by("-pk")[:CRASHES]
    return [
        (crash.at, tell_fault(crash.reason), escape_plugin_text(crash.detail, LAST_WORDS))
        for crash in rows
    ]


def list_stored_values(plugin: Plugin) -> tuple[list[tuple[PluginValue, str, str]], int]:
    """The values that it stored last, each with its key and the beginning of it, and how many there
    are."""
    rows = PluginValue.objects.filter(plugin=plugin)
    newest = list(rows.order_by("-updated_at").values_list("pk", flat=True)[:VALUES])
    shown = [
        (
            row,
            escape_plugin_text(row.key, 128),
            escape_plugin_text(json.dumps(row.value, ensure_ascii=False), VALUE_CHARS),
        )
        for row in PluginValue.objects.filter(pk__in=newest).order_by("-updated_at")
    ]
    return shown, rows.count() if len(shown) == VALUES else len(shown)


#: Tools of a plugin that the list names.
TOOLS_SHOWN = 5


class PluginForm(SettingsForm):
    """The operator's settings of a plugin; its configuration is a separate form inside this one.

    ``asked`` are the capabilities that the page showed: what the plugin asks for since then
    is not decided by it.
    """

    granted = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    asked = forms.CharField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = Plugin
        fields = ("enabled",)

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self.config = PluginConfigForm(
            config_schema_of(self.instance),
            self.instance.config,
            self.data if self.is_bound else None,
        )
        names = grantable_capabilities(self.instance)
        if "granted" in self.fields:  # read-only pages have no fields
            cast("forms.MultipleChoiceField", self.fields["granted"]).choices = [
                (name, name) for name in names
            ]
            self.initial["granted"] = [name for name in names if name in self.instance.granted]
            self.initial["asked"] = " ".join(names)

    def clean(self) -> dict[str, Any]:
        """Enabling needs a plugin that can run, and a configuration that it takes."""
        cleaned = super().clean() or {}
        is_enabled = bool(cleaned.get("enabled"))
        if is_enabled and "enabled" in self.changed_data and self.instance.fault:
            self.add_error(
                "enabled",
                gettext("It cannot run as it is: %(fault)s")
                % {"fault": escape_plugin_text(retell(self.instance.fault))},
            )
        if self.config.find_problems(is_enabled=is_enabled):
            self.add_error(None, gettext("Its configuration is not in order."))
        return cleaned

    def values(self) -> dict[str, Any]:
        """The columns that a valid form sets, and no others: the program writes the rest of the row
        meanwhile."""
        names, granted = grantable_capabilities(self.instance), self.cleaned_data["granted"]
        shown = {*self.cleaned_data["asked"].split(), *granted}
        before = self.instance.decided if isinstance(self.instance.decided, list) else []
        return {
            "enabled": self.cleaned_data["enabled"],
            "granted": granted,
            "decided": [name for name in names if name in shown or name in before],
            "config": self.config.stored(),
        }

    def change_words(self) -> str:
        """What was decided, in a sentence for the history; no value of the configuration is in
        it."""
        before, after = set(self.initial["granted"]), set(self.cleaned_data["granted"])
        said = []
        if "enabled" in self.changed_data:
            said.append(
                gettext("Enabled.") if self.cleaned_data["enabled"] else gettext("Disabled.")
            )
        for words, names in (
            (gettext("Granted: %(names)s."), sorted(after - before)),
            (gettext("No longer granted: %(names)s."), sorted(before - after)),
            (gettext("Configured: %(names)s."), self.config.changed_names()),
        ):
            said += [words % {"names": ", ".join(names)}] if names else []
        return " ".join(said)


@admin.register(Plugin)
class PluginAdmin(SettingsAdmin, RecordAdmin):
    # A user who may change a plugin can make code on this machine's disk run.
    rights = frozenset({"change"})
    form = PluginForm
    ordering = ("folder", "id")
    list_display = ("plugin", "state", "tools")
    list_filter = ("enabled",)
    are_few = True  # as folders of one folder
    text_fields = ("folder", "plugin_id")
    free_lookups = frozenset({"folder__gt"})
    search_help_text: ClassVar = _("Words of a folder's name or of an id.")
    change_list_template = "admin/tools/plugin/change_list.html"
    change_form_template = "admin/tools/plugin/change_form.html"
    fields = ("enabled", "granted", "asked")
    buttons = ("reload", "forget")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Of a plugin whose folder is gone the rest can be deleted; any other would be found
        again."""
        is_gone = isinstance(obj, Plugin) and not (settings.PLUGINS_DIR / obj.folder).is_dir()
        return is_gone and request.user.has_perm("tools.delete_plugin")

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """The plugins alone: what is deleted with one are its log, its crashes and its values."""
        return [str(obj) for obj in objs], {self.opts.verbose_name_plural: len(objs)}, set(), []

    def beyond(self, row: Plugin) -> dict[str, object]:
        return {"folder__gt": row.folder}

    def get_queryset(self, request: HttpRequest) -> Rows:
        return super().get_queryset(request).prefetch_related("statuses")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().changelist_view(
            request, {"plugins_folder": settings.PLUGINS_DIR, **(extra_context or {})}
        )

    @admin.display(description=_("plugin"))
    def plugin(self, plugin: Plugin) -> str:
        name = escape_plugin_text(manifest_of(plugin).get("name") or plugin, 100)
        words = " · ".join(
            dict.fromkeys(filter(None, (plugin.plugin_id, plugin.folder, plugin.version)))
        )
        return format_html('{}<div class="quiet">{}</div>', name, escape_plugin_text(words, 300))

    @admin.display(description=_("state"))
    def state(self, plugin: Plugin) -> str:
        """Its state in a label or two, and the last error."""
        known = list_presences(plugin.statuses.all())
        more = render_badge("waiting", gettext("asks for more")) if new_capabilities(plugin) else ""
        error = plugin_error(plugin, known)
        return format_html(
            "{} {} {}", plugin_badge(plugin, known), more, clamp_text(error) if error else ""
        )

    @admin.display(description=_("tools"))
    def tools(self, plugin: Plugin) -> str:
        names = plugin_tool_names(plugin, list_presences(plugin.statuses.all()))
        rest = len(names) - TOOLS_SHOWN
        more = (
            [ngettext("and %(count)d more", "and %(count)d more", rest) % {"count": rest}]
            if rest > 0
            else []
        )
        return clamp_text(", ".join([*names[:TOOLS_SHOWN], *more])) if names else "-"

    def page_context(self, request: HttpRequest, obj: Plugin) -> dict[str, Any]:
        manifest, known = manifest_of(obj), list_presences(obj.statuses.all())
        author, new = manifest.get("author"), new_capabilities(obj)
        page: dict[str, Any] = {
            "facts": _facts(obj, author if isinstance(author, dict) else {"name": author}),
            "glance": plugin_badge(obj, known),
            "fault": tell_fault(obj.fault),
            "description": escape_plugin_text(manifest.get("description") or ""),
            "needs": list_requirements(obj),
            "presences": known,
            "tool_rows": list_plugin_tools(obj, known),
            "log": log_page(
                obj, request.GET.get("level", ""), parse_row_number(request.GET.get("before", ""))
            ),
            "crashes": list_crashes(obj),
            "capabilities": [
                {
                    "name": name,
                    "label": CAPABILITIES[name].label,
                    "is_granted": name in obj.granted,
                    "is_new": name in new,
                }
                for name in grantable_capabilities(obj)
            ],
            "unknown_capabilities": [
                escape_plugin_text(name, 64)
                for name in requested_capabilities(obj)
                if name not in CAPABILITIES
            ],
        }
        if not self.has_change_permission(request):
            page["config"] = PluginConfigForm(config_schema_of(obj), obj.config)
        if request.user.has_perm("tools.view_pluginvalue"):
            page["values"], page["value_count"] = list_stored_values(obj)
            query = urlencode({"plugin__id__exact": obj.pk})
            page["values_url"] = f"{reverse('admin:tools_pluginvalue_changelist')}?{query}"
        return page

    def save_model(self, request: HttpRequest, obj: Plugin, form: PluginForm, change: bool) -> None:
        with record_changes(author_of(request), obj):
            Plugin.objects.filter(pk=obj.pk).update(**form.values(), updated_at=timezone.now())

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        return form.change_words() or super().construct_change_message(request, form, formsets, add)

    def reload_view(self, request: HttpRequest, plugin: Plugin) -> HttpResponse:
        """Make every server process reload the plugin at its next check."""
        Plugin.objects.filter(pk=plugin.pk).update(reloads=F("reloads") + 1)
        logged = gettext("Asked for a reload.")
        if plugin.enabled:
            words = gettext("The plugin is loaded anew; calls under way are finished first.")
            return self.tell_done(request, plugin, words, logged)
        words = gettext("The plugin is disabled: there is nothing to load.")
        return self.tell_done(request, plugin, words, logged, messages.WARNING)

    def forget_view(self, request: HttpRequest, plugin: Plugin) -> HttpResponse:
        """Delete everything that the plugin has stored."""
        require(request.user.has_perm("tools.delete_pluginvalue"))
        count, _by_model = PluginValue.objects.filter(plugin=plugin).delete()
        words = ngettext(
            "%(count)d stored value was deleted.", "%(count)d stored values were deleted.", count
        ) % {"count": count}
        return self.tell_done(request, plugin, words, words)


def _facts(plugin: Plugin, author: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts in the manifest; missing ones are left out."""
    manifest = manifest_of(plugin)
    facts = (
        (gettext("name"), manifest.get("name")),
        (gettext("id"), plugin.plugin_id),
        (gettext("version"), plugin.version),
        (gettext("made by"), author.get("name")),
        (gettext("license"), manifest.get("license")),
        (gettext("folder"), settings.PLUGINS_DIR / plugin.folder),
    )
    return [(label, escape_plugin_text(value, 500)) for label, value in facts if value]


@admin.register(PluginValue)
class PluginValueAdmin(RecordAdmin):
    rights = frozenset({"delete"})
    actions = ("delete_selected",)  # type: ignore[assignment] # the base has none
    list_display = ("shown_key", "owner", "changed")
    list_select_related = ("plugin",)
    list_defer = ("value", "plugin__config", "plugin__manifest")
    indexed_lookups = frozenset({"plugin__id__exact"})
    text_fields = ("key",)
    fields = ("shown_key", "owner", "updated_at", "value_json")
    columns: ClassVar = {
        "shown_key": Column(_("key"), lambda value: escape_plugin_text(value.key, 128)),
        "owner": Column(
            _("plugin"),
            lambda value: record_link(
                "tools_plugin", value.plugin_id, escape_plugin_text(value.plugin, 128)
            ),
        ),
        "changed": Column(_("changed"), lambda value: format_moment(value.updated_at)),
        "value_json": Column(
            _("value"),
            lambda value: format_html(
                '<pre class="json">{}</pre>',
                escape_plugin_text(format_readable(value.value), TEXT_LIMIT),
            ),
        ),
    }

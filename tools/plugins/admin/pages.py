"""Plugins: their status, capabilities, configuration and history."""

from typing import Any, ClassVar, cast
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import F, Model
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from tools.admin.filters import Rows
from tools.admin.record_pages import (
    Column,
    RecordAdmin,
    clamp_text,
    format_moment,
    parse_row_number,
    record_link,
    render_badge,
)
from tools.admin.settings_page import SettingsAdmin, SettingsForm, author_of
from tools.models import Plugin, PluginValue
from tools.models.row_history import record_changes
from tools.plugins.admin.config import PluginConfigForm
from tools.plugins.admin.facts import (
    config_schema_of,
    escape_plugin_text,
    grantable_capabilities,
    list_crashes,
    list_plugin_tools,
    list_presences,
    list_requirements,
    list_stored_values,
    log_page,
    manifest_of,
    new_capabilities,
    plugin_badge,
    plugin_error,
    plugin_tool_names,
    requested_capabilities,
    tell_fault,
)
from tools.plugins.capabilities import CAPABILITIES
from tools.text.error_words import retell
from tools.text.readable import TEXT_LIMIT, format_readable

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

    def __init__(self, *arguments: Any, **options: Any) -> None:
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

    def has_index(self, conditions: object) -> bool:
        """Plugins are the folders of one folder: few."""
        return True

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
        author = manifest.get("author")
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
            "capabilities": _capabilities(obj),
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
        if not request.user.has_perm("tools.delete_pluginvalue"):
            raise PermissionDenied
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


def _capabilities(plugin: Plugin) -> list[dict[str, Any]]:
    """The capabilities that it requests: name, meaning, whether granted and whether new."""
    new = new_capabilities(plugin)
    return [
        {
            "name": name,
            "label": CAPABILITIES[name].label,
            "is_granted": name in plugin.granted,
            "is_new": name in new,
        }
        for name in grantable_capabilities(plugin)
    ]


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

"""The page of the one row of the installation, and of all settings: what counts, where it comes
from, and why some stand nowhere but in the environment."""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext, gettext_lazy as _

from agent.models import Installation, Manners, ModelEndpoint, Persona
from agent.models.installation import VARIABLES
from agent.record.settings.installation import GIB, IN_BYTES, environment_value, load_installation
from agent.runtime.daily_backup import list_backups
from frostproject.cockpit.tables import name_table
from frostproject.configuration.env import SECRETS
from frostproject.signin import record
from onebot.models import Bot
from tools.admin.fields import SuggestedInput, name_source
from tools.admin.settings_page import SettingsAdmin, SettingsForm
from tools.local_time import known_zones
from tools.mcp.settings import may_run_commands
from tools.models import ToolConfigChange
from tools.secrets.masked import mask_url
from tools.text.readable import shorten_text

#: Settings in whose place rows of another table say something.
ELSEWHERE: dict[type[Any], tuple[str, ...]] = {
    ModelEndpoint: (
        *("UPSTREAM_ENDPOINT", "UPSTREAM_API_KEY", "MODEL_NAME", "VISUAL_MODEL_NAME"),
        *("CODER_ENDPOINT", "CODER_API_KEY", "CODER_MODEL_NAME", "TRANSCRIBE_MODEL_NAME"),
        *("EMBEDDING_MODEL_NAME", "LLM_TIMEOUT"),
    ),
    Persona: (
        *("SYSTEM_PROMPT", "MAX_ITERATIONS", "MAX_CONTEXT_MESSAGES", "MAX_CONTEXT_CHARS"),
        *("RUN_TIMEOUT", "VISION_MODE", "ENABLE_AT_IN_GROUP_MSG", "ENABLE_REPLY_IN_GROUP_MSG"),
    ),
    Manners: (
        *("GROUP_REPLY_ON_MENTION", "BOT_NAME", "BOT_ALIASES", "PERSON_ANSWERS_PER_MINUTE"),
        *("PERSON_ANSWERS_PER_DAY", "CHAT_ANSWERS_PER_MINUTE", "CHAT_ANSWERS_PER_DAY"),
    ),
    Bot: ("ONEBOT_ACCESS_TOKEN",),
}
#: Why the others can stand in no row.
REASONS = {
    _("It says where the rows are."): ("FROST_DATA_DIR", "DATABASE_URL"),
    _("It is read once, when the server starts."): (
        *("DEBUG", "REDIS_URL", "WS_LISTEN_ADDR", "LOG_FORMAT", "OTEL_EXPORTER_OTLP_ENDPOINT"),
        *("OTEL_SERVICE_NAME", "PLUGINS_DIR", "VERSION_URL"),
    ),
    _("It decides who and what can be reached: no page may widen it or lock everybody out."): (
        *("ADMIN_NETWORKS", "TRUST_LOOPBACK", "WS_ALLOWED_ORIGINS", "DJANGO_ALLOWED_HOSTS"),
        *("CSRF_TRUSTED_ORIGINS", "FETCH_ALLOW"),
    ),
    _("It opens the server to programs, and stays out of the database and its backups."): (
        *("HTTP_API_TOKEN", "MCP_SERVER_TOKEN", "METRICS_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS"),
        "FROST_BACKUP_PASSPHRASE",
    ),
    _("It bounds what programs may take of this machine."): (
        *("PLUGIN_MEMORY_MIB", "PLUGIN_CPU_SECONDS", "PLUGIN_OPEN_FILES", "PLUGIN_PROCESSES"),
    ),
    _("It is used at the first start alone."): (
        *("DJANGO_SUPERUSER_USERNAME", "DJANGO_SUPERUSER_PASSWORD", "DJANGO_SUPERUSER_EMAIL"),
    ),
    _("It is for tests alone."): ("FROST_FAULT",),
}
SOURCES = {"": _("default"), "file": ".env", "process": _("environment")}
#: Django's settings that are not called as their variable is.
NAMES = {**IN_BYTES, "FROST_DATA_DIR": "DATA_DIR", "DJANGO_ALLOWED_HOSTS": "ALLOWED_HOSTS"}
#: Fields for superusers alone: what is erased never comes back, and programs do as they like.
ERASING, PROGRAMS = ("record_keep_days", "event_keep_days"), ("mcp_allowed_commands",)
PROMPT_SHOWN = 120


def format_setting(variable: str, value: Any) -> str:
    """The ``value`` of a setting as people read it; of a secret only whether there is one."""
    if variable in SECRETS:
        return gettext("set") if value else gettext("not set")
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if variable in IN_BYTES:
        value /= GIB
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, tuple):  # the address of the server
        return ":".join(map(str, value))
    text = ", ".join(value) if isinstance(value, list) else str(value)
    if variable.endswith("_ENDPOINT"):
        text = mask_url(text)
    return shorten_text(text, PROMPT_SHOWN) or "-"


def list_settings() -> Iterator[dict[str, Any]]:
    """Every setting of ``.env.example``: its value, from where it is, and where or why not it is
    said elsewhere."""
    said = load_installation()[1]
    places = {name: model for model, names in ELSEWHERE.items() for name in names}
    reasons = {name: why for why, names in REASONS.items() for name in names}
    for variable in (*VARIABLES, *places, *(name for name in reasons if name not in places)):
        name = NAMES.get(variable, variable)
        one: dict[str, Any] = {"name": variable, "reason": reasons.get(variable, "")}
        one["value"] = format_setting(variable, said.get(name, environment_value(name)))
        one["source"] = SOURCES[settings.SETTING_SOURCES.get(variable, "")]
        if variable in VARIABLES:
            one |= {"url": f"#id_{variable.lower()}", "place": gettext("this page")}
            one["source"] = gettext("this page") if name in said else one["source"]
        elif model := places.get(variable):
            options = model._meta
            url = reverse(f"admin:{options.app_label}_{options.model_name}_changelist")
            one |= {"url": url, "place": name_table(options)}
        yield one


def find_locked(user: object, *, is_fresh: bool) -> tuple[str, ...]:
    """The fields that ``user`` may not change; ``is_fresh``: a password was just given."""
    if not getattr(user, "is_superuser", False):
        return (*ERASING, *PROGRAMS)
    return () if may_run_commands(user) and is_fresh else PROGRAMS


class InstallationForm(SettingsForm):
    """``is_fresh``: whether who fills it in gave a password a moment ago."""

    is_fresh = False
    again = ""

    class Meta:
        model = Installation
        exclude = ()
        widgets: ClassVar = {
            "mcp_allowed_commands": forms.Textarea(
                attrs={"rows": 3, "class": "template", "spellcheck": "false"}
            )
        }
        help_texts: ClassVar = {
            "time_zone": _(
                "For times on pages and in prompts, for quiet hours, and for the days and months "
                "of sums, limits and budgets."
            )
        }

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        for variable in VARIABLES:
            value = environment_value(NAMES.get(variable, variable))
            shown = value if variable == "LANGUAGE_CODE" else format_setting(variable, value)
            self.show_unsaid(variable.lower(), shown, name_source(variable))
            low, high = settings.SETTING_RANGES.get(variable, (None, None))
            if low is not None and (field := self.fields.get(variable.lower())):
                field.widget.attrs |= {"min": low, "max": high}
        if "time_zone" not in self.fields:  # who may only look
            return
        own = settings.MACHINE_TIME_ZONE  # is suggested first
        zones = [(zone, "") for zone in (own, *sorted(known_zones() - {own}))]
        attrs = {"class": "", "size": 32, "spellcheck": "false"}
        widget = self.fields["time_zone"].widget
        self.fields["time_zone"].widget = SuggestedInput(zones, widget.attrs | attrs)
        self.show_unsaid("time_zone", own, gettext("of the machine"))
        self._explain_locked()

    def locked(self) -> Collection[str]:
        return find_locked(self.user, is_fresh=self.is_fresh)

    def _explain_locked(self) -> None:
        locked = self.locked()
        for name in (*ERASING, *PROGRAMS):
            if name in locked:
                words = gettext("Only superusers change it.")
                if may_run_commands(self.user):
                    again = gettext("To change it, give your password once more.")
                    words = format_html('<a href="{}">{}</a>', self.again, again)
                elif getattr(self.user, "is_superuser", False):
                    words = gettext("It takes the permission to run commands besides.")
                field = self.fields[name]
                field.help_text = format_html("{} {}", field.help_text, words)


class InstallationAdmin(SettingsAdmin):
    rights = frozenset({"change"})
    form = InstallationForm
    change_form_template = "admin/agent/installation/change_form.html"
    first_fields = (
        *("time_zone", "language_code", *ERASING, "memory_chars", "summary_after_messages"),
        *PROGRAMS,
    )
    more_fields: ClassVar = (
        (_("Memory"), ("memory_extract_turns", "memory_review_hours")),
        (_("Limits and tools"), ("tokens_per_day", "approval_timeout", "defer_tools_above")),
        (
            _("Copies of media"),
            (
                *("media_keep_days", "media_keep_gib", "media_free_gib", "media_fetch_seconds"),
                *("media_fetch_mib", "media_person_mib_per_day"),
            ),
        ),
        (
            _("Pictures and files"),
            (
                *("picture_max_side", "picture_max_kib", "picture_max_megapixels"),
                *("file_excerpt_chars", "stickers_by_vision"),
            ),
        ),
        (_("Backups"), ("daily_backup", "backup_keep_gib")),
    )

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """There is one row: its form is the page."""
        row, _is_new = Installation.objects.get_or_create(pk=Installation.ONLY)
        answer: HttpResponse = self.changeform_view(request, str(row.pk), "", extra_context)
        return answer

    def get_form(
        self, request: HttpRequest, obj: object = None, change: bool = False, **options: object
    ) -> Any:
        form = super().get_form(request, obj, change=change, **options)
        page = urlencode({"next": f"{request.path}#id_{PROGRAMS[0]}"})
        again = f"{reverse('admin:sign_in_again')}?{page}"
        return type(form.__name__, (form,), {"is_fresh": record.is_fresh(request), "again": again})

    def page_context(self, request: HttpRequest, obj: object) -> dict[str, Any]:
        files = list_backups() if getattr(request.user, "is_superuser", False) else []
        shown = [
            (file.name, file.stat().st_size, datetime.fromtimestamp(file.stat().st_mtime, UTC))
            for file in files
        ]
        return {"all_settings": list(list_settings()), "backups": shown}

    def may_revert(self, request: HttpRequest, change: ToolConfigChange) -> bool:
        """What somebody may not change he does not take back either."""
        locked = find_locked(request.user, is_fresh=record.is_fresh(request))
        return not change.before.keys() & set(locked)

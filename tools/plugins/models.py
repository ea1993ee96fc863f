"""Plugins of the plugins folder, their capabilities and their history."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from tools.live_rows import LiveKind, LiveModel, Tracked
from tools.secrets.masked import mask_value


class Plugin(LiveModel):
    """A folder in the plugins folder, found by looking there. The operator decides whether it runs
    and what it may do."""

    live_kind = LiveKind.PLUGINS

    folder = models.CharField(_("folder"), max_length=255, unique=True, editable=False)
    plugin_id = models.CharField(_("id"), max_length=128, editable=False, default="")
    enabled = models.BooleanField(_("enabled"), default=False)
    granted = models.JSONField(_("granted capabilities"), blank=True, default=list)
    #: Capabilities that it requested when the operator last decided about it; None: not decided
    #: yet.
    decided = models.JSONField(editable=False, null=True, default=None)
    config = models.JSONField(_("configuration"), blank=True, default=dict)
    reloads = models.PositiveBigIntegerField(default=0, editable=False)
    version = models.CharField(_("version"), max_length=32, editable=False, default="")
    fault = models.TextField(_("what is wrong with it"), editable=False, default="")
    found_at = models.DateTimeField(_("first seen"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)
    manifest = models.JSONField(_("manifest"), editable=False, default=dict)

    tracked = Tracked(fields=("enabled", "granted"), sealed={"config": mask_value})

    class Meta:
        verbose_name = _("plugin")
        verbose_name_plural = _("plugins")
        ordering = ("folder",)

    def __str__(self) -> str:
        return self.plugin_id or self.folder


class PluginStatus(models.Model):
    """The status of one plugin in one server process. Only that process writes it, while it
    runs."""

    class PluginState(models.TextChoices):
        STARTING = "starting", _("starting")
        RUNNING = "running", _("running")
        WAITING = "waiting", _("waiting to start again")
        BROKEN = "broken", _("given up after repeated crashes")

    plugin = models.ForeignKey(
        Plugin, models.CASCADE, related_name="statuses", verbose_name=_("plugin")
    )
    process_id = models.CharField(_("process"), max_length=64)
    state = models.CharField(
        _("state"), max_length=16, choices=PluginState, default=PluginState.STARTING
    )
    runner_pid = models.PositiveIntegerField(_("process id of the runner"), null=True)
    started_at = models.DateTimeField(_("running since"), null=True)
    retry_at = models.DateTimeField(_("next try"), null=True)
    crashes = models.PositiveIntegerField(_("crashes in a row"), default=0)
    seen_at = models.DateTimeField(_("seen"))
    error = models.TextField(_("last error"), blank=True, default="")
    tools = models.JSONField(_("tools"), default=list)

    class Meta:
        verbose_name = _("state of a plugin")
        verbose_name_plural = _("states of plugins")
        constraints = (
            models.UniqueConstraint(
                fields=("plugin", "process_id"), name="one_plugin_status_per_process"
            ),
        )

    def __str__(self) -> str:
        return f"{self.plugin_id} {self.state}"


class PluginCrash(models.Model):
    """One unexpected end of a plugin's runner. The newest of each plugin are kept."""

    plugin = models.ForeignKey(
        Plugin, models.CASCADE, related_name="crash_reports", verbose_name=_("plugin")
    )
    at = models.DateTimeField(_("when"))
    reason = models.CharField(_("reason"), max_length=500)
    detail = models.TextField(_("last words"), default="")

    class Meta:
        verbose_name = _("crash of a plugin")
        verbose_name_plural = _("crashes of plugins")
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.reason


class PluginLogLine(models.Model):
    """What a plugin logged or printed. The newest lines of each plugin are kept."""

    plugin = models.ForeignKey(
        Plugin, models.CASCADE, related_name="log_lines", verbose_name=_("plugin")
    )
    at = models.DateTimeField(_("when"))
    level = models.CharField(_("level"), max_length=8)
    text = models.TextField(_("text"))

    class Meta:
        verbose_name = _("line of a plugin's log")
        verbose_name_plural = _("log of plugins")
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.text[:80]


class PluginValue(models.Model):
    """One value that a plugin stores under a key of its own."""

    plugin = models.ForeignKey(
        Plugin, models.CASCADE, related_name="values", verbose_name=_("plugin")
    )
    key = models.CharField(_("key"), max_length=128)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)
    value = models.JSONField(_("value"))

    class Meta:
        verbose_name = _("value of a plugin")
        verbose_name_plural = _("values of plugins")
        constraints = (models.UniqueConstraint(fields=("plugin", "key"), name="one_value_per_key"),)

    def __str__(self) -> str:
        return self.key

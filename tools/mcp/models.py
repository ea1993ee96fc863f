"""MCP servers that the operator has set up, and their status in each process."""

import json

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from tools.live_rows import LiveKind, LiveModel, Tracked
from tools.secrets.encryption import decrypt, encrypt
from tools.secrets.masked import MASK, mask_command, mask_url, mask_value


class McpServer(LiveModel):
    """One server. Values of headers and of the environment, and arguments, are sealed: they tend to
    be keys."""

    live_kind = LiveKind.MCP_SERVERS

    class Transport(models.TextChoices):
        STDIO = "stdio", "stdio"
        STREAMABLE_HTTP = "streamable_http", "streamable HTTP"
        SSE = "sse", "SSE"

    name = models.CharField(
        _("name"),
        max_length=64,
        unique=True,
        validators=[RegexValidator(r"^[^\x00-\x1f\x7f]+$", _("No control characters."))],
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    transport = models.CharField(
        _("transport"), max_length=16, choices=Transport, default=Transport.STDIO
    )
    command = models.CharField(_("command"), max_length=500, blank=True, default="")
    plain_arguments = models.JSONField(
        db_column="arguments", blank=True, default=list, editable=False
    )
    """Empty, unless a version of the program that does not seal arguments wrote them."""
    url = models.CharField(_("URL"), max_length=2000, blank=True, default="")
    connect_seconds = models.PositiveIntegerField(
        _("time limit of connecting (seconds)"),
        default=30,
        validators=[MinValueValidator(1), MaxValueValidator(600)],
    )
    call_seconds = models.PositiveIntegerField(
        _("time limit of calls (seconds)"),
        default=60,
        validators=[MinValueValidator(1), MaxValueValidator(3600)],
    )
    include = models.TextField(_("only these tools"), blank=True, default="")
    exclude = models.TextField(_("not these tools"), blank=True, default="")
    name_prefix = models.CharField(
        _("name prefix"),
        max_length=32,
        blank=True,
        default="",
        validators=[RegexValidator(r"^[A-Za-z0-9_-]*$", _("Letters, digits, _ and - only."))],
    )
    refreshes = models.PositiveBigIntegerField(default=0, editable=False)
    reconnects = models.PositiveBigIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)
    sealed_headers = models.TextField(editable=False, default="")
    sealed_environment = models.TextField(editable=False, default="")
    sealed_arguments = models.TextField(editable=False, default="", db_default="")

    #: Where it is and what is sent there is not taken back: stored keys would go elsewhere.
    tracked = Tracked(
        fields=(
            *("name", "enabled", "connect_seconds", "call_seconds"),
            *("include", "exclude", "name_prefix"),
        ),
        masked={
            "transport": (_("transport"), str),
            "command": (_("command"), lambda command: mask_command(command, ())),
            "arguments": (_("arguments"), lambda arguments: [MASK for _ in arguments or ()]),
            "environment": (_("environment variables"), mask_value),
            "url": (_("URL"), mask_url),
            "headers": (_("headers"), mask_value),
        },
    )

    class Meta:
        verbose_name = _("MCP server")
        verbose_name_plural = _("MCP servers")
        ordering = ("id",)
        permissions = (
            ("run_commands", _("Can set up MCP servers that are programs on this machine")),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def arguments(self) -> list[str]:
        """What the program is started with. Raises as :attr:`headers` does."""
        if self.plain_arguments:
            return (
                [str(one) for one in self.plain_arguments]
                if isinstance(self.plain_arguments, list)
                else []
            )
        return (
            [str(one) for one in json.loads(decrypt(self.sealed_arguments))]
            if self.sealed_arguments
            else []
        )

    @arguments.setter
    def arguments(self, values: list[str]) -> None:
        self.plain_arguments = []
        self.sealed_arguments = _sealed(values)

    @property
    def headers(self) -> dict[str, str]:
        """Sent with every request. Raises :class:`tools.secrets.encryption.DecryptionError` when
        they have to be entered again."""
        return _opened(self.sealed_headers)

    @headers.setter
    def headers(self, values: dict[str, str]) -> None:
        self.sealed_headers = _sealed(values)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a stdio server, in addition to a minimal environment. Raises as
        :attr:`headers` does."""
        return _opened(self.sealed_environment)

    @environment.setter
    def environment(self, values: dict[str, str]) -> None:
        self.sealed_environment = _sealed(values)


class McpServerStatus(models.Model):
    """The status of one MCP server in one server process. Only that process writes it, while it
    runs."""

    class ConnectionState(models.TextChoices):
        CONNECTING = "connecting", _("connecting")
        CONNECTED = "connected", _("connected")
        WAITING = "waiting", _("waiting to try again")
        STOPPED = "stopped", _("given up until somebody says so")

    server = models.ForeignKey(
        McpServer, models.CASCADE, related_name="statuses", verbose_name=_("MCP server")
    )
    process_id = models.CharField(_("process"), max_length=64)
    state = models.CharField(
        _("state"), max_length=16, choices=ConnectionState, default=ConnectionState.CONNECTING
    )
    error = models.TextField(_("last error"), blank=True, default="")
    error_at = models.DateTimeField(_("last error at"), null=True)
    connected_at = models.DateTimeField(_("connected since"), null=True)
    retry_at = models.DateTimeField(_("next try"), null=True)
    latency_ms = models.FloatField(_("latency (ms)"), null=True)
    seen_at = models.DateTimeField(_("seen"))
    about = models.JSONField(_("what the server says of itself"), default=dict)
    tools = models.JSONField(_("tools"), default=list)

    class Meta:
        verbose_name = _("state of an MCP server")
        verbose_name_plural = _("states of MCP servers")
        constraints = (
            models.UniqueConstraint(fields=("server", "process_id"), name="one_status_per_process"),
        )

    def __str__(self) -> str:
        return f"{self.server_id} {self.state}"


def _sealed(values: dict[str, str] | list[str]) -> str:
    return encrypt(json.dumps(values, ensure_ascii=False)) if values else ""


def _opened(sealed: str) -> dict[str, str]:
    return dict(json.loads(decrypt(sealed))) if sealed else {}

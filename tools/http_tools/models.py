"""Tools that are HTTP requests, set up in the admin without code."""

from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models, transaction
from django.utils.translation import gettext_lazy as _

from tools.fetch.allow_list import AllowList
from tools.http_tools.validation import (
    FIELDS,
    GRACE_SECONDS,
    PROVIDER,
    HttpToolSettings,
    ValidationContext,
    check_http_tool,
)
from tools.live_rows import LiveKind, LiveModel, Tracked
from tools.models.tool_config import ToolConfig
from tools.secrets.masked import mask_url, mask_value
from tools.secrets.models import Secret

FROM_ROWS = ("mcp", "plugin", PROVIDER)
"""Types of tools that come and go: what one of them was once called is free again."""


class HttpTool(LiveModel):
    """One request. In its templates ``{name}`` is an argument and ``{secret:NAME}`` a secret.

    The content of the JSON fields is described in :mod:`tools.http_tools.validation`.
    """

    live_kind = LiveKind.HTTP_TOOLS

    class Method(models.TextChoices):
        GET = "GET", "GET"
        POST = "POST", "POST"
        PUT = "PUT", "PUT"
        PATCH = "PATCH", "PATCH"
        DELETE = "DELETE", "DELETE"

    class Body(models.TextChoices):
        NONE = "none", _("none")
        JSON = "json", "JSON"
        FORM = "form", _("form fields")
        TEXT = "text", _("text")

    class Answer(models.TextChoices):
        TEXT = "text", _("as text")
        JSONPATH = "jsonpath", "JSONPath"

    name = models.CharField(
        _("name"),
        max_length=64,
        unique=True,
        validators=[
            RegexValidator(
                r"^[A-Za-z0-9_-]{1,64}\Z", _("Letters, digits, _ and - only, at most 64.")
            )
        ],
    )
    enabled = models.BooleanField(
        _("enabled"),
        default=True,
        help_text=_("Counts from the next message on; switched off, the tool is not there."),
    )
    description = models.TextField(
        _("description"),
        blank=True,
        default="",
        help_text=_("What the model is told: what the tool is for and when to use it."),
    )
    method = models.CharField(_("method"), max_length=8, choices=Method, default=Method.GET)
    url = models.CharField(
        _("URL"),
        max_length=2000,
        help_text=_(
            "{name} stands for an argument, {secret:NAME} for a secret; both behind the host only."
            " {{ and }} are braces."
        ),
    )
    body_kind = models.CharField(_("body"), max_length=8, choices=Body, default=Body.NONE)
    answer_kind = models.CharField(_("answer"), max_length=8, choices=Answer, default=Answer.TEXT)
    answer_path = models.CharField(
        _("JSONPath"),
        max_length=500,
        blank=True,
        default="",
        help_text=_(
            "The part of a JSON answer that the model is given, such as $.current.temperature or"
            " $.items[*].title."
        ),
    )
    timeout_seconds = models.PositiveIntegerField(
        _("time limit (seconds)"),
        default=30,
        validators=[MinValueValidator(1), MaxValueValidator(600)],
        help_text=_(
            "Of the request. The tool's own page has a limit of the whole call, which follows this"
            " one while nobody sets it."
        ),
    )
    max_kib = models.PositiveIntegerField(
        _("size limit (KiB)"),
        default=1024,
        validators=[MinValueValidator(1), MaxValueValidator(10 * 1024)],
        help_text=_("Of the answer. A larger one is a failure."),
    )
    cache_seconds = models.PositiveIntegerField(
        _("kept for (seconds)"),
        default=0,
        validators=[MaxValueValidator(7 * 86_400)],
        help_text=_(
            "How long the answer to the same request is used again, in this process. 0: every call"
            " makes its request."
        ),
    )
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)
    query = models.JSONField(
        _("query"),
        blank=True,
        default=dict,
        help_text=_(
            "An entry whose arguments are all missing is left out; a list is one entry for each of"
            " its items."
        ),
    )
    headers = models.JSONField(_("headers"), blank=True, default=dict)
    body = models.TextField(
        _("body template"),
        blank=True,
        default="",
        help_text=_(
            'JSON: arguments stand in quotes, also numbers: {"count": "{count}"}. Form: {"field":'
            ' "{name}"}.'
        ),
    )
    parameters_schema = models.JSONField(
        _("parameters"),
        blank=True,
        default=dict,
        help_text=_("The arguments of the tool, as a JSON Schema of the type object."),
    )

    tracked = Tracked(
        fields=(
            *("name", "enabled", "description", "parameters_schema", "method", "body_kind"),
            *("answer_kind", "answer_path", "timeout_seconds", "max_kib", "cache_seconds"),
        ),
        sealed={
            "url": mask_url,
            "query": mask_value,
            "headers": mask_value,
            "body": mask_value,
        },  # keys may stand in these
    )

    class Meta:
        verbose_name = _("HTTP tool")
        verbose_name_plural = _("HTTP tools")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    def save(self, **options: Any) -> None:
        """The time limit of the whole call follows, unless an operator has set another one."""
        old = (
            HttpTool.objects.filter(pk=self.pk).values_list("timeout_seconds", flat=True).first()
            if self.pk
            else None
        )
        with transaction.atomic(using=options.get("using")):
            super().save(**options)
            if old not in (None, self.timeout_seconds):
                own = ToolConfig.objects.filter(
                    name=self.name, provider_name=PROVIDER, timeout_seconds=old + GRACE_SECONDS
                )
                own.update(timeout_seconds=self.timeout_seconds + GRACE_SECONDS)

    def to_settings(self) -> HttpToolSettings:
        """What the row says, saved or not, and whatever is wrong with it (see
        :mod:`tools.http_tools.validation`)."""
        return HttpToolSettings(**{name: getattr(self, name) for name in FIELDS})

    def find_problems(self) -> dict[str, list[str]]:
        other = (
            ToolConfig.objects.filter(name=self.name)
            .values_list("declaration", "provider_name")
            .first()
        )
        is_taken = other is not None and other[0].get("provider_type") not in FROM_ROWS
        hosts = Secret.known_hosts()
        context = ValidationContext(
            secrets=list(hosts),
            hosts=hosts,
            allow=AllowList.parse(settings.FETCH_ALLOW, "tools"),
            taken_by=other[1] if other and is_taken else "",
        )
        return check_http_tool(self.to_settings(), context)

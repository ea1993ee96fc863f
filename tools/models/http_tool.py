"""Tools that are HTTP requests, set up in the admin without code."""

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from tools.models.live import LiveModel


class HttpTool(LiveModel):
    """One request. In its templates ``{name}`` is an argument and ``{secret:NAME}`` a secret."""

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
        validators=[RegexValidator(r"^[A-Za-z0-9_-]{1,64}$", _("Letters, digits, _ and - only, at most 64."))],
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    description = models.TextField(_("description"), blank=True, default="")
    method = models.CharField(_("method"), max_length=8, choices=Method, default=Method.GET)
    url = models.CharField(_("URL"), max_length=2000)
    body_kind = models.CharField(_("body"), max_length=8, choices=Body, default=Body.NONE)
    answer_kind = models.CharField(_("answer"), max_length=8, choices=Answer, default=Answer.TEXT)
    answer_path = models.CharField(_("JSONPath"), max_length=500, blank=True, default="")
    timeout_seconds = models.PositiveIntegerField(
        _("time limit (seconds)"), default=30, validators=[MinValueValidator(1), MaxValueValidator(600)]
    )
    max_kib = models.PositiveIntegerField(
        _("size limit (KiB)"), default=1024, validators=[MinValueValidator(1), MaxValueValidator(32 * 1024)]
    )
    cache_seconds = models.PositiveIntegerField(_("kept for (seconds)"), default=0, validators=[MaxValueValidator(7 * 86_400)])
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)
    query = models.JSONField(_("query"), blank=True, default=dict)
    headers = models.JSONField(_("headers"), blank=True, default=dict)
    body = models.TextField(_("body template"), blank=True, default="")
    parameters_schema = models.JSONField(_("parameters"), blank=True, default=dict)

    class Meta:
        verbose_name = _("HTTP tool")
        verbose_name_plural = _("HTTP tools")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

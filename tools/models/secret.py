"""A secret by name: what requests carry, and no page shows again."""

from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from tools.models.live import LiveModel
from tools.vault import SealBroken, seal, unseal


class Secret(LiveModel):
    """What HTTP tools name as ``{secret:NAME}``, sealed (see :mod:`tools.vault`)."""

    name = models.CharField(
        _("name"),
        max_length=64,
        unique=True,
        validators=[RegexValidator(r"^[A-Za-z][A-Za-z0-9_]*\Z", _("Letters, digits and _, beginning with a letter."))],
        help_text=_("HTTP tools name it as {secret:NAME}."),
    )
    sealed = models.TextField(_("value"), editable=False, default="")
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("secret")
        verbose_name_plural = _("secrets")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def value(self) -> str:
        """The secret itself. Raises :class:`tools.vault.SealBroken` when it has to be entered anew."""
        return unseal(self.sealed)

    @value.setter
    def value(self, text: str) -> None:
        self.sealed = seal(text)

    @property
    def is_readable(self) -> bool:
        """Whether this installation's secret key still opens it."""
        try:
            unseal(self.sealed)
        except SealBroken:
            return False
        return True

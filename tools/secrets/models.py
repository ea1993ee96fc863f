"""A secret by name: what requests carry, and no page shows again.

The rows of secrets, read. Synchronous; for the thread that talks to the database.
"""

from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from tools.live_rows import LiveKind, LiveModel, Tracked
from tools.secrets.encryption import DecryptionError, decrypt, encrypt
from tools.secrets.hosts import SecretHosts
from tools.secrets.masked import SecretValues, mask_value


class Secret(LiveModel):
    """What HTTP tools and MCP servers name as ``{secret:NAME}``, sealed (see
    :mod:`tools.secrets.encryption`).

    ``hosts`` say where it may be sent (see :mod:`tools.secrets.hosts`).
    """

    live_kind = LiveKind.SECRETS

    name = models.CharField(
        _("name"),
        max_length=64,
        unique=True,
        validators=[
            RegexValidator(
                r"^[A-Za-z][A-Za-z0-9_]*\Z", _("Letters, digits and _, beginning with a letter.")
            )
        ],
        help_text=_("HTTP tools and MCP servers name it as {secret:NAME}."),
    )
    sealed = models.TextField(_("value"), editable=False, default="")
    hosts = models.TextField(
        _("hosts"),
        blank=True,
        default="",
        db_default="",
        help_text=_("Where it may be sent; nowhere while this is empty."),
    )
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    #: The value is never kept; its hosts change only together with it, so nothing is taken back.
    tracked = Tracked(masked={"hosts": (_("hosts"), str), "value": (_("value"), mask_value)})

    class Meta:
        verbose_name = _("secret")
        verbose_name_plural = _("secrets")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @classmethod
    def known_hosts(cls) -> dict[str, SecretHosts]:
        """Where each secret may be sent, by its name, in order."""
        return {
            name: SecretHosts.stored(hosts)
            for name, hosts in cls.objects.order_by("name").values_list("name", "hosts")
        }

    @property
    def value(self) -> str:
        """The secret itself. Raises :class:`tools.secrets.encryption.DecryptionError` when it has
        to be entered again."""
        return decrypt(self.sealed)

    @value.setter
    def value(self, text: str) -> None:
        self.sealed = encrypt(text)

    @property
    def is_readable(self) -> bool:
        """Whether this installation's secret key still opens it."""
        try:
            decrypt(self.sealed)
        except DecryptionError:
            return False
        return True


def load_secrets() -> SecretValues:
    """Every secret; ``undecryptable`` are those stored under another secret key."""
    values: dict[str, str] = {}
    hosts: dict[str, SecretHosts] = {}
    broken = set()
    for name, sealed, named in Secret.objects.order_by("name").values_list(
        "name", "sealed", "hosts"
    ):
        hosts[name] = SecretHosts.stored(named)
        try:
            values[name] = decrypt(sealed)
        except DecryptionError:
            broken.add(name)
    return SecretValues(values, frozenset(broken), hosts)

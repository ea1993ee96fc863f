"""Server processes, as they see each other."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class ServerProcess(models.Model):
    """A running server process; work claimed by one that is gone is taken over by another."""

    id = models.CharField(primary_key=True, max_length=32)
    host = models.CharField(_("host"), max_length=200)
    pid = models.IntegerField(_("process id"))
    started_at = models.DateTimeField(_("started"), auto_now_add=True)
    last_seen_at = models.DateTimeField(_("last seen"))

    class Meta:
        verbose_name = _("server process")
        verbose_name_plural = _("server processes")

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}"

"""What a COMMIT is looked up by whose acknowledgement was lost."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class CommitMark(models.Model):
    """The last transaction of one writer that took effect: each of them raises the number of its
    writer's row."""

    writer = models.CharField(primary_key=True, max_length=32)
    number = models.BigIntegerField(default=0)
    at = models.DateTimeField()

    class Meta:
        verbose_name = _("commit mark")
        verbose_name_plural = _("commit marks")

    def __str__(self) -> str:
        return f"{self.writer} {self.number}"

"""Files of the media folder, for the admin's sake."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class MediaFile(models.Model):
    """A file that may be sent. It lies in the media folder and has no row: this gives it
    permissions and a history."""

    path = models.CharField(_("path"), max_length=1024, primary_key=True)

    class Meta:
        managed = False
        verbose_name = _("media file")
        verbose_name_plural = _("media files")
        default_permissions: ClassVar = ("add", "delete", "view")

    def __str__(self) -> str:
        return self.path

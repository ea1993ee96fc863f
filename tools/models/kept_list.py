"""How somebody wants a list of records."""

from typing import ClassVar

from django.conf import settings
from django.db import models


class KeptList(models.Model):
    """Conditions of a list that a user keeps under a ``name``; with an empty name, the columns that
    the user wants to see.

    A row, because a sign-in ends and a browser is changed, and neither is a reason to choose again.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    page = models.CharField(max_length=100)
    """The label of the list's model in small letters."""
    name = models.CharField(max_length=64, blank=True, default="")
    query = models.CharField(max_length=1000)
    """The query of the list's address; of columns, their names with commas between them."""

    class Meta:
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "page", "name"], name="one_kept_list_per_name")
        ]

    def __str__(self) -> str:
        return self.name

"""Changes of rows that operators edit."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, ClassVar

from django.apps import apps
from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

#: In ``after``, beside the fields: in words, who made a change without an account in the admin.
SAID_AUTHOR = "$author"
#: The same, in changes of before silences had a column for it: when one ends by itself.
SAID_UNTIL = "$until"
#: What is beside the fields there.
SAID = frozenset({SAID_AUTHOR, SAID_UNTIL})


class ChangeKind(StrEnum):
    """What was done with a row. ``done``: something else than to change what it holds."""

    CHANGED = "changed"
    ADDED = "added"
    DELETED = "deleted"
    DONE = "done"


def row_subject(row: models.Model) -> str:
    """Which row a change is about, as the column ``subject`` has it."""
    return f"{row._meta.label_lower}:{row.pk}"


def delete_changes(rows: "models.QuerySet[Any]") -> None:
    """Delete the changes of ``rows`` that are about to be deleted, and are to leave nothing: of
    what else was done with them nothing stays but their keys."""
    found = list(rows.order_by().only("pk"))
    for start in range(0, len(found), 500):
        subjects = [row_subject(row) for row in found[start : start + 500]]
        changes = ToolConfigChange.objects.filter(subject__in=subjects)
        changes.filter(kind=ChangeKind.CHANGED).delete()
        changes.update(name="-", before={}, after={})


class ToolConfigChange(models.Model):
    """One thing that was done with one row: of a change, ``before`` and ``after`` hold the changed
    fields alone; of a deleted row, ``before`` holds all that is tracked. See
    :mod:`tools.models.row_history`.

    It is named after the rows that had it first, because its table, permissions and address are
    public names. ``config`` is the row where that is a tool config; ``subject`` says which it is
    otherwise, as ``app.model:number``, and stays when the row is deleted.
    """

    config = models.ForeignKey(
        "tools.ToolConfig",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="changes",
        verbose_name=_("tool config"),
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("author"),
        help_text=_("Empty: the program itself."),
    )
    at = models.DateTimeField(_("changed"), auto_now_add=True)
    before = models.JSONField(_("before"), default=dict)
    after = models.JSONField(_("after"), default=dict)
    subject = models.CharField(
        max_length=1000, blank=True, default="", db_default="", editable=False
    )
    kind = models.CharField(
        max_length=8, default=ChangeKind.CHANGED, db_default="changed", editable=False
    )
    words = models.TextField(blank=True, default="", db_default="", editable=False)
    """What else there is to say, in the language of who did it or as Django's admin writes it."""
    name = models.CharField(
        _("name"), max_length=200, blank=True, default="", db_default="", editable=False
    )
    """What the row was called then."""

    class Meta:
        verbose_name = _("change")
        verbose_name_plural = _("changes")
        ordering = ("-id",)
        indexes: ClassVar = [models.Index(fields=["subject", "-id"], name="change_subject")]

    def __str__(self) -> str:
        return f"#{self.pk} {', '.join(self._labels())}"

    def _labels(self) -> Iterator[str]:
        """What people call the fields that changed; one that is no more keeps its name."""
        label = "tools.ToolConfig" if self.config_id else self.subject.partition(":")[0]
        try:
            fields = {one.name: one for one in apps.get_model(label)._meta.get_fields()}
        except (LookupError, ValueError):
            fields = {}
        for name in self.after:
            if name not in SAID:
                yield str(getattr(fields.get(name), "verbose_name", name))

    @property
    def made_by(self) -> object:
        """Who made it: a user, or somebody in words; None for the program itself."""
        return self.author or self.after.get(SAID_AUTHOR)

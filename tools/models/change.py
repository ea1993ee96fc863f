"""Changes of rows that operators edit."""

from collections.abc import Iterator
from typing import Any, ClassVar

from django.apps import apps
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.utils.translation import gettext_lazy as _

#: In ``after``, beside the fields: in words, who made a change without an account in the admin.
SAID_AUTHOR = "$author"
#: The same, in changes of before silences had a column for it: when one ends by itself.
SAID_UNTIL = "$until"
#: What is beside the fields there.
SAID = frozenset({SAID_AUTHOR, SAID_UNTIL})


def row_subject(row: models.Model) -> str:
    """Which row a change is about, as the column ``subject`` has it."""
    return f"{row._meta.label_lower}:{row.pk}"


def delete_changes(rows: "models.QuerySet[Any]") -> None:
    """Delete the changes of ``rows`` that are about to be deleted, and are to leave nothing; in
    Django's own history nothing stays of them but their keys."""
    kept = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(rows.model))
    found = list(rows.order_by().only("pk"))
    for start in range(0, len(found), 500):
        batch = found[start : start + 500]
        ToolConfigChange.objects.filter(subject__in=map(row_subject, batch)).delete()
        kept.filter(object_id__in=[str(row.pk) for row in batch]).update(object_repr="-")


class ToolConfigChange(models.Model):
    """One change of one row: ``before`` and ``after`` hold the changed fields alone. See
    :mod:`tools.admin.row_history`.

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
        max_length=100, blank=True, default="", db_default="", editable=False
    )
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
    def made_by(self) -> Any:
        """Who made it: a user, or somebody in words; None for the program itself."""
        return self.author or self.after.get(SAID_AUTHOR)

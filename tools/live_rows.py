"""Rows that count from the next message on, in every process: each change of one makes a number
grow."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from django.db import models, transaction
from django.db.models import F
from django.utils.translation import gettext_lazy as _


class ConfigVersion(models.Model):
    """Numbers of which the first grows with every change of a row that the operator edits. What
    else processes remember of rows has a number of its own, so that nothing but that is read again.

    Every process compares them before each message, so that a change made in one
    process is obeyed by all of them without a message bus.
    """

    SETTINGS: ClassVar = 1

    number = models.BigIntegerField(default=0)

    class Meta:
        verbose_name = _("config version")
        verbose_name_plural = _("config versions")

    def __str__(self) -> str:
        return str(self.number)

    @classmethod
    def bump(cls, key: int = SETTINGS) -> None:
        if not cls.objects.filter(pk=key).update(number=F("number") + 1):
            cls.objects.get_or_create(pk=key, defaults={"number": 1})

    @classmethod
    def current(cls, key: int = SETTINGS) -> int:
        return cls.objects.filter(pk=key).values_list("number", flat=True).first() or 0


class LiveQuerySet(models.QuerySet[Any]):
    """Changes made in bulk count as changes too."""

    def update(self, **values: Any) -> int:
        with transaction.atomic(using=self.db):
            ConfigVersion.bump()
            return super().update(**values)

    def delete(self) -> tuple[int, dict[str, int]]:
        with transaction.atomic(using=self.db):
            ConfigVersion.bump()
            return super().delete()

    # Django's own mark: without it ``objects.delete()`` would empty the table.
    delete.queryset_only = True  # type: ignore[attr-defined]

    def bulk_create(self, *args: Any, **options: Any) -> list[Any]:
        with transaction.atomic(using=self.db):
            ConfigVersion.bump()
            return super().bulk_create(*args, **options)


class LiveModel(models.Model):
    """A row that the operator edits: saving or deleting one, alone or in bulk, is a change."""

    objects: Any = cast(
        "Any", LiveQuerySet.as_manager()
    )  # else the types are those of this abstract model

    class Meta:
        abstract = True

    def save(self, **options: Any) -> None:
        with transaction.atomic(using=options.get("using")):
            super().save(**options)
            ConfigVersion.bump()

    def delete(self, using: Any = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        with transaction.atomic(using=using):
            ConfigVersion.bump()
            return super().delete(using=using, keep_parents=keep_parents)


@dataclass(frozen=True, slots=True)
class TrackedRows:
    """Rows that belong to another one and are edited on its page: what they are called, and their
    fields that people edit."""

    label: Any
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tracked:
    """What is on record when operators change rows of a model: its attribute ``tracked``.

    ``fields`` are kept as they are, and taken back one by one. ``sealed`` are fields that may
    hold keys: kept encrypted and shown by their function. They are kept and taken back together,
    so that no old key goes to a new place. Of ``masked``, each an attribute with a label, only
    what its function shows is kept: it cannot be taken back. ``related`` are lists of rows that
    belong to it, by the name of the relation: each list is kept, and taken back, as a whole.
    """

    fields: tuple[str, ...] = ()
    sealed: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    masked: Mapping[str, tuple[Any, Callable[[Any], Any]]] = field(default_factory=dict)
    related: Mapping[str, TrackedRows] = field(default_factory=dict)

    @property
    def revertible(self) -> frozenset[str]:
        """The names of what can be taken back."""
        return frozenset((*self.fields, *self.sealed, *self.related))


def tracked_fields(model: type[models.Model]) -> Tracked:
    """What is on record of the rows of ``model``; nothing of most models."""
    found = getattr(model, "tracked", None)
    return found if isinstance(found, Tracked) else Tracked()

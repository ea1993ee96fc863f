"""Rows that count from the next message on, in every process: each change of one makes a number
grow."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar, cast

from django.core.exceptions import ValidationError
from django.db import connections, models, transaction
from django.db.models import F, ForeignObjectRel
from django.utils.translation import gettext_lazy as _

#: Where PostgreSQL tells of changes, once they are committed.
CHANGES_CHANNEL = "frostagent_changes"


class LiveKind(IntEnum):
    """What processes remember of rows: keys of :class:`ConfigVersion`. All stand here, so that no
    two have one number."""

    SETTINGS = 1
    """Everything that operators set."""
    PAUSES = 2
    """The chats in which an account cannot speak."""
    STICKERS = 3
    LEARNT = 4
    """What endpoints turned out to refuse."""
    INSTALLATION = 5
    TOOLS = 6
    SECRETS = 7
    HTTP_TOOLS = 8
    MCP_SERVERS = 9
    PLUGINS = 10
    ACCOUNTS = 11
    MANNERS = 12
    PERSONAS = 13
    """Personas, and which endpoints they ask."""
    PERSONA_CHOICES = 14
    ENDPOINTS = 15
    BUDGETS = 16
    PAST_SUMS = 17
    """Sums of hours and days that are over."""
    ALERT_ROUTES = 18
    REMINDERS = 19
    """When something is to be said."""
    EVENT_RULES = 20
    REQUESTS = 22
    """Somebody asked to be let in."""
    UNDO = 24
    """That operators have answers taken back."""

    @property
    def is_set_by_operators(self) -> bool:
        return self not in (
            LiveKind.PAUSES,
            LiveKind.STICKERS,
            LiveKind.LEARNT,
            LiveKind.PAST_SUMS,
            LiveKind.REMINDERS,
            LiveKind.REQUESTS,
            LiveKind.UNDO,
        )


class ConfigVersion(models.Model):
    """Numbers that grow, one for each :class:`LiveKind`; the first grows with every change of a row
    that an operator edits.

    Every process compares them before each message, so that a change made in one process is obeyed
    by all of them without a message bus, and nothing but what was changed is read again. What has
    to be there before a message comes is told by PostgreSQL with the commit.
    """

    number = models.BigIntegerField(default=0)

    class Meta:
        verbose_name = _("config version")
        verbose_name_plural = _("config versions")

    def __str__(self) -> str:
        return str(self.number)

    @classmethod
    def bump(cls, *kinds: LiveKind) -> None:
        """Rows of ``kinds`` are changed; none: any may be.

        Of two transactions that change what operators set, one waits here for the other.
        """
        if any(kind.is_set_by_operators for kind in kinds) or not kinds:
            kinds = (LiveKind.SETTINGS, *kinds)  # first: whoever waits for it has nothing else yet
        for kind in dict.fromkeys(kinds):
            counted = cls.objects.filter(pk=kind)
            if not counted.update(number=F("number") + 1):
                _, is_new = cls.objects.get_or_create(pk=kind, defaults={"number": 1})
                if not is_new:  # another process was faster
                    counted.update(number=F("number") + 1)
        database = connections[cls.objects.db]
        if database.vendor == "postgresql":
            with database.cursor() as cursor:
                cursor.execute(f"NOTIFY {CHANGES_CHANNEL}")

    @classmethod
    def current(cls, kind: LiveKind = LiveKind.SETTINGS) -> int:
        return cls.objects.filter(pk=kind).values_list("number", flat=True).first() or 0


class LiveQuerySet(models.QuerySet[Any]):
    """Changes made in bulk count as changes too."""

    def update(self, **values: Any) -> int:
        with transaction.atomic(using=self.db):
            ConfigVersion.bump(self.model.live_kind)
            return super().update(**values)

    def delete(self) -> tuple[int, dict[str, int]]:
        with transaction.atomic(using=self.db):
            ConfigVersion.bump(*kinds_of_deleted(self.model))
            return super().delete()

    # Django's own mark: without it ``objects.delete()`` would empty the table.
    delete.queryset_only = True  # type: ignore[attr-defined]

    def bulk_create(self, *args: Any, **options: Any) -> list[Any]:
        with transaction.atomic(using=self.db):
            ConfigVersion.bump(self.model.live_kind)
            return super().bulk_create(*args, **options)


class LiveModel(models.Model):
    """A row that the operator edits: saving or deleting one, alone or in bulk, is a change of its
    ``live_kind``."""

    live_kind: ClassVar[LiveKind]
    objects: Any = cast(
        "Any", LiveQuerySet.as_manager()
    )  # else the types are those of this abstract model

    class Meta:
        abstract = True

    def save(self, **options: Any) -> None:
        with transaction.atomic(using=options.get("using")):
            super().save(**options)
            ConfigVersion.bump(self.live_kind)

    def delete(self, using: Any = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        with transaction.atomic(using=using):
            ConfigVersion.bump(*kinds_of_deleted(type(self)))
            return super().delete(using=using, keep_parents=keep_parents)

    def find_problems(self) -> Mapping[str, list[str]]:
        """What it takes more than one field to see: translated lines, by the field that they are
        shown at."""
        return {}

    def clean_fields(self, exclude: Collection[str] | None = None) -> None:
        """With :meth:`find_problems`. A field in ``exclude`` is never complained of."""
        errors: dict[str, Any] = {}
        try:
            super().clean_fields(exclude=exclude)
        except ValidationError as error:
            errors = error.update_error_dict(errors)
        for field_name, lines in self.find_problems().items():
            if lines and field_name not in (exclude or ()):
                errors[field_name] = lines
        if errors:
            raise ValidationError(errors)


def kinds_of_deleted(model: type[models.Model]) -> list[LiveKind]:
    """The kinds that change with the end of a row of ``model``: its own, and those of rows that
    refer to it."""
    fields = model._meta.get_fields(include_hidden=True)
    referring = [field.related_model for field in fields if isinstance(field, ForeignObjectRel)]
    return sorted({one.live_kind for one in (model, *referring) if issubclass(one, LiveModel)})


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

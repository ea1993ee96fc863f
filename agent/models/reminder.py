"""Reminders: what is to be said, or done by a model, at an instant that is still to come."""

from collections.abc import Iterable
from typing import Any, ClassVar, TypeAlias

from django.db import models
from django.db.models import Case, F, Q, When
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agent.domain.reminders import MOST_RULE, MOST_TEXT
from agent.domain.states import LateReminder, ReminderKind, ReminderState
from agent.models.session import ChatSession
from tools.live_rows import LiveKind, LiveModel, LiveQuerySet, Tracked
from tools.text.storable import make_storable


class ReminderQuerySet(LiveQuerySet):
    """Whatever changes when a reminder is due changes when it is looked at."""

    def update(self, **values: Any) -> int:
        if "next_at" not in values and values.keys() & {"state", "due_at"}:
            due, state = values.get("due_at", F("due_at")), values.get("state")
            is_waiting = Q(state=ReminderState.WAITING) if state is None else Q(pk__isnull=False)
            wakes = state in (None, ReminderState.WAITING)
            waits = When(is_waiting & Q(fired__isnull=True), then=due)
            values["next_at"] = Case(waits, default=None) if wakes else None
        return super().update(**values)

    def bulk_create(self, objs: Iterable[Any], *args: Any, **options: Any) -> list[Any]:
        rows = list(objs)
        for row in rows:
            row.plan()
        return super().bulk_create(rows, *args, **options)


class Reminder(LiveModel):
    """Something that is said in a chat when it is due, as work of its inbox.

    ``next_at`` is when a server looks at it next, None where there is nothing to do: it follows
    from the state and ``due_at``, is put off while quiet hours last, and is empty while the
    message ``fired``, that it has become, is on its way.
    """

    live_kind = LiveKind.REMINDERS

    Kind: TypeAlias = ReminderKind
    State: TypeAlias = ReminderState
    Late: TypeAlias = LateReminder

    session = models.ForeignKey(
        ChatSession, models.CASCADE, related_name="reminders", verbose_name=_("chat session")
    )
    text = models.TextField(_("text"), max_length=MOST_TEXT)
    due_at = models.DateTimeField(_("due"))
    repeat = models.CharField(
        _("repeat"),
        max_length=MOST_RULE,
        blank=True,
        default="",
        help_text=_("A rule of RFC 5545, such as FREQ=WEEKLY;BYDAY=MO. Empty: once."),
    )
    kind = models.CharField(
        _("kind"),
        max_length=8,
        choices=Kind.choices,
        default=Kind.TEXT,
        help_text=_("A text is said as it is; a task is given to the model."),
    )
    state = models.CharField(
        _("state"), max_length=16, choices=State.choices, default=State.WAITING
    )
    late = models.CharField(
        _("when it is late"),
        max_length=8,
        choices=Late.choices,
        default=Late.TELL,
        help_text=_("Where the account was away, or the hours were quiet."),
    )
    set_by = models.CharField(
        _("set by"), max_length=64, blank=True, default="", help_text=_("A person's id.")
    )
    mention = models.TextField(
        _("mentions"),
        blank=True,
        default="",
        help_text=_("Ids of people, one a line; “all” for everybody in the group."),
    )
    outcome = models.TextField(_("outcome"), blank=True, default="")
    language = models.CharField(max_length=16, blank=True, default="", editable=False)
    """Of the sentence around the text; "" as that has it."""
    starts_at = models.DateTimeField(null=True, editable=False)
    """The first instant of a rule, from which the others are counted."""
    next_at = models.DateTimeField(null=True, editable=False)
    is_extra = models.BooleanField(default=False, editable=False)
    """Whether it is said once more now, whatever its rule says."""
    fired = models.BigIntegerField(null=True, editable=False)
    """The key of the message under way."""
    last_message = models.BigIntegerField(null=True, editable=False)
    """The key of the message that it became last."""
    created_at = models.DateTimeField(_("made"), default=timezone.now, editable=False)

    tracked = Tracked(
        fields=("text", "due_at", "repeat", "kind", "state", "late", "set_by", "mention")
    )

    objects: ClassVar[Any] = ReminderQuerySet.as_manager()

    class Meta:
        verbose_name = _("reminder")
        verbose_name_plural = _("reminders")
        ordering = ("-id",)
        indexes: ClassVar = [
            models.Index(
                fields=["next_at"], name="reminder_next", condition=Q(next_at__isnull=False)
            ),
            models.Index(fields=["set_by", "state"], name="reminder_person"),
            models.Index(fields=["fired"], name="reminder_fired", condition=Q(fired__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.text[:40]}"

    @property
    def is_open(self) -> bool:
        """Whether it is still to be said."""
        return self.state in OPEN_STATES

    def plan(self) -> None:
        """Set what follows from the other fields."""
        self.text = make_storable(self.text)
        if self.starts_at is None or not self.repeat or self.starts_at > self.due_at:
            self.starts_at = self.due_at
        is_due = self.state == ReminderState.WAITING and self.fired is None
        self.next_at, self.is_extra = self.due_at if is_due else None, False

    def save(self, **options: Any) -> None:
        """With what follows from its fields."""
        self.plan()
        if (names := options.get("update_fields")) is not None:
            options["update_fields"] = {*names, "text", "starts_at", "next_at", "is_extra"}
        super().save(**options)


#: States of a reminder that is still to be said: what limits count.
OPEN_STATES = (ReminderState.WAITING, ReminderState.PAUSED)

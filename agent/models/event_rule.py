"""Rules of events and keywords: what becomes of what happens in chats, and of what is said."""

import json
from functools import cached_property
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator
from django.db import models
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.event_rules import (
    KEYWORD,
    KINDS,
    MOST_ARGUMENTS,
    MOST_TEXT,
    EventAction,
    FiredRule,
    KeywordMatch,
    combine_rules,
)
from agent.models.endpoint import NO_CONTROLS
from agent.models.manners import line_problems, pattern_problems
from agent.models.scope import SCOPE, Scoped, rank_row
from tools.live_rows import LiveKind, LiveModel, Tracked

#: What is kept of a row where it fires.
FIRED = ("pk", "name", "kind", "action", "text", "file", "mention", "tool", "arguments")
#: Regular expressions of one row: every message is searched for all of them.
MOST_PATTERNS = 20


class EventRule(Scoped, LiveModel):
    """What is done about events of one kind, or about keywords, in the chats of its scope.

    What is empty is as the less particular rows for the kind say, as of manners, and last nothing
    is done (:func:`agent.domain.event_rules.combine_rules`). Of keywords the most particular row
    counts whose words are said, and whole.
    """

    live_kind = LiveKind.EVENT_RULES

    name = models.CharField(_("name"), max_length=100, unique=True, validators=[NO_CONTROLS])
    enabled = models.BooleanField(_("enabled"), default=True)
    kind = models.CharField(
        _("kind"),
        max_length=16,
        choices=KINDS,
        help_text=_(
            "What it is for. A poke is one at the bot by somebody else; who leaves may have been "
            "removed; a mute or an administrator may begin or end."
        ),
    )
    action = models.CharField(
        _("what is done"),
        max_length=8,
        choices=EventAction.choices,
        blank=True,
        default=EventAction.NOTHING,
        help_text=_(
            "Not said here: this, and all that is empty, is as the next broader row for the kind "
            "says. Said here: only the mention is, and what cannot be missing, from a row that "
            "does the same. Keywords take nothing from other rows."
        ),
    )
    text = models.TextField(
        _("text"),
        blank=True,
        default="",
        validators=[MaxLengthValidator(MOST_TEXT)],
        help_text=_(
            "Said as it is, with {name}, {group}, {operator} and {count} filled in; beside a "
            "picture too. To a model: what it is to do."
        ),
    )
    file = models.CharField(
        _("picture"),
        max_length=1_000,
        blank=True,
        default="",
        help_text=_("A file of the media folder, or of the stickers, or an address (https://…)."),
    )
    mention = models.BooleanField(
        _("mention"),
        null=True,
        blank=True,
        help_text=_("In groups: at whom the event is about."),
    )
    match = models.CharField(
        _("found as"), max_length=8, choices=KeywordMatch.choices, default=KeywordMatch.WORD
    )
    words = models.TextField(
        _("keywords"),
        blank=True,
        default="",
        help_text=_("One a line. Regular expressions are of RE2."),
    )
    tool = models.CharField(
        _("tool"),
        max_length=128,
        blank=True,
        default="",
        help_text=_("Called for whoever caused it, by the rules of the tool, without a model."),
    )
    arguments = models.JSONField(
        _("arguments"), blank=True, default=dict, help_text=_("A JSON object, always the same.")
    )
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    tracked = Tracked(fields=(*FIRED[1:], "enabled", "match", "words", *SCOPE))

    class Meta:
        verbose_name = _("event rule")
        verbose_name_plural = _("event rules")
        ordering = ("kind", "account", "chat_kind", "name")

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Raises :class:`ValidationError` with what is wrong, under the name of its field."""
        problems = {
            **self.scope_problems(),
            "words": list(self._word_problems()) if self.kind == KEYWORD else [],
            "arguments": self._argument_problems(),
        }
        if needed := self.find_whole().lacks:
            words = gettext(
                "This is needed for what is done: no broader row says it for all of these chats."
            )
            problems[needed] = [words]
        if found := {name: lines for name, lines in problems.items() if lines}:
            raise ValidationError(found)

    def _word_problems(self) -> list[str]:
        if not self.lines:
            return [gettext("Write at least one keyword.")]
        if self.match != KeywordMatch.PATTERN:
            return line_problems(self.words)
        if len(self.lines) > MOST_PATTERNS:
            return [gettext("At most %(count)d lines.") % {"count": MOST_PATTERNS}]
        return [problem for line in self.lines for problem in pattern_problems(line)]

    def _argument_problems(self) -> list[str]:
        if not isinstance(self.arguments, dict):
            return [gettext("A JSON object is wanted, such as {}.")]
        if len(json.dumps(self.arguments)) > MOST_ARGUMENTS:
            return [gettext("At most %(count)d characters.") % {"count": MOST_ARGUMENTS}]
        return []

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The keywords."""
        lines = (line.strip() for line in self.words.splitlines())
        return tuple(dict.fromkeys(filter(None, lines)))

    def find_whole(self) -> FiredRule:
        """It with what it leaves empty, as far as rows say it that hold in all of its chats."""
        behind = [
            row
            for row in EventRule.objects.filter(enabled=True).exclude(pk=self.pk)
            if row.kind == self.kind != KEYWORD
            and row.covers(self)
            and rank_row(row) > rank_row(self)
        ]
        return combine_rules([row.fire() for row in (self, *sorted(behind, key=rank_row))])

    def fire(self, **happened: Any) -> FiredRule:
        """It as it is now, for what ``happened``."""
        return FiredRule(**{name: getattr(self, name) for name in FIRED}, **happened)

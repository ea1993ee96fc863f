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
)
from agent.models.endpoint import NO_CONTROLS
from agent.models.manners import line_problems, pattern_problems
from agent.models.scope import SCOPE, Scoped
from tools.live_rows import LiveKind, LiveModel, Tracked

#: What an action cannot do without.
NEEDED = {"say": "text", "picture": "file", "sticker": "file", "tool": "tool"}
#: What is kept of a row where it fires.
FIRED = ("pk", "name", "kind", "action", "text", "file", "mention", "tool", "arguments")
#: Regular expressions of one row: every message is searched for all of them.
MOST_PATTERNS = 20


class EventRule(Scoped, LiveModel):
    """What is done about events of one kind, or about keywords, in the chats of its scope.

    Of several rows for one kind the most particular counts in a chat, as of manners; of keywords
    the most particular whose words are said.
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
        _("what is done"), max_length=8, choices=EventAction.choices, default=EventAction.NOTHING
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
        _("mention"), default=False, help_text=_("In groups: at whom the event is about.")
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
        if (needed := NEEDED.get(self.action)) and not getattr(self, needed).strip():
            problems[needed] = [gettext("This is needed for what is done.")]
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

    def fire(self, **happened: Any) -> FiredRule:
        """It as it is now, for what ``happened``."""
        return FiredRule(**{name: getattr(self, name) for name in FIRED}, **happened)

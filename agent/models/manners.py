"""Manners: how the bot behaves in the chats that a row is for."""

import math
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy as _, gettext_noop

from agent.domain.manners import (
    MOST_MERGE_SECONDS,
    MOST_PART_CHARS,
    Audience,
    MarkdownStyle,
    MemberCommands,
    PrivateChats,
    parse_quiet_hours,
)
from agent.models.endpoint import NO_CONTROLS, ModelEndpoint
from agent.models.scope import SCOPE, Scoped
from tools.live_rows import LiveKind, LiveModel, Tracked
from tools.local_time import known_zones
from tools.models.tool_config import check_ids
from tools.schemas.patterns import (
    LOOKS_AROUND,
    NO_PATTERN,
    REFERS_BACK,
    TOO_LARGE,
    TOO_LONG,
    PatternRefused,
    compile_pattern,
)
from tools.text.readable import shorten_text

#: What a text says that means "none", where an empty one means "as the rows behind it say".
NONE = "-"
FEWEST_PART_CHARS = 100
MOST_AMBIENT, MOST_AMBIENT_CHARS, MOST_AMBIENT_MINUTES = 200, 100_000, 10_080
MOST_FORWARD, MOST_SENDS, MOST_ANSWERS = 1_000_000, 10_000, 1_000_000
#: Names or prefixes of one row, and characters of each: every message is searched for all of them.
MOST_LINES, MOST_LINE_CHARS = 100, 64
#: Why a pattern is refused, for somebody who writes no schemas.
_FAULTS = {
    LOOKS_AROUND: gettext_noop(
        "Regular expressions here know no lookahead and no lookbehind, (?=…) (?!…) (?<=…) (?<!…): "
        "they can take for ever. Write what is to be found, without them."
    ),
    REFERS_BACK: gettext_noop(
        "Regular expressions here know no references back to a group, like \\1: they can take for "
        "ever. List what is possible, separated by “|”."
    ),
    TOO_LARGE: gettext_noop("It is too large: repeat less in it, for example {1,50}."),
}

WAKING = (
    *("groups", "private", "wake_mention", "wake_quote", "wake_names", "wake_prefixes"),
    *("wake_pattern", "wake_chance", "wake_always"),
)
LISTS = ("listed_people", "allowed_people", "denied_people")
LIMITS = ("person_per_minute", "person_per_day", "chat_per_minute", "chat_per_day")
LINES = ("wake_names", "wake_prefixes")
HEARING = ("ambient_messages", "ambient_chars", "ambient_minutes", "merge_seconds")
SPEAKING = (
    *("mention", "quote", "part_chars", "forward_above", "markdown", "sends_per_minute"),
    *("typing", "reaction", "says_beside_calls"),
)
SAID = (
    *(*WAKING, "answered", *LISTS, *LIMITS, "quiet_hours", "zone", "command_prefix"),
    *("member_commands", *HEARING, *SPEAKING, "endpoint"),
)
"""The fields that say something of the manners; empty ones leave it to the rows behind."""


def _yes_no(name: Any, help_text: Any = "") -> "models.BooleanField[Any, Any]":
    return models.BooleanField(name, null=True, blank=True, help_text=help_text)


def _words(name: Any, help_text: Any) -> "models.TextField[Any, Any]":
    return models.TextField(name, blank=True, default="", help_text=help_text)


def _number(
    name: Any, help_text: Any, most: int, fewest: int = 0
) -> "models.PositiveIntegerField[Any, Any]":
    return models.PositiveIntegerField(
        name,
        null=True,
        blank=True,
        validators=[MinValueValidator(fewest), MaxValueValidator(most)],
        help_text=help_text,
    )


class Manners(Scoped, LiveModel):
    """How the bot behaves in some chats. What is empty is as the less particular rows say, and
    last as the program has it.

    The most particular row counts: one that lists the chat before one for its account and kind,
    that before one for its account, its kind, and all; of two that list it the one with fewer
    chats, then the older one. Two fields do not wait for that: a chat is silent where any row that
    is for it silences it, and a person is denied where any row denies him.
    """

    live_kind = LiveKind.MANNERS

    name = models.CharField(_("name"), max_length=100, unique=True, validators=[NO_CONTROLS])
    enabled = models.BooleanField(_("enabled"), default=True)
    silenced = models.BooleanField(
        _("silenced"),
        default=False,
        help_text=_(
            "Nothing is said in these chats; what is said there is kept. Owners can still give "
            "commands."
        ),
    )
    silenced_until = models.DateTimeField(_("silenced until"), null=True, editable=False)
    """When that ends by itself; None: not before somebody ends it."""
    only_person = models.CharField(
        _("only this person is answered"),
        max_length=64,
        default="",
        db_default="",
        editable=False,
    )
    only_until = models.DateTimeField(_("only this person until"), null=True, editable=False)
    groups = _yes_no(_("answers in groups"), _("Empty: GROUP_REPLY_ON_MENTION."))
    private = models.CharField(
        _("private messages answered"),
        max_length=8,
        choices=PrivateChats.choices,
        blank=True,
        default="",
    )
    wake_mention = _yes_no(_("woken by a mention"))
    wake_quote = _yes_no(_("woken by a quote of the bot"))
    wake_names = _words(
        _("names and aliases"),
        _(
            "One a line: a message that holds one of them is answered. Empty: BOT_NAME and "
            "BOT_ALIASES. “-”: none."
        ),
    )
    wake_prefixes = _words(
        _("prefixes"), _("One a line: a message that begins with one of them is answered.")
    )
    wake_pattern = models.CharField(
        _("regular expression"),
        max_length=1_000,
        blank=True,
        default="",
        help_text=_("Of RE2: a message in which it is found is answered. “-”: none."),
    )
    wake_chance = models.FloatField(
        _("chance (%)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(100)],
        help_text=_("Of the other messages of a group, so many in a hundred are answered."),
    )
    wake_always = _yes_no(_("every message is answered"))
    answered = models.CharField(
        _("who is answered"),
        max_length=16,
        choices=Audience.choices,
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "In groups “friends” means those who are listed. Owners are answered all the same, "
            "but in a group where nobody is."
        ),
    )
    listed_people = models.TextField(
        _("listed people"),
        blank=True,
        default="",
        db_default="",
        help_text=_("Ids of people, one a line: answered whoever else is. Limits count for them."),
    )
    allowed_people = _words(
        _("people answered"), _("Ids, one a line. Not empty: nobody else is, but for owners.")
    )
    denied_people = _words(
        _("people not answered"), _("Ids, one a line. What they say is kept, and not answered.")
    )
    person_per_minute = _number(
        _("answers to one person a minute"),
        _("0: no limit. Empty: PERSON_ANSWERS_PER_MINUTE. Owners are exempt."),
        MOST_ANSWERS,
    )
    person_per_day = _number(
        _("answers to one person a day"),
        _("0: no limit. Empty: PERSON_ANSWERS_PER_DAY. The day begins at midnight."),
        MOST_ANSWERS,
    )
    chat_per_minute = _number(
        _("answers in one chat a minute"),
        _("0: no limit. Empty: CHAT_ANSWERS_PER_MINUTE."),
        MOST_ANSWERS,
    )
    chat_per_day = _number(
        _("answers in one chat a day"),
        _("0: no limit. Empty: CHAT_ANSWERS_PER_DAY."),
        MOST_ANSWERS,
    )
    quiet_hours = _words(
        _("quiet hours"), _("One a line: 23:00-07:30. Owners are answered all the same.")
    )
    zone = models.CharField(
        _("zone of the chat"),
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text=_("The time zone of quiet hours and reminders, such as Asia/Shanghai."),
    )
    command_prefix = models.CharField(
        _("prefix of commands"),
        max_length=8,
        blank=True,
        default="",
        help_text=_("Before help, reset, stop, status and so on. Empty: /. “-”: no commands."),
    )
    member_commands = models.CharField(
        _("commands against members"),
        max_length=8,
        choices=MemberCommands.choices,
        blank=True,
        default="",
        db_default="",
        help_text=_("Who may give /mute, /unmute and /kick in groups. Empty: nobody."),
    )
    ambient_messages = _number(
        _("messages of others shown"),
        _(
            "So many recent messages of a group that were not for the bot are shown to the model. "
            "0: none."
        ),
        MOST_AMBIENT,
    )
    ambient_chars = _number(_("of those, characters at most"), "", MOST_AMBIENT_CHARS)
    ambient_minutes = _number(_("of those, minutes old at most"), "", MOST_AMBIENT_MINUTES)
    merge_seconds = models.FloatField(
        _("wait for further messages (seconds)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(MOST_MERGE_SECONDS)],
        help_text=_(
            "Messages of one person that follow each other within this time are answered together. "
            "0: each by itself."
        ),
    )
    mention = _yes_no(_("at the sender in groups"), _("Empty: as the persona says."))
    quote = _yes_no(_("quote the message in groups"), _("Empty: as the persona says."))
    part_chars = _number(
        _("characters of one message"),
        _("A longer answer is sent in several messages."),
        MOST_PART_CHARS,
        FEWEST_PART_CHARS,
    )
    forward_above = _number(
        _("merged forward above (characters)"),
        _("A longer answer is sent as one merged forward. 0: never."),
        MOST_FORWARD,
    )
    markdown = models.CharField(
        _("Markdown"), max_length=8, choices=MarkdownStyle.choices, blank=True, default=""
    )
    sends_per_minute = _number(
        _("messages to one chat a minute"),
        _("More wait for their turn. 0: no limit. Empty: as many as answers in one chat."),
        MOST_SENDS,
    )
    typing = _yes_no(_("“is typing” in private chats"), _("Where the client can show it."))
    reaction = models.CharField(
        _("reaction while it works"),
        max_length=16,
        blank=True,
        default="",
        help_text=_(
            "The id of an emoji with which a message in a group is marked while it is answered, "
            "for example 424. “-”: none."
        ),
    )
    says_beside_calls = _yes_no(
        _("say what is written beside tool calls"),
        _("Words like “let me look it up” are sent at once."),
    )
    endpoint = models.ForeignKey(
        ModelEndpoint,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("model endpoint asked first"),
        help_text=_("Empty: as the persona says."),
    )
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    tracked = Tracked(
        fields=(
            *("name", "enabled", "silenced", "silenced_until", "only_person", "only_until"),
            *(*SCOPE, *SAID),
        )
    )

    class Meta:
        verbose_name = _("manners")
        verbose_name_plural = _("manners")
        ordering = ("account", "chat_kind", "name")
        indexes: ClassVar = []

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Raises :class:`ValidationError` with what is wrong, under the name of its field."""
        problems = {
            **self.scope_problems(),
            "quiet_hours": _quiet_hours_problems(self.quiet_hours),
            "wake_pattern": []
            if self.wake_pattern == NONE
            else pattern_problems(self.wake_pattern),
            "reaction": _reaction_problems(self.reaction),
            "zone": _zone_problems(self.zone),
            **{name: check_ids(getattr(self, name)) for name in LISTS},
            **{name: line_problems(getattr(self, name)) for name in LINES},
        }
        for name in ("wake_chance", "merge_seconds"):
            if (number := getattr(self, name)) is not None and not math.isfinite(number):
                problems[name] = [gettext("Enter a number.")]
        if found := {name: lines for name, lines in problems.items() if lines}:
            raise ValidationError(found)

    @property
    def is_silencing(self) -> bool:
        """Whether it silences its chats at this moment."""
        until = self.silenced_until
        return self.silenced and (until is None or until > timezone.now())


def _quiet_hours_problems(text: str) -> list[str]:
    try:
        parse_quiet_hours(text)
    except ValueError as error:
        words = gettext(
            "“%(span)s” is not like 23:00-07:30: two different times of the day. To keep silent "
            "all day, tick “silenced”."
        )
        return [words % {"span": error}]
    return []


def pattern_problems(pattern: str) -> list[str]:
    """Why ``pattern`` is refused, in words; nothing for none."""
    if not pattern:
        return []
    try:
        compile_pattern(pattern)
    except PatternRefused as error:
        fault = error.text if error.text in (TOO_LONG, NO_PATTERN) else _FAULTS[error.text]
        return [gettext(fault) % error.values]
    return []


def _reaction_problems(text: str) -> list[str]:
    is_known = text in ("", NONE) or (text.isascii() and text.isdigit())
    return [] if is_known else [gettext("The id of an emoji is a number, like 424.")]


def _zone_problems(name: str) -> list[str]:
    is_known = not name or name in known_zones()
    return [] if is_known else [gettext("This machine knows no time zone of that name.")]


def line_problems(text: str) -> list[str]:
    """What is wrong with names or prefixes, one a line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    problems = []
    if len(lines) > MOST_LINES:
        problems.append(gettext("At most %(count)d lines.") % {"count": MOST_LINES})
    problems += [
        gettext("“%(line)s” is longer than %(count)d characters.")
        % {"line": shorten_text(line, 40), "count": MOST_LINE_CHARS}
        for line in lines
        if len(line) > MOST_LINE_CHARS
    ][:3]
    return problems

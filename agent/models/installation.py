"""What an operator decides for the whole installation: one row."""

import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy as _

from tools.live_rows import ConfigVersion, LiveKind, LiveModel, Tracked
from tools.local_time import Clock, known_zones


def check_zone(name: str) -> None:
    """Refuse what is no time zone."""
    if name not in known_zones():
        raise ValidationError(
            gettext("“%s” is no time zone. Write one such as Asia/Shanghai or Europe/London.")
            % name[:50]
        )


#: Variables of the environment in whose place the row can say something, each in a field of the
#: same name.
VARIABLES = (
    *("LANGUAGE_CODE", "RECORD_KEEP_DAYS", "EVENT_KEEP_DAYS", "MEDIA_KEEP_DAYS", "MEDIA_KEEP_GIB"),
    *("MEDIA_FREE_GIB", "MEMORY_CHARS", "MEMORY_EXTRACT_TURNS", "MEMORY_REVIEW_HOURS"),
    *("SUMMARY_AFTER_MESSAGES", "MCP_ALLOWED_COMMANDS", "TOKENS_PER_DAY", "APPROVAL_TIMEOUT"),
    *("DEFER_TOOLS_ABOVE", "MEDIA_FETCH_SECONDS", "MEDIA_FETCH_MIB", "MEDIA_PERSON_MIB_PER_DAY"),
    *("PICTURE_MAX_SIDE", "PICTURE_MAX_KIB", "PICTURE_MAX_MEGAPIXELS", "FILE_EXCERPT_CHARS"),
    *("STICKERS_BY_VISION", "DAILY_BACKUP", "BACKUP_KEEP_GIB"),
)
#: What a list says that is empty, where an empty field leaves it to the environment.
NONE = "-"
#: Programs that one row allows, and characters of each.
MOST_PROGRAMS, LONGEST_PROGRAM = 50, 200
#: A plain name or an absolute path, without arguments, spaces and signs that a shell would read.
_PROGRAM = re.compile(r"/?(?:[A-Za-z0-9_+@][A-Za-z0-9._+@-]*/)*[A-Za-z0-9_+@][A-Za-z0-9._+@-]*")


def check_programs(text: str) -> None:
    """Refuse what is neither the plain name of a program nor an absolute path, one a line."""
    programs = [line.strip() for line in text.splitlines() if line.strip()]
    if len(programs) > MOST_PROGRAMS:
        raise ValidationError(gettext("At most %d programs.") % MOST_PROGRAMS)
    for program in programs:
        is_whole = _PROGRAM.fullmatch(program) and ("/" not in program or program[0] == "/")
        if program != NONE and not (is_whole and len(program) <= LONGEST_PROGRAM):
            raise ValidationError(
                gettext(
                    "“%(program)s” is neither the name of a program, such as npx, nor an absolute "
                    "path: without arguments, spaces and signs that a shell reads."
                )
                % {"program": program[:50]}
            )


def _number(name: Any, help_text: Any = "") -> "models.IntegerField[Any, Any]":
    return models.IntegerField(name, null=True, blank=True, help_text=help_text)


def _decimal(name: Any, help_text: Any = "") -> "models.FloatField[Any, Any]":
    return models.FloatField(name, null=True, blank=True, help_text=help_text)


class Installation(LiveModel):
    """The one row of the installation. What is empty is as the environment says, and the time zone
    as the machine has it."""

    live_kind = LiveKind.INSTALLATION

    ONLY = 1
    """The key of the row."""

    time_zone = models.CharField(
        _("time zone"),
        max_length=64,
        blank=True,
        default="",
        validators=[check_zone],
        help_text=_(
            "For times on pages and in prompts, for quiet hours, and for the days and months of "
            "sums, limits and budgets. Empty: the machine’s."
        ),
    )
    language_code = models.CharField(
        _("language"),
        max_length=8,
        blank=True,
        default="",
        db_default="",
        choices=(("zh-hans", "简体中文"), ("en", "English")),
        help_text=_("Of pages until a browser asks for another, and of what commands print."),
    )
    record_keep_days = _number(
        _("messages are kept (days)"),
        _("With all that was done for them. 0: for ever. What is older is deleted every hour."),
    )
    event_keep_days = _number(_("client events are kept (days)"), _("0: for ever."))
    media_keep_days = _number(
        _("copies of media are kept (days)"), _("After they were used last. 0: for ever.")
    )
    media_keep_gib = _decimal(
        _("copies of media together (GiB)"),
        _("Beyond that the ones not used for longest are deleted. 0: no limit."),
    )
    media_free_gib = _decimal(
        _("free on the disk (GiB)"), _("With less, nothing is downloaded. 0: no check.")
    )
    memory_chars = _number(_("notes shown with each message (characters)"), _("0: none are shown."))
    memory_extract_turns = _number(
        _("notes are taken after (answered messages)"),
        _("Each time costs a model call. 0: never."),
    )
    memory_review_hours = _number(_("notes are looked through every (hours)"), _("0: never."))
    summary_after_messages = _number(
        _("summaries after (messages)"),
        _("Of a chat, that no longer fit into the model’s window; 10 is a good value. 0: never."),
    )
    mcp_allowed_commands = models.TextField(
        _("programs that MCP servers may be"),
        blank=True,
        default="",
        db_default="",
        validators=[check_programs],
        help_text=_(
            "One a line: a name such as npx, found in PATH, or an absolute path, exactly as the "
            "server names it. “-”: none. Whoever may save servers can run anything with npx, uvx, "
            "docker, a shell or an interpreter; one program by its path is narrower."
        ),
    )
    tokens_per_day = models.BigIntegerField(
        _("tokens of a day"),
        null=True,
        blank=True,
        help_text=_("Of all model calls; then only owners are answered. 0: no limit."),
    )
    approval_timeout = _decimal(_("a call waits for approval (seconds)"), _("Then it is refused."))
    defer_tools_above = _number(
        _("tools offered in full"),
        _("Of MCP, plugins and HTTP; with more, they are named alone and looked up."),
    )
    media_fetch_seconds = _decimal(_("fetching the media of a message (seconds)"))
    media_fetch_mib = _number(_("media of a message (MiB)"))
    media_person_mib_per_day = _number(
        _("media of one person a day (MiB)"), _("Owners have no limit. 0: no limit.")
    )
    picture_max_side = _number(
        _("longer side of a picture (pixels)"), _("Larger ones are made smaller.")
    )
    picture_max_kib = _number(_("size of a picture (KiB)"), _("Larger ones are made smaller."))
    picture_max_megapixels = _number(
        _("megapixels of a picture"), _("Larger ones are not opened at all.")
    )
    file_excerpt_chars = _number(
        _("characters of a file"), _("Its beginning, which the model is given.")
    )
    stickers_by_vision = models.BooleanField(
        _("the vision model chooses stickers"),
        null=True,
        blank=True,
        help_text=_("One more model call for each sticker."),
    )
    daily_backup = models.BooleanField(
        _("a backup every day"),
        null=True,
        blank=True,
        help_text=_("In the folder backups of the data folder. The newest seven are kept."),
    )
    backup_keep_gib = _decimal(
        _("daily backups together (GiB)"),
        _("Beyond that the oldest are deleted. 0: no limit."),
    )
    changed_on = models.CharField(max_length=10, blank=True, default="", editable=False)
    begun_on = models.CharField(max_length=10, blank=True, default="", editable=False)
    """Both as in :class:`tools.local_time.Clock`."""

    tracked = Tracked(fields=("time_zone", *(variable.lower() for variable in VARIABLES)))

    class Meta:
        verbose_name = _("system setting")
        verbose_name_plural = _("system settings")

    def __str__(self) -> str:
        return gettext("System settings")

    def find_problems(self) -> Mapping[str, list[str]]:
        """Numbers that the environment could not say either, by their fields."""
        words, found = gettext("From %(low)s to %(high)s."), {}
        for variable, (low, high) in settings.SETTING_RANGES.items():
            value = getattr(self, variable.lower(), None)
            if value is not None and not low <= value <= high:
                found[variable.lower()] = [words % {"low": f"{low:g}", "high": f"{high:,g}"}]
        return found

    def save(self, **options: Any) -> None:
        """With a new zone, the day that has begun goes on until the next midnight there."""
        self.pk = self.ONLY
        with transaction.atomic(using=options.get("using")):
            # Before all else: of two who choose, one waits here.
            ConfigVersion.bump(LiveKind.INSTALLATION)
            columns = Installation.objects.values_list("time_zone", "changed_on", "begun_on")
            before = Clock(*(columns.filter(pk=self.ONLY).first() or ()))
            if before.zone != self.time_zone:
                clock = before.move_to(self.time_zone, timezone.now())
                self.changed_on, self.begun_on = clock.changed_on, clock.begun_on
            super().save(**options)

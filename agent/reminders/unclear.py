"""Why a time is asked back instead of guessed, as a sentence for who gave it. Pure."""

from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Unclear(TextChoices):
    """Why; the label is the sentence, in the language that is active when it is read."""

    NO_TIME = "no_time", _("I find no time in this: {words}")
    NO_HOUR = "no_hour", _("At what hour? {words} is a day only.")
    NO_DAY = "no_day", _("On which day? {words} does not say it.")
    TWO_HOURS = "two_hours", _("In the morning or in the afternoon: {first} or {second}?")
    TWO_DAYS = "two_days", _("Which day is meant: {first} or {second}?")
    TWO_TIMES = "two_times", _("One reminder has one hour: {words}")
    QUALIFIED = (
        "qualified",
        _(
            "I am not sure what time “{words}” is: say it another way,"
            " or put the text in quotation marks."
        ),
    )
    TWO_GAPS = "two_gaps", _("Does {words} mean every {first} or every {second}?")
    HOLIDAYS = "holidays", _("Holidays can be left out of working days only, not here: {words}")
    NO_SUCH_DAY = "no_such_day", _("There is no such day or hour: {words}")
    PAST = "past", _("That is over: {due}")
    TOO_FAR = "too_far", _("That is more than {years} years ahead.")
    TOO_LONG = "too_long", _("That is too long; at most {most} characters.")
    RULE = "rule", _("This is no rule of a repeat: {words}")
    RULE_PART = "rule_part", _("A repeat cannot have this: {words}")
    TOO_OFTEN = "too_often", _("That is too often; at least {seconds} seconds between two.")
    NEVER = "never", _("A repeat like this never happens: {words}")


class UnclearTime(ValueError):  # noqa: N818 - the word says what happened
    """A time or a repeat that is not understood, not sure, or not possible.

    ``reason`` says why, ``data`` what its sentence names: texts and numbers.
    """

    def __init__(self, reason: Unclear, **data: Any) -> None:
        super().__init__(f"{reason.value} {data}")
        self.reason, self.data = reason, data

    def say(self) -> str:
        """One sentence in the language that is active."""
        return str(self.reason.label).format(**self.data)

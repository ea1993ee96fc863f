"""Budgets: how much may be spent on whom, and what happens then. Pure."""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class SpendKind(TextChoices):
    """Whose spending is summed."""

    TOTAL = "total", _("everything")
    ENDPOINT = "endpoint", _("endpoint")
    PERSONA = "persona", _("persona")
    ACCOUNT = "account", _("account")
    CHAT = "chat", _("chat")
    PERSON = "person", _("person")
    TOOL = "tool", _("tool")


class BudgetPeriod(TextChoices):
    DAY = "day", _("day")
    MONTH = "month", _("month")


class BudgetAction(TextChoices):
    """What happens when a budget is used up."""

    CHEAPER = "cheaper", _("another endpoint answers")
    OWNERS = "owners", _("only owners are answered")
    SENTENCE = "sentence", _("a polite sentence is said, once per chat and day")


TOKENS = "tokens"
"""The unit of a budget that is not in a currency."""
NANO = 10**9
"""Sums of money are whole numbers of billionths, so that adding them up stays exact."""

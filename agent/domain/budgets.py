"""Budgets: how much may be spent on whom, and what happens then. Pure."""

import math
from typing import NamedTuple

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from agent.domain.endpoint import TokenPrices


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


class BudgetTerms(NamedTuple):
    """A budget as it is obeyed: ``limit`` in tokens, or in billionths of the currency ``unit``."""

    pk: int
    name: str
    kind: SpendKind
    subject: str
    """"": each one of the kind for itself."""
    period: BudgetPeriod
    limit: int
    unit: str
    action: BudgetAction
    cheaper: int | None = None
    """The key of the endpoint that answers then."""

    def period_start(self, day: str) -> str:
        """The first day of the period that ``day`` (``2026-01-31``) is in."""
        return period_start(self.period, day)

    def amount(self, prices: TokenPrices, input_tokens: int, output_tokens: int) -> int:
        """What a call of so many tokens counts against this budget at most, and at least 1; 0
        where it surely costs nothing of it, for it is free or in another currency."""
        if self.unit == TOKENS:
            return max(1, input_tokens + output_tokens)
        if prices.currency != self.unit or not any(prices[:4]):
            return 0
        return max(1, most_cost(prices, input_tokens, output_tokens))

    def used_percent(self, spent: int) -> int:
        return spent * 100 // self.limit if self.limit else 100

    def in_words(self, amount: int) -> str:
        """``amount`` as people read it."""
        return f"{amount:,} {TOKENS}" if self.unit == TOKENS else cost_words(amount, self.unit)


def cost_words(nano: int, currency: str) -> str:
    """An amount of money as people read it: two digits, more where it is small."""
    digits = 2 if nano >= NANO or not nano else 4 if nano >= NANO // 10**3 else 6
    return f"{nano / NANO:,.{digits}f} {currency}".strip()


def period_start(period: BudgetPeriod, day: str) -> str:
    """The first day of the ``period`` that ``day`` is in."""
    return f"{day[:7]}-01" if period == BudgetPeriod.MONTH else day


def most_cost(prices: TokenPrices, input_tokens: int, output_tokens: int) -> int:
    """Billionths of the currency that so many tokens cost at most: nothing is cached, and all of
    the answer is of the dearer kind."""
    dearest_input = max(prices.input or 0, prices.cached or 0)
    dearest_output = max(prices.output or 0, prices.reasoning or 0)
    per_million = input_tokens * dearest_input + output_tokens * dearest_output
    return math.ceil(per_million * (NANO // 10**6))

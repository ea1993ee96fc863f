"""Budgets: how much may be spent on whom, and what happens then. Pure."""

import math
import re
from functools import lru_cache
from typing import NamedTuple

from django.db.models import TextChoices
from django.utils.translation import gettext, gettext_lazy as _

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
    """What happens when too little of a budget is left for a call."""

    CHEAPER = "cheaper", _("another endpoint answers")
    OWNERS = "owners", _("only owners are answered")
    SENTENCE = "sentence", _("a polite sentence is said, once per chat and day")


#: The budget that every installation begins with.
FIRST_BUDGET = "each person, a day"


def name_budget(name: str) -> str:
    """A budget's name as it is shown: that of the first one in the reader's words."""
    return gettext("each person, a day") if name == FIRST_BUDGET else name


TOKENS = "tokens"
"""The unit of a budget that is not in a currency."""
NANO = 10**9
"""Sums of money are whole numbers of billionths, so that adding them up stays exact."""
RESERVE = 10
"""A budget may be exceeded by one in so many parts to tell the outcomes of earlier calls."""
TAKEN = "which calls under way may take"
_SHORT = re.compile(
    r"the budget “([^\n]*)” has (?:nothing left|([^ ]+(?: tokens)?) left, "
    rf"(?:{TAKEN}|and a call may take ([^ ]+(?: tokens)?)))$",
    re.MULTILINE,
)
#: As it was written before what is left stood there, whatever was left.
_SPENT = re.compile(r"the budget “([^\n]*)” is used up$", re.MULTILINE)
#: Signs of money. Of those that several currencies share, the others say whose they are.
SIGNS = {
    "CNY": "¥",
    "USD": "$",
    "EUR": "€",
    "GBP": "£",
    "JPY": "JP¥",
    "KRW": "₩",
    "HKD": "HK$",
    "TWD": "NT$",
    "SGD": "S$",
}


class Shortage(NamedTuple):
    """Why a budget did not allow a call, its amounts in words."""

    left: str = ""
    """"" where nothing is left."""
    needed: str = ""
    """What the call may take; "" where it fits, and calls under way may take what is left."""

    def on_record(self, name: str) -> str:
        """What the record and the log say of the budget ``name``; see :func:`parse_shortage`."""
        if not self.left:
            return f"the budget “{name}” has nothing left"
        taken = f"and a call may take {self.needed}" if self.needed else TAKEN
        return f"the budget “{name}” has {self.left} left, {taken}"

    @property
    def words(self) -> str:
        """The same for people, without the budget's name; no whole sentence."""
        if not self.left:
            return gettext("nothing is left")
        if not self.needed:
            return gettext("%(left)s left, which calls under way may take") % self._asdict()
        return gettext("%(left)s left, and a call may take %(needed)s") % self._asdict()


#: That nothing is left.
NO_REST = Shortage()


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
    environment: str = ""
    """The variable of the environment that says it, if any. Such a budget is judged when a message
    comes: what is being answered is finished."""

    @property
    def label(self) -> str:
        return name_budget(self.name)

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

    @property
    def reserve(self) -> int:
        """What the outcomes of earlier calls may use beyond the limit."""
        return self.limit // RESERVE

    def shortage(self, spent: int, needed: int) -> Shortage:
        """Why a call that may take ``needed`` is not allowed; 0: calls under way are in its way."""
        left = self.limit - spent
        if left <= 0:
            return NO_REST
        return Shortage(self.in_words(left), self.in_words(needed) if needed else "")

    def in_words(self, amount: int) -> str:
        """``amount`` as people read it."""
        return f"{amount:,} {TOKENS}" if self.unit == TOKENS else cost_words(amount, self.unit)


def cost_words(nano: int, currency: str, *, is_price: bool = False) -> str:
    """An amount of money as people read it, in one word: with its sign and two digits; what is less
    than these can show is said to be so. The price of a million tokens has all of its digits."""
    amount, least = nano / NANO, ""
    if 0 < amount < 0.01 and not is_price:
        amount, least = 0.01, "<"
    whole, _dot, digits = f"{amount:,.{6 if is_price else 2}f}".partition(".")
    sign = SIGNS.get(currency, "")
    behind = f"\u00a0{currency}" if currency and not sign else ""
    return f"{least}{sign}{whole}.{digits.rstrip('0').ljust(2, '0')}{behind}"


def parse_shortage(raw: str) -> tuple[str, Shortage | None] | None:
    """The budget that is named in ``raw``, a text on record, and why it did not allow a call: None
    where that is not on record. None for any other text."""
    if found := _SHORT.search(raw):
        return found[1], Shortage(found[2] or "", found[3] or "")
    return (found[1], None) if (found := _SPENT.search(raw)) else None


@lru_cache(maxsize=16)  # asked several times of each model call
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

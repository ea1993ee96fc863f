"""What a call costs at given prices. Pure."""

from agent.domain.endpoint import TokenPrices
from agent.llm.spending.usage import Usage

NANO_PER_TOKEN = 1_000
"""Billionths for each token at a price of 1 per million."""


def compute_cost_nano(prices: TokenPrices, usage: Usage) -> int | None:
    """Billionths of the prices' currency for ``usage``; None where a price that it takes is not
    known.

    Cached input and reasoning have the price of other input and output where they have none of
    their own.
    """
    if (prices.input is None and usage.input) or (prices.output is None and usage.output):
        return None
    if prices.input is None and prices.output is None:
        return None
    given, said = prices.input or 0.0, prices.output or 0.0
    cached = given if prices.cached is None else prices.cached
    reasoning = said if prices.reasoning is None else prices.reasoning
    return round(
        NANO_PER_TOKEN
        * (
            (usage.input - usage.cached) * given
            + usage.cached * cached
            + (usage.output - usage.reasoning) * said
            + usage.reasoning * reasoning
        )
    )

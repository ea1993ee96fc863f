"""Tokens and money of a call, in every form in which endpoints report them."""

from typing import Any

import pytest

from agent.domain.endpoint import TokenPrices
from agent.llm.spending import Usage, compute_cost_nano, read_usage


@pytest.mark.parametrize(
    ("reported", "read"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}, Usage(9, 0, 4, 0)),
        (
            {  # OpenAI
                "prompt_tokens": 9,
                "completion_tokens": 6,
                "prompt_tokens_details": {"cached_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            Usage(9, 8, 6, 5),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 7},  # DeepSeek
            Usage(9, 7, 1, 0),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 3}, Usage(9, 3, 1, 0)),
        ({"input_tokens": 9, "output_tokens": 1}, Usage(9, 0, 1, 0)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 30}, Usage(9, 0, 21, 19)),
        ({"total_tokens": 30}, Usage(30)),
        ({"prompt_tokens": 9, "prompt_tokens_details": None}, Usage(9)),
        ({"prompt_tokens": 2, "cached_tokens": 9, "completion_tokens": 1}, Usage(2, 2, 1, 0)),
        ({"prompt_tokens": True, "completion_tokens": -1, "total_tokens": 2**40}, None),
        ("many", None),
        (None, None),
    ],
)
def test_tokens_are_read_in_every_form(reported: Any, read: Usage | None):
    assert read_usage({"usage": reported}) == read


@pytest.mark.parametrize("answer", [None, [], {}, "x"])
def test_an_answer_without_usage_reports_nothing(answer):
    assert read_usage(answer) is None


USAGE = Usage(1_000, 400, 100, 60)


@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        (TokenPrices(2.0, 0.5, 8.0, 16.0), 1_200_000 + 200_000 + 320_000 + 960_000),
        (TokenPrices(2.0, None, 8.0, None), 2_000_000 + 800_000),
        (TokenPrices(0.0, None, 0.0, None), 0),
        (TokenPrices(2.0), None),
        (TokenPrices(None, 1.0, 8.0, 1.0), None),
        (TokenPrices(), None),
    ],
)
def test_cached_input_and_reasoning_have_their_own_prices_or_those_of_the_others(prices, cost):
    assert compute_cost_nano(prices, USAGE) == cost


def test_what_only_takes_input_needs_no_price_of_output():
    assert compute_cost_nano(TokenPrices(2.0), Usage(10)) == 20_000

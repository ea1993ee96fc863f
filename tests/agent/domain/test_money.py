"""Amounts of money as people read them."""

import pytest

from agent.domain.budgets import cost_words


@pytest.mark.parametrize(
    ("nano", "currency", "words"),
    [
        (0, "CNY", "¥0.00"),
        (406_000, "CNY", "¥0.0004"),
        (9_000, "CNY", "<¥0.0001"),
        (12_300_000, "CNY", "¥0.0123"),
        (50_000_000, "USD", "$0.05"),
        (999_999_999, "CNY", "¥1.00"),
        (1_234_567_000_000, "CNY", "¥1,234.57"),
        (2_000_000_000, "ISK", "2.00\u00a0ISK"),
        (3_000_000_000, "", "3.00"),
    ],
)
def test_money_has_its_sign_and_stays_on_one_line(nano: int, currency: str, words: str):
    assert cost_words(nano, currency) == words

"""Amounts of money as people read them."""

import pytest

from agent.domain.budgets import cost_words


@pytest.mark.parametrize(
    ("nano", "currency", "words"),
    [
        (0, "CNY", "¥0.00"),
        (406_000, "CNY", "<¥0.01"),
        (9_999_999, "USD", "<$0.01"),
        (12_300_000, "CNY", "¥0.01"),
        (406_000_000, "CNY", "¥0.41"),
        (50_000_000, "USD", "$0.05"),
        (999_999_999, "CNY", "¥1.00"),
        (1_234_567_000_000, "CNY", "¥1,234.57"),
        (2_000_000_000, "ISK", "2.00\u00a0ISK"),
        (3_000_000_000, "", "3.00"),
    ],
)
def test_money_has_its_sign_and_stays_on_one_line(nano: int, currency: str, words: str):
    assert cost_words(nano, currency) == words


@pytest.mark.parametrize(
    ("nano", "words"), [(0, "¥0.00"), (37_500_000, "¥0.0375"), (2 * 10**9, "¥2.00")]
)
def test_a_price_keeps_all_its_digits(nano: int, words: str):
    assert cost_words(nano, "CNY", is_price=True) == words

"""Accounts of playgrounds."""

import re

import pytest

from agent.domain.types import (
    ACCOUNT_PATTERN,
    LAST,
    is_playground,
    playground_account,
    playground_owner,
)


@pytest.mark.parametrize("user", [1, 42, 7_199_254_740_991])
def test_playground_account_is_its_users(user: int) -> None:
    account = playground_account(user)
    assert is_playground(account)
    assert playground_owner(account) == user
    assert re.search(ACCOUNT_PATTERN, account)


ODD = ("", "10001", "9", "9000000000000000", str(LAST + 1), "90000000000000011")


@pytest.mark.parametrize("account", [*ODD, "900000000000000x", "٩000000000000001"])
def test_account_of_qq_is_no_playground(account: str) -> None:
    assert not is_playground(account)
    assert playground_owner(account) == 0


@pytest.mark.parametrize("user", [0, -1, LAST])
def test_nobody_has_a_playground_beyond_the_range(user: int) -> None:
    with pytest.raises(ValueError, match="no user"):
        playground_account(user)

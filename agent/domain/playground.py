"""Accounts of playgrounds: the page of the admin where an operator tries the bot out.

Their numbers are of a range that QQ gives to nobody, and a browser counts in them exactly: 16
digits, up to 2**53 - 1.
"""

FIRST, LAST = 9_000_000_000_000_000, 2**53 - 1
#: The same as a regular expression for rows. Every database knows its words.
ACCOUNT_PATTERN = "^900[0-7][0-9]{12}$"


def playground_account(user_pk: int) -> str:
    """The account of a user's own playground. Raises ValueError for a key that no user has."""
    number = FIRST + user_pk
    if not FIRST < number <= LAST:
        raise ValueError(f"no user has the key {user_pk}")
    return str(number)


def is_playground(account: str) -> bool:
    """Whether ``account`` is of a playground, and no account of QQ."""
    return (
        len(account) == len(str(FIRST))
        and account.isascii()
        and account.isdigit()
        and FIRST < int(account) <= LAST
    )


def playground_owner(account: str) -> int:
    """The key of the user whose playground ``account`` is; 0 for another account."""
    return int(account) - FIRST if is_playground(account) else 0

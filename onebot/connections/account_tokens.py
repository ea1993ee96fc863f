"""Tokens of single accounts: kept as salted hashes, remembered here so that a handshake needs no
look-up."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping

#: The fewest and the most characters of a token that an operator enters.
SHORTEST, LONGEST = 16, 200


def make_account_token() -> str:
    """A random token: 32 characters that need no escaping in a URL."""
    return secrets.token_hex(16)


def hash_token(token: str) -> str:
    """``token`` as it may be stored. One round is enough: a token of :data:`SHORTEST` characters
    cannot be found by trying."""
    salt = secrets.token_hex(16)
    return f"{salt}${_digest(salt, token.encode())}"


def token_matches(stored: str, given: Iterable[bytes]) -> bool:
    """Whether one of the ``given`` tokens matches the hash ``stored``, in constant time for
    each."""
    salt, _, digest = stored.partition("$")
    return any(hmac.compare_digest(_digest(salt, token), digest) for token in given)


def _digest(salt: str, token: bytes) -> str:
    return hashlib.sha256(salt.encode() + token).hexdigest()


class AccountTokens:
    """The hashes of the accounts that have a token of their own, by account.

    ``replace`` may be called from any thread: the mapping is replaced and never changed.
    Until it was called once nothing is known, and ``is_known`` is false.
    """

    def __init__(self) -> None:
        self.current: Mapping[str, str] = {}
        self.is_known = False

    def replace(self, tokens: Mapping[str, str]) -> None:
        self.current = dict(tokens)
        self.is_known = True

    def key_of(self, account: str) -> str:
        """What a socket of ``account`` has to be admitted under: its hash, "" for the common
        token."""
        return self.current.get(account, "")

    def keys_for(self, given: Iterable[bytes]) -> frozenset[str]:
        """The hashes that one of the ``given`` tokens matches."""
        tokens = list(given)
        return frozenset(
            stored for stored in self.current.values() if token_matches(stored, tokens)
        )

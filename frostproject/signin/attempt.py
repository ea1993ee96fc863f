"""One sign-in attempt, with the decision made before Django sees it."""

from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest

from tools.token_bucket import TokenBucket

#: Where the ASGI scope holds it.
ATTEMPT_KEY = "frostproject.attempt"


@dataclass(slots=True)
class SignInAttempt:
    """Who tries, and what was taken for it, which a success gives back."""

    address: str
    """The address of the client: the peer, or the address that the proxy on this machine names; ""
    for a local socket."""
    name: str = ""
    """The account's name as it was typed."""
    is_known: bool = False
    """Whether this browser has signed in to this account before."""
    succeeded: bool = False
    taken_tokens: list[TokenBucket] = field(default_factory=list)

    def return_tokens(self) -> None:
        for bucket in self.taken_tokens:
            bucket.give_back()
        self.taken_tokens.clear()


def find_attempt(request: HttpRequest) -> SignInAttempt:
    """The try that ``request`` is; one made up where it came past the gate."""
    scope: dict[str, Any] = getattr(request, "scope", {})
    found = scope.get(ATTEMPT_KEY)
    return (
        found
        if isinstance(found, SignInAttempt)
        else SignInAttempt(str(request.META.get("REMOTE_ADDR", "")))
    )

"""One sign-in attempt, with the decision made before Django sees it.

Browsers that have signed in to an account before have their own rate limits, so that strangers who
guess passwords, also from behind the same proxy, cannot lock the owner out. They are recognized by
a signed cookie: it survives restarts and changes of address, needs no storage here, and cannot be
forged.
"""

import secrets
import unicodedata
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.core import signing
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from tools.token_bucket import TokenBucket

KNOWN_COOKIE = "frostagent_known"
COOKIE_SALT = "frostagent known browser"
#: For how long a browser is known after it signed in.
KNOWN_SECONDS = 180 * 86_400
#: Characters of a name that count, and of a cookie that are read.
LONGEST_NAME, LONGEST_COOKIE = 150, 1_000


def fold_account_name(name: str) -> str:
    """``name`` as attempts are counted by it, independent of case and width."""
    return unicodedata.normalize("NFKC", name.strip()).casefold()[:LONGEST_NAME]


def remember_browser(request: HttpRequest, response: HttpResponseBase, name: str) -> None:
    """Have the browser of ``request`` known to the account ``name``."""
    if not find_known_browser(request.COOKIES.get(KNOWN_COOKIE, ""), name):
        response.set_cookie(
            KNOWN_COOKIE,
            signing.dumps([fold_account_name(name), secrets.token_urlsafe(12)], salt=COOKIE_SALT),
            max_age=KNOWN_SECONDS,
            path="/admin/",
            httponly=True,
            samesite="Lax",
            secure=settings.SESSION_COOKIE_SECURE,
        )


def find_known_browser(cookie: str, name: str | None = None) -> str:
    """The browser that ``cookie`` identifies; "" when it was not created here, is too old, or
    belongs to another account than ``name``."""
    try:
        account, browser = signing.loads(
            cookie[:LONGEST_COOKIE], salt=COOKIE_SALT, max_age=KNOWN_SECONDS
        )
    except (signing.BadSignature, ValueError, TypeError):
        return ""
    return str(browser) if name is None or account == fold_account_name(name) else ""


#: Where the ASGI scope holds it.
ATTEMPT_KEY = "frostproject.attempt"


@dataclass(slots=True)
class SignInAttempt:
    """Who tries, and what was taken for it, which a success gives back."""

    #: The address of the client: the peer, or the address that the proxy on this machine names; ""
    #: for a local socket.
    address: str
    #: The account's name as it was typed.
    name: str = ""
    #: Whether this browser has signed in to this account before.
    is_known: bool = False
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

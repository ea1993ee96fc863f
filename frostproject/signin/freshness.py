"""How long ago the user of a session last proved who they are."""

import time

from django.http import HttpRequest

#: How long the password is not asked again, in seconds.
FRESH_SECONDS = 600
PROVED_AT_KEY = "frostagent_proved_at"


def mark_fresh(request: HttpRequest) -> None:
    """The person at ``request`` has just given a password, a code or a passkey."""
    request.session[PROVED_AT_KEY] = int(time.time())


def is_fresh(request: HttpRequest) -> bool:
    """Whether that was a moment ago; not so where the clock was set back since."""
    proved_at = request.session.get(PROVED_AT_KEY)
    return isinstance(proved_at, int) and 0 <= time.time() - proved_at < FRESH_SECONDS

"""Time limits that some runs of the server need to change: tests that wait for a limit to pass, and
``chaos``.

``settings.FROST_LIMITS``, if it is set, overrides single limits.
"""

from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Limits in seconds, named by purpose; each is explained where it is used."""

    # Several processes
    lease: float = 30.0
    heartbeat: float = 5.0
    silent_transaction: float = 30.0
    turn_pause: float = 1.0
    account_refresh: float = 5.0
    account_look: float = 0.5
    # Alerts
    alert_look: float = 9.0
    alert_hold: float = 30.0
    # Chats
    next_words: float = 4.0
    stop: float = 5.0
    # Clients
    send: float = 60.0
    lost_socket: float = 15.0
    least_silence: float = 15.0
    silence_look: float = 1.0
    unanswered_ping: float = 30.0
    ping: float = 20.0
    playground_check: float = 30.0
    tool_message: float = 20.0
    # Tools
    tool_listing: float = 10.0
    provider_close: float = 10.0
    quick_answer: float = 2.0
    # The server
    request_head: float = 15.0
    drain: float = 6.0
    first_expiry: float = 90.0
    next_expiry: float = 3600.0


TIME_LIMITS = TimeLimits(**getattr(settings, "FROST_LIMITS", {}))
"""Those of this process, read once. A name that is none raises TypeError."""

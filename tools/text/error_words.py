"""What an error text of a network library or a web server means, in a sentence for people. Pure.

The texts are those of Python's ``ssl`` and ``socket``, of anyio, aiohttp and httpx2.
"""

import re
from typing import NamedTuple

from django.utils.translation import gettext as _

from tools.text.retold import is_ours, retell


class ErrorWords(NamedTuple):
    """An error for people: what happened, what to do about it, and the text on record, "" where
    that is the sentence already. ``is_foreign``: the sentence is not of ours, in any language."""

    sentence: str
    advice: str = ""
    raw: str = ""
    is_foreign: bool = False


_FAULTS = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("certificate", r"certificate[ _]verify[ _]failed|self-signed|certificate is not trusted"),
        ("tls", r"\[ssl|wrong_version_number|does not speak tls|record layer|tls handshake"),
        (
            "name",
            r"name or service not known|name resolution|nodename nor servname|getaddrinfo failed"
            r"|no address associated|domain name not found|dns server returned|nobody knows the"
            r" host",
        ),
        ("refused", r"connection refused|connect call failed|errno 111\b|actively refused"),
        ("route", r"network is unreachable|no route to host|host is unreachable"),
        ("failed", r"all connection attempts failed|\bcannot connect to host|\bconnecterror\b"),
        (
            "lost",
            r"connection (was )?reset|disconnected|broken pipe|connection (was )?closed"
            r"|peer closed|remoteprotocolerror|connectionlost",
        ),
        ("late", r"\btimed? ?out\b|\b(read|connect|pool|write)?timeout(error)?\b"),
    )
)
_STATUS = re.compile(
    r"\b(?:HTTP|status(?: code)?|answered)[ :/]+(?:1\.[01] )?([45]\d\d)\b", re.IGNORECASE
)


def tell_again(raw: str) -> ErrorWords:
    """A sentence of ours in the reader's language; any other as it is."""
    return ErrorWords(retell(raw), is_foreign=not is_ours(raw))


def explain_network_error(raw: str) -> ErrorWords | None:
    """The words for ``raw``; None where it is no error of this kind that is known."""
    for name, pattern in _FAULTS:
        if pattern.search(raw):
            return ErrorWords(*_fault_words(name), raw)
    found = _STATUS.search(raw)
    return ErrorWords(*status_words(int(found[1])), raw) if found else None


def _fault_words(name: str) -> tuple[str, str]:
    return {
        "certificate": (
            _("The certificate of the other side is not trusted."),
            _("Check the machine's clock and the host, or install its certificate here."),
        ),
        "tls": (
            _("The other side does not speak https at this port."),
            _("Is the address one with http://, or the port another?"),
        ),
        "name": (
            _("The host was not found: nobody knows its name."),
            _("Is it written right? Else check the network and the DNS of this machine."),
        ),
        "refused": (
            _("Nothing listens at this address: the connection was refused."),
            _(
                "Is the program there running? Are host and port right? In a container, 127.0.0.1 "
                "is the container itself."
            ),
        ),
        "route": (
            _("There is no way through the network to this address."),
            _("Check the network, a VPN or a proxy, and whether the address is right."),
        ),
        "failed": (
            _("The connection could not be made."),
            _("Is the program there running? Are host and port right? Is a proxy needed?"),
        ),
        "lost": (
            _("The other side closed the connection in the middle."),
            _("Try again. If it stays so, see the log of the other side, or of the proxy between."),
        ),
        "late": (
            _("There was no answer within the time limit."),
            _("Try again; if it stays so, check the address, or allow more time."),
        ),
    }[name]


def status_words(status: int) -> tuple[str, str]:
    """What a refusal with this HTTP status means, and what to do."""
    known = {
        401: (_("It refuses the key or token."), _("Enter it once more, in one piece.")),
        402: (_("The account is out of money."), _("Top it up on the page of the provider.")),
        403: (_("It forbids this."), _("The key may lack the right, or the network is shut out.")),
        404: (_("There is nothing at this address."), _("Check the path of the address.")),
        405: (
            _("There is nothing of this kind at this address."),
            _("Check the path of the address."),
        ),
        407: (_("A proxy on the way wants to be signed in to."), _("See the proxy's settings.")),
        413: (_("What was sent is too large for it."), _("Send less.")),
        429: (_("It is asked too often."), _("Wait a minute, or ask more rarely.")),
    }
    if status in known:
        return known[status]
    if status >= 500:
        return _("It has trouble itself (%d).") % status, _("Try again later; see its log.")
    return _("It refuses the request (%d).") % status, _("See what it says.")

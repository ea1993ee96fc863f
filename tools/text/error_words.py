"""What an error text of a network library or a web server means, in a sentence for people. Pure.

The texts are those of Python's ``ssl`` and ``socket``, of anyio, aiohttp and httpx2.

Sentences of the program that were put on record in one language, told in the reader's.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from django.conf import settings
from django.utils.translation import gettext, gettext as _, trans_real

_VALUE = re.compile(r"%(?:\((\w+)\))?[sd]")
#: Characters that a template has in one piece besides its values: less could be anybody's words.
LEAST_LATIN, LEAST_HAN = 8, 4
_HAN = re.compile(r"[\u4e00-\u9fff]")


def retell(text: str) -> str:
    """``text`` in the language of the moment, line by line, with the values in it; as it is where
    it is no sentence of ours."""
    if "\n" in text:
        return "\n".join(map(retell, text.split("\n")))
    return _retold(text) or text


def is_sentence(text: str) -> bool:
    """Whether ``text`` is one sentence of the program without values, in whatever language."""
    return text in _sentences()


def is_ours(text: str) -> bool:
    """Whether every line of ``text`` is a sentence of the program, in whatever language."""
    return all(_retold(line) is not None for line in text.split("\n") if line.strip())


def _retold(text: str) -> str | None:
    if (msgid := _sentences().get(text)) is not None:
        return gettext(msgid)
    for piece, template, msgid in _templates():
        if piece in text and (found := _pattern(template).fullmatch(text)):
            return _filled(gettext(msgid), found)
    where, colon, rest = text.partition(": ")
    told = _retold(rest) if rest else None
    return None if told is None else f"{where}{colon}{told}"


def _filled(template: str, found: re.Match[str]) -> str:
    """``template`` with the values that were ``found``, told again themselves."""
    values = iter(found.groups())
    pieces = _VALUE.split(template)[::2]
    names = [slot[1] for slot in _VALUE.finditer(template)]
    told = [retell(found[name] if name else next(values)) for name in names]
    return "".join(
        f"{piece.replace('%%', '%')}{value}"
        for piece, value in zip(pieces, [*told, ""], strict=True)
    )


@cache
def _sentences() -> dict[str, str]:
    """The sentences without values in each language, with what the catalogue calls them."""
    return {text: msgid for text, msgid in _catalogue() if not _VALUE.search(text)}


@cache
def _templates() -> tuple[tuple[str, str, str], ...]:
    """The longest piece of each sentence with values, the sentence, and its msgid."""
    found = []
    for text, msgid in _catalogue():
        if _VALUE.search(text):
            piece = max(_VALUE.sub("\0", text).split("\0"), key=len).replace("%%", "%")
            if len(piece) >= (LEAST_HAN if _HAN.search(piece) else LEAST_LATIN):
                found.append((piece, text, msgid))
    return tuple(sorted(found, key=lambda one: -len(one[0])))


def _catalogue() -> Iterator[tuple[str, str]]:
    for code, _name in settings.LANGUAGES:
        for msgid, text in trans_real.translation(code)._catalog.items():  # type: ignore[attr-defined]
            if isinstance(msgid, str) and msgid and "\x04" not in msgid and isinstance(text, str):
                yield from ((text or msgid, msgid), (msgid, msgid))


@cache
def _pattern(template: str) -> re.Pattern[str]:
    written, end, seen = "", 0, set[str]()
    for slot in _VALUE.finditer(template):
        name = slot[1]
        written += re.escape(template[end : slot.start()].replace("%%", "%"))
        written += f"(?P={name})" if name in seen else f"(?P<{name}>.*)" if name else "(.*)"
        seen |= {name} if name else set()
        end = slot.end()
    return re.compile(written + re.escape(template[end:].replace("%%", "%")), re.DOTALL)


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

"""Judging a handshake: who may connect, as which account and in which role.

Everything is decided from the request and the settings, without a look-up, because
clients give a handshake up after two seconds.

Clients that were refused of late by this process, for the operator who sets one up.

In memory only, and bounded: whoever reaches the port can be refused as often as he likes.

Tokens of single accounts: kept as salted hashes, remembered here so that a handshake needs no
look-up.
"""

import hashlib
import hmac
import ipaddress
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol
from urllib.parse import unquote, unquote_plus, urlsplit

from django.utils.translation import gettext as _

from agent.domain.types import is_playground
from tools.version import USER_AGENT

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
    """The hashes of the accounts that have a token of their own, by account; and what clients call
    the accounts, which bridges of official bots do by a name of their configuration.

    ``replace`` may be called from any thread: the mappings are replaced and never changed.
    Until it was called once nothing is known, and ``is_known`` is false.
    """

    def __init__(self) -> None:
        self.current: Mapping[str, str] = {}
        self.names: Mapping[str, frozenset[str]] = {}
        self.is_known = False

    def replace(
        self, tokens: Mapping[str, str], names: Mapping[str, frozenset[str]] | None = None
    ) -> None:
        self.current = dict(tokens)
        self.names = dict(names or {})
        self.is_known = True

    def learn(self, name: str, account: str) -> bool:
        """A client that calls itself ``name`` speaks for ``account``; whether that is new."""
        known = self.names.get(name, frozenset())
        if account in known:
            return False
        self.names = {**self.names, name: known | {account}}
        return True

    def find_account(self, name: str) -> str:
        """The account that a client means by ``name``; "" where only its first event can say so: a
        name that is not known, or that several go by."""
        known = self.names.get(name) or {name if name.isdigit() else ""}
        return next(iter(known)) if len(known) == 1 else ""

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


#: Refusals that are kept; those of one address for one reason are one.
MOST_KEPT = 50
#: The User-Agent of our own check that wrong tokens are refused; it is no client.
CHECK_AGENT = f"{USER_AGENT} doctor"


@dataclass(frozen=True, slots=True)
class ClientRefusal:
    """Why clients at ``peer`` were refused, as the log says it; ``last_at`` is Unix time."""

    peer: str
    reason: str
    count: int
    last_at: float


class RefusalWords(NamedTuple):
    """What was wrong, and what to change in the client."""

    text: str
    advice: str


class RefusalList:
    """Of one process; for its loop and for the threads of its pages."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], ClientRefusal] = OrderedDict()

    def note(self, peer: str, reason: str) -> None:
        """A client at ``peer`` was refused for ``reason``, which holds no token."""
        key = (peer[:64], reason[:300])
        with self._lock:
            earlier = self._kept.pop(key, None)
            count = earlier.count + 1 if earlier else 1
            self._kept[key] = ClientRefusal(*key, count, self._clock())
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)

    def recent(self, seconds: float) -> list[ClientRefusal]:
        """Those of the last ``seconds``, the newest first."""
        since = self._clock() - seconds
        with self._lock:
            return [one for one in reversed(self._kept.values()) if one.last_at >= since]

    def forget(self) -> None:
        with self._lock:
            self._kept.clear()


refused_clients = RefusalList()

_REASONS = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("twelve", r"OneBot 12 client"),
        ("path", r"there is no WebSocket at (?P<what>.*); use"),
        ("origin", r"the origin (?P<what>.*) is not allowed"),
        ("unread", r"have not been read yet"),
        ("none", r"presented no access token"),
        ("wrong", r"presented a wrong access token"),
        ("own", r"account (?P<what>\S+) has a token of its own"),
        ("common", r"account (?P<what>\S+) has no token of its own"),
        ("id", r"X-Self-ID is no name"),
        ("role", r"X-Client-Role is not one of"),
    )
)


def explain_refusal(reason: str) -> RefusalWords:
    """``reason`` in the language of the moment; one that is not known is its own words."""
    for name, pattern in _REASONS:
        if found := pattern.search(reason):
            what = found.groupdict().get("what", "")
            text, advice = _words(name)
            return RefusalWords(text.replace("%s", what), advice)
    return RefusalWords(reason, "")


def _words(name: str) -> tuple[str, str]:
    return {
        "twelve": (
            _("This is a OneBot 12 client."),
            _("Set it to OneBot 11, or use a client that speaks OneBot 11."),
        ),
        "path": (
            _("It asked for the path %s, where there is no WebSocket."),
            _("The address ends in /ws/frostagent; copy it from this page."),
        ),
        "origin": (
            _("A page in a browser asked, from %s, and no client."),
            _("If that is meant, list the origin in WS_ALLOWED_ORIGINS in .env."),
        ),
        "unread": (
            _("The server was still starting."),
            _("Clients try again by themselves."),
        ),
        "none": (
            _("It showed no access token."),
            _("Paste the token into the client's token field, and save there."),
        ),
        "wrong": (
            _("It showed a wrong access token."),
            _("Copy the token from this page once more, in one piece, and save in the client."),
        ),
        "own": (
            _("Account %s has an access token of its own, and the client showed another one."),
            _("Enter that token in the client, or make a new one on the bot's page."),
        ),
        "common": (
            _("Account %s has no access token of its own, and the client showed one of another."),
            _("Enter the token of this page in the client."),
        ),
        "id": (
            _("It did not say in a word for which account it speaks (X-Self-ID)."),
            _("Is this a OneBot 11 client, and is it signed in to QQ?"),
        ),
        "role": (
            _("It named a role that OneBot 11 does not know (X-Client-Role)."),
            _("Set it to universal, or leave the role out."),
        ),
    }[name]


Role = Literal["universal", "api", "event"]
ROLES: tuple[Role, ...] = ("universal", "api", "event")
#: What proxies, tunnels and networks before a site write into a request; also what begins with
#: PROXY_PREFIXES.
PROXY_HEADERS = frozenset(
    {
        *("forwarded", "via", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip"),
        *(
            "cf-ray",
            "cdn-loop",
            "client-ip",
            "fastly-client-ip",
            "fly-client-ip",
            "do-connecting-ip",
        ),
        *(
            "x-cluster-client-ip",
            "x-remote-ip",
            "x-remote-addr",
            "x-originating-ip",
            "x-proxyuser-ip",
            "x-bluecoat-via",
            "proxy-connection",
        ),
    }
)
PROXY_PREFIXES = (
    *("x-forwarded", "x-original-", "x-envoy-", "x-amzn-", "x-appengine-", "tailscale-"),
    *("ngrok-", "x-azure-"),
)
_NAME = re.compile(r"[!-~]{1,64}")
#: Tokens of one handshake that are checked; each is hashed once for each account that has its own
#: token.
MAX_OFFERED_TOKENS = 8
#: What playgrounds are called where clients have a User-Agent.
PLAYGROUND_AGENT = "FrostAgent playground"


class PlaygroundDoor(Protocol):
    """Who may speak for the account of a playground (:mod:`agent.domain.types`)."""

    def find_account(self, handshake: "Handshake", tokens: Sequence[bytes]) -> str:
        """The account that one of ``tokens`` opens for the browser behind ``handshake``; "" for
        none. Looks nothing up."""
        ...

    async def is_open(self, account: str, handshake: "Handshake") -> bool:
        """Whether that browser may still speak for ``account``. Raises what the database raises,
        and :class:`TimeoutError`."""
        ...


class ClosedDoor:
    """The door where there are no playgrounds."""

    def find_account(self, handshake: "Handshake", tokens: Sequence[bytes]) -> str:
        return ""

    async def is_open(self, account: str, handshake: "Handshake") -> bool:
        return False


@dataclass(frozen=True, slots=True)
class HandshakePolicy:
    """Who may connect: the settings that a handshake is judged by."""

    token: str
    """The common one, of all accounts that have none of their own."""
    allowed_origins: tuple[str, ...]
    trust_loopback: bool = False
    accounts: AccountTokens = field(default_factory=AccountTokens)
    playground: PlaygroundDoor = field(default_factory=ClosedDoor)


@dataclass(frozen=True, slots=True)
class Handshake:
    """The parts of a handshake that matter; header names in lower case."""

    path: str
    query: str
    headers: dict[str, str]
    peer: str
    """The address at the other end of the TCP connection, "" for a local socket."""
    subprotocols: tuple[str, ...] = ()

    @classmethod
    def from_scope(cls, scope: dict[str, object]) -> "Handshake":
        headers: list[tuple[bytes, bytes]] = scope.get("headers") or []  # type: ignore[assignment]
        client: list[object] = scope.get("client") or [""]  # type: ignore[assignment]
        query = scope.get("query_string") or b""
        return cls(
            path=str(scope.get("path", "")),
            query=query.decode("latin1") if isinstance(query, bytes) else str(query),
            headers=_headers(headers),
            peer=str(client[0]),
            subprotocols=tuple(scope.get("subprotocols") or ()),  # type: ignore[arg-type]
        )


def _headers(given: list[tuple[bytes, bytes]]) -> dict[str, str]:
    headers = {name.decode("latin1").lower(): value.decode("latin1") for name, value in given}
    hosts = [value.decode("latin1") for name, value in given if name.lower() == b"host"]
    return headers | (
        {"host": ", ".join(hosts)} if hosts else {}
    )  # of two hosts neither is to be believed


@dataclass(frozen=True, slots=True)
class HandshakeAccepted:
    """A client that may come in; ``self_id`` is "" if only the first event will contain it."""

    self_id: str
    role: Role
    user_agent: str
    keys: frozenset[str]
    """What its token opens: hashes of accounts' own tokens, and "" for the accounts that have
    none."""
    name: str = ""
    """What it calls the account: its id, or any other name."""


@dataclass(frozen=True, slots=True)
class HandshakeRefused:
    """Why a client may not; for the log, where the owner finds it."""

    reason: str


def judge_handshake(
    handshake: Handshake, admission: HandshakePolicy
) -> HandshakeAccepted | HandshakeRefused:
    """Admit or refuse. Refusals say how to fix the problem and never contain the token."""
    if any(name.startswith("12.") for name in handshake.subprotocols):
        return HandshakeRefused("this is a OneBot 12 client; configure it for OneBot 11")
    if refusal := origin_refusal(handshake, admission):
        return HandshakeRefused(refusal)
    tokens = presented_tokens(handshake)
    if account := admission.playground.find_account(handshake, tokens):
        return _playground(handshake, account)
    keys = _keys(handshake, admission)
    if isinstance(keys, HandshakeRefused):
        return keys
    name = handshake.headers.get("x-self-id")
    if name is not None and not _NAME.fullmatch(name):
        return HandshakeRefused("X-Self-ID is no name of up to 64 visible signs of ASCII")
    self_id = admission.accounts.find_account(name or "")
    if self_id and (refusal := account_refusal(self_id, keys, admission.accounts)):
        return HandshakeRefused(refusal)
    role = _role(handshake)
    if role is None:
        return HandshakeRefused("X-Client-Role is not one of Universal, API, Event")
    return HandshakeAccepted(
        self_id, role, handshake.headers.get("user-agent", "")[:200], keys, name or ""
    )


def _playground(handshake: Handshake, account: str) -> HandshakeAccepted | HandshakeRefused:
    """The browser of a playground: its token opens this one account."""
    if handshake.headers.get("x-self-id", account) != account:
        return HandshakeRefused("the token of a playground opens no other account")
    return HandshakeAccepted(
        account, "universal", PLAYGROUND_AGENT, frozenset({_playground_key(account)})
    )


def _playground_key(account: str) -> str:
    return f"playground:{account}"


def _keys(handshake: Handshake, admission: HandshakePolicy) -> frozenset[str] | HandshakeRefused:
    """What the client's token (or, where that is enough, the place it is at) opens."""
    given = presented_tokens(handshake)
    if not admission.accounts.is_known:
        return HandshakeRefused(
            "the accounts' tokens have not been read yet; the client may try again"
        )
    if not given:
        if admission.trust_loopback and is_trusted_loopback(handshake):
            return frozenset({""})
        return HandshakeRefused("the client presented no access token")
    common = (
        {""}
        if any(hmac.compare_digest(token, admission.token.encode()) for token in given)
        else set()
    )
    return admission.accounts.keys_for(given) | common or HandshakeRefused(
        "the client presented a wrong access token"
    )


def account_refusal(self_id: str, keys: frozenset[str], accounts: AccountTokens) -> str:
    """Why a client whose token opens ``keys`` may not speak for ``self_id``; "" when it may."""
    if is_playground(self_id):
        may = _playground_key(self_id) in keys
        return "" if may else f"account {self_id} is a playground, which its own page alone opens"
    key = accounts.key_of(self_id)
    if key in keys:
        return ""
    if key:
        return f"account {self_id} has a token of its own, and the client presented another"
    return (
        f"account {self_id} has no token of its own, and the client did not present the common one"
    )


def presented_tokens(handshake: Handshake) -> list[bytes]:
    """What the client offers as token: ``Bearer T``, ``Token T`` (in any case),
    ``?access_token=T``; the first few."""
    scheme, _, value = handshake.headers.get("authorization", "").partition(" ")
    tokens = [value.strip().encode("latin1")] if scheme.lower() in ("bearer", "token") else []
    pairs = (pair.partition("=") for pair in handshake.query.split("&"))
    # Some clients put the token into the address as it is: a plus in it is a plus.
    tokens += [
        decode(value).encode()
        for name, _, value in pairs
        if name == "access_token"
        for decode in (unquote, unquote_plus)
    ]
    return list(dict.fromkeys(token for token in tokens if token))[:MAX_OFFERED_TOKENS]


def is_trusted_loopback(handshake: Handshake) -> bool:
    """Whether the client is on this machine, came through no proxy that is, and asks for a host
    that is this machine.

    A local socket is none: what listens before this server dials it, and need add no header.
    """
    if any(map(_is_of_proxy, handshake.headers)):
        return False
    return _is_loopback(handshake.peer.partition("%")[0]) and _is_loopback_host(
        handshake.headers.get("host", "")
    )


def _is_of_proxy(header: str) -> bool:
    """Whether a proxy writes this header; underscores count as hyphens, as many programs read
    them."""
    name = header.replace("_", "-")
    return name in PROXY_HEADERS or name.startswith(PROXY_PREFIXES)


def _is_loopback_host(host: str) -> bool:
    """``localhost``, 127.0.0.0/8 written out, or ``[::1]``, with a port or without: no other
    spelling is needed."""
    found = re.fullmatch(
        r"(?:(localhost)|(127(?:\.\d{1,3}){3})|\[(::1)\])(?::\d{1,5})?", host.lower(), re.ASCII
    )
    return found is not None and (bool(found[1]) or _is_loopback(found[2] or found[3]))


def _is_loopback(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def origin_refusal(handshake: Handshake, admission: HandshakePolicy) -> str:
    """Why a browser's page may not connect; "" when it may, or when no browser is asking.

    A page whose name was made to point at this machine passes as "same host". It has no
    token, and without one the host has to be this machine's own.
    """
    origin = handshake.headers.get("origin")
    if origin is None:
        return ""
    host = handshake.headers.get("host", "").lower()
    origin_host = _origin_host(origin)
    if origin_host and origin_host == host:
        return ""
    listed = {entry.lower().rstrip("/") for entry in admission.allowed_origins}
    if origin_host and (origin.lower().rstrip("/") in listed or origin_host in listed):
        return ""
    return f"the origin {origin[:200]!r} is not allowed; list it in WS_ALLOWED_ORIGINS"


def _origin_host(origin: str) -> str:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return ""
    return parts.netloc.lower() if parts.scheme and parts.hostname else ""


def _role(handshake: Handshake) -> Role | None:
    """The role in the header, else the one the path is for, else Universal."""
    named = handshake.headers.get("x-client-role", "").strip().lower()
    if not named:
        named = handshake.path.rstrip("/").rpartition("/")[2]
        return next((role for role in ROLES if role == named), "universal")
    return next((role for role in ROLES if role == named), None)

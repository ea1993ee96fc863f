"""Judging a handshake: who may connect, as which account and in which role. Pure.

Everything is decided from the request and the settings, without a look-up, because
clients give a handshake up after two seconds.
"""

import hmac
import ipaddress
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, unquote_plus, urlsplit

Role = Literal["universal", "api", "event"]
ROLES: tuple[Role, ...] = ("universal", "api", "event")
PROXY_HEADERS = ("x-forwarded-for", "forwarded", "via")
ID_LIMIT = 32


@dataclass(frozen=True, slots=True)
class Admission:
    """Who may connect: the settings that a handshake is judged by."""

    token: str
    allowed_origins: tuple[str, ...]
    allowed_hosts: tuple[str, ...]


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
            headers={name.decode("latin1").lower(): value.decode("latin1") for name, value in headers},
            peer=str(client[0]),
            subprotocols=tuple(scope.get("subprotocols") or ()),  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True)
class Admitted:
    """A client that may come in; ``self_id`` is "" where the first event will tell it."""

    self_id: str
    role: Role
    user_agent: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a client may not; for the log, where the owner finds it."""

    reason: str


def judge(handshake: Handshake, admission: Admission) -> Admitted | Refused:
    """Admit or refuse. Refusals name what to mend and never the token."""
    if any(name.startswith("12.") for name in handshake.subprotocols):
        return Refused("this is a OneBot 12 client; configure it for OneBot 11")
    refusal = origin_refusal(handshake, admission) or credential_refusal(handshake, admission)
    if refusal:
        return Refused(refusal)
    self_id = handshake.headers.get("x-self-id")
    if self_id is not None and not (self_id.isascii() and self_id.isdigit() and len(self_id) <= ID_LIMIT):
        return Refused("X-Self-ID is not a number")
    role = _role(handshake)
    if role is None:
        return Refused("X-Client-Role is not one of Universal, API, Event")
    return Admitted(self_id or "", role, handshake.headers.get("user-agent", "")[:200])


def credential_refusal(handshake: Handshake, admission: Admission) -> str:
    """Why the token (or, without one, the place the client is at) does not do; "" when it does."""
    if not admission.token:
        if is_local(handshake):
            return ""
        return "no token is configured, so only clients on this machine may connect; set ONEBOT_ACCESS_TOKEN"
    given = presented_tokens(handshake)
    if not given:
        return "the client presented no access token"
    if any(hmac.compare_digest(token, admission.token.encode()) for token in given):
        return ""
    return "the client presented a wrong access token"


def presented_tokens(handshake: Handshake) -> list[bytes]:
    """What the client offers as token: ``Bearer T``, ``Token T`` (in any case), ``?access_token=T``."""
    scheme, _, value = handshake.headers.get("authorization", "").partition(" ")
    tokens = [value.strip().encode("latin1")] if scheme.lower() in ("bearer", "token") else []
    pairs = (pair.partition("=") for pair in handshake.query.split("&"))
    # Some clients put the token into the address as it is: a plus in it is a plus.
    tokens += [decode(value).encode() for name, _, value in pairs if name == "access_token" for decode in (unquote, unquote_plus)]
    return [token for token in tokens if token]


def is_local(handshake: Handshake) -> bool:
    """Whether the client is on this machine and did not come through a proxy that is."""
    if any(name in handshake.headers for name in PROXY_HEADERS):
        return False
    if not handshake.peer:
        return True
    try:
        address = ipaddress.ip_address(handshake.peer.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def origin_refusal(handshake: Handshake, admission: Admission) -> str:
    """Why a browser's page may not connect; "" when it may, or when no browser is asking.

    Without a token, a page whose name was made to point at this machine would pass as
    "same host"; so the host must then be one this installation is known by.
    """
    origin = handshake.headers.get("origin")
    if origin is None:
        return ""
    host = handshake.headers.get("host", "").lower()
    origin_host = _origin_host(origin)
    if origin_host and origin_host == host and (admission.token or _is_known(host, admission.allowed_hosts)):
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


def _is_known(host: str, allowed: tuple[str, ...]) -> bool:
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    patterns = [entry.lower() for entry in allowed]
    return "*" in patterns or any(name == p or (p.startswith(".") and f".{name}".endswith(p)) for p in patterns)


def _role(handshake: Handshake) -> Role | None:
    """The role in the header, else the one the path is for, else Universal."""
    named = handshake.headers.get("x-client-role", "").strip().lower()
    if not named:
        named = handshake.path.rstrip("/").rpartition("/")[2]
        return next((role for role in ROLES if role == named), "universal")
    return next((role for role in ROLES if role == named), None)

"""Alerts as they leave the installation: which there are, where they can go, and in what words.
Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from agent.domain.states import RouteKind
from tools.secrets.masked import MASK


class AlertKind(TextChoices):
    """What the overview tells of."""

    OUTAGE = "outage", _("database cannot be written")
    DISCONNECTED = "disconnected", _("account not connected")
    ACCOUNT_OFFLINE = "account_offline", _("account signed out of QQ")
    CANNOT_SPEAK = "cannot_speak", _("account hears and cannot speak")
    PAUSED = "paused", _("account muted, or no longer in a group")
    MODEL = "model", _("model endpoint fails")
    BUDGET = "budget", _("budget near its end")
    DISK = "disk", _("disk nearly full")
    BACKUP = "backup", _("daily backup failed")
    MCP = "mcp", _("MCP server not connected")
    PLUGIN = "plugin", _("plugin cannot run")
    CLOCK = "clock", _("clock of the machine wrong")
    UNKNOWN_SENDS = "unknown_sends", _("unknown whether messages arrived")
    APPROVALS = "approvals", _("calls wait for an owner")
    REQUESTS = "requests", _("requests wait to be let in")
    UNTOLD = "untold", _("outcomes that chats did not hear of")
    SIGN_INS = "sign_ins", _("failed sign-ins")
    NEW_TOOLS = "new_tools", _("tools new or changed")
    SILENCE = "silence", _("chats silenced")
    TAKEN_OVER = "taken_over", _("chats taken over")
    VERSION = "version", _("newer version out")
    NO_MODEL = "no-model", _("only the demo model answers")


#: Schemes of apprise that each kind may have, the usual one first. Nothing else is ever opened.
SCHEMES: Mapping[str, tuple[str, ...]] = {
    RouteKind.MAIL: ("mailtos", "mailto"),
    RouteKind.SERVERCHAN: ("schan",),
    RouteKind.BARK: ("barks", "bark"),
    RouteKind.TELEGRAM: ("tgram",),
    RouteKind.DINGTALK: ("dingtalk",),
    RouteKind.FEISHU: ("feishu",),
    RouteKind.WECOM: ("wecombot",),
    RouteKind.PUSHPLUS: ("pushplus",),
    RouteKind.PUSHDEER: ("pushdeers", "pushdeer"),
    RouteKind.NTFY: ("ntfys", "ntfy"),
    RouteKind.GOTIFY: ("gotifys", "gotify"),
    RouteKind.DISCORD: ("discord",),
    RouteKind.SLACK: ("slack",),
}
#: Kinds whose address names the host of a server; in those of others a key stands in its place.
HOSTED = frozenset({RouteKind.MAIL, RouteKind.BARK, RouteKind.NTFY, RouteKind.GOTIFY})


def service_address(kind: str, text: str) -> str:
    """What somebody entered, as apprise reads it: a bare key, or the address that the service
    itself shows. Raises ValueError for one that is of another kind."""
    scheme, sign, rest = text.strip().partition("://")
    usual = SCHEMES[kind]
    if not sign and kind != RouteKind.MAIL:
        return f"{usual[0]}://{scheme}"
    if scheme in usual:
        return f"{scheme}://{rest}"
    if scheme not in ("http", "https") or kind == RouteKind.MAIL:
        raise ValueError(scheme)
    parts = urlsplit(f"https://{rest}")
    if kind == RouteKind.DINGTALK:
        return f"dingtalk://{parse_qs(parts.query).get('access_token', [''])[0]}"
    if kind == RouteKind.FEISHU:
        return f"feishu://{parts.path.rpartition('/')[2]}"
    if kind in HOSTED:
        return f"{usual[scheme == 'http']}://{rest}"
    return f"https://{rest}"  # which apprise knows as the service's own


def host_of(kind: str, address: str) -> str:
    """The host that an address names, "" where it names none."""
    try:
        parts = urlsplit(address if kind == RouteKind.WEBHOOK else service_address(kind, address))
        is_named = kind in HOSTED and (kind == RouteKind.MAIL or parts.path.strip("/"))
        return (parts.hostname or "") if kind == RouteKind.WEBHOOK or is_named else ""
    except ValueError:
        return ""


def show_address(kind: str, address: str) -> str:
    """Scheme and host alone: all else may be a key."""
    if not address or kind == RouteKind.OWNERS:
        return ""
    scheme = address.partition("://")[0] if "://" in address else SCHEMES.get(kind, ("",))[0]
    return f"{scheme}://{host_of(kind, address) or MASK}"


@dataclass(frozen=True, slots=True)
class FoundAlert:
    """One thing that holds now. ``about`` says of which of its kind, the same as long as it is the
    same trouble; neither holds words of chats, models and servers."""

    kind: str
    about: str
    text: str
    advice: str = ""
    is_bad: bool = False
    account: str = ""

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.about}"[:300]


@dataclass(frozen=True, slots=True)
class AlertLook:
    """What holds now, the owners of each account, and the accounts through which somebody can be
    told."""

    alerts: tuple[FoundAlert, ...] = ()
    owners: Mapping[str, Collection[str]] = field(default_factory=dict)
    speaking: tuple[str, ...] = ()


class AlertState(TextChoices):
    """Words of a webhook."""

    FIRING = "firing", _("Alert")
    RESOLVED = "resolved", _("Over")
    TEST = "test", _("Test")


@dataclass(frozen=True, slots=True)
class AlertMessage:
    """What is told of an alert."""

    state: AlertState
    alert: FoundAlert
    at: datetime

    @property
    def title(self) -> str:
        return f"FrostAgent: {self.state.label}"

    @property
    def body(self) -> str:
        """With what to do, while there is anything to do."""
        is_over = self.state == AlertState.RESOLVED
        return "\n".join(filter(None, (self.alert.text, "" if is_over else self.alert.advice)))

    def as_json(self) -> dict[str, Any]:
        """What a webhook is posted."""
        alert = self.alert
        return {
            "source": "FrostAgent",
            "state": self.state.value,
            "kind": alert.kind,
            "about": alert.about,
            "account": alert.account,
            "level": "bad" if alert.is_bad else "notable",
            "title": self.title,
            "text": alert.text,
            "advice": alert.advice,
            "at": self.at.isoformat(timespec="seconds"),
        }


def choose_senders(
    account: str, owners: Mapping[str, Collection[str]], speaking: Collection[str]
) -> dict[str, set[str]]:
    """Through which account each owner is told, once: the one that it is about, else one of his,
    else any. ``owners`` are those of each account; those of all are told of what is about none."""
    whom = set(owners.get(account, ())) or {one for all_of in owners.values() for one in all_of}
    found: dict[str, set[str]] = {}
    for owner in sorted(whom):
        own = [one for one in speaking if owner in owners.get(one, ())]
        best = [account] if account in speaking else own or list(speaking)
        if best:
            found.setdefault(best[0], set()).add(owner)
    return found


class RouteOutcome(TextChoices):
    """What became of the last message of a route: never with an address, or what came from it."""

    TOLD = "told", _("arrived")
    UNKNOWN = "unknown", _("sent; whether it arrived is not known, and it is not sent again")
    NOBODY = "nobody", _("nobody to tell: no account with owners is connected")
    NOT_PUBLIC = "not_public", _("not sent: its address is not public; FETCH_ALLOW can list it")
    NO_NAME = "no_name", _("not sent: its host has no address")
    NO_CONNECTION = "no_connection", _("not sent: no connection")
    TLS = "tls", _("not sent: the certificate of the server is not valid")
    REDIRECT = "redirect", _("the server sends elsewhere, which is not followed")
    REFUSED = "refused", _("the server refused it")
    SLOW = "slow", _("no answer in time; it may have arrived, and is not sent again")
    UNREADABLE = "unreadable", _("the address cannot be read: enter it again")
    FAILED = "failed", _("the service did not take it; it may have arrived, and is not sent again")


#: After these nothing has arrived: it is tried again.
SURELY_NOT_TOLD = frozenset(
    {
        *(RouteOutcome.NOBODY, RouteOutcome.NOT_PUBLIC, RouteOutcome.NO_NAME, RouteOutcome.TLS),
        *(RouteOutcome.NO_CONNECTION, RouteOutcome.REDIRECT, RouteOutcome.REFUSED),
        RouteOutcome.UNREADABLE,
    }
)

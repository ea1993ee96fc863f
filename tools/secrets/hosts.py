"""Where a secret may be sent: the hosts, and programs, that its row names. Pure.

One entry a line: ``api.example.com``, ``*.example.com`` (every name below it, not itself), with
``:8443`` where the port is not the usual one. What is sent is encrypted; only an entry with
``http://`` in front also permits requests in the clear. ``program:npx`` permits an MCP server
that is started with exactly this command.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from django.utils.translation import gettext
from yarl import URL

from tools.fetch.allow_list import normalize_host, parse_address
from tools.fetch.request import RequestRefused, parse_url

MAX_HOSTS = 50
"""Entries of one secret."""
PROGRAM = "program:"
_USUAL_PORTS = {"http": 80, "https": 443}
_ENTRY = re.compile(r"(?:(https?)://)?(\*\.)?([^\s/?#\\@*]+)/?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """One host. ``port`` is None for the usual one of the scheme; ``is_clear`` permits http as well
    as https."""

    name: str
    port: int | None = None
    is_clear: bool = False
    is_wild: bool = False

    def permits(self, url: URL) -> bool:
        name = normalize_host(url.raw_host or "")
        is_below = name.endswith(f".{self.name}") and not name.startswith(".")
        is_named = is_below if self.is_wild else name == self.name
        is_safe = url.scheme == "https" or (self.is_clear and url.scheme == "http")
        return is_named and is_safe and url.port == (self.port or _USUAL_PORTS[url.scheme])

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        port = f":{self.port}" if self.port else ""
        return f"{'http://' if self.is_clear else ''}{'*.' if self.is_wild else ''}{name}{port}"


@dataclass(frozen=True, slots=True)
class SecretHosts:
    """Everything that one secret may be sent to; nothing where it is empty."""

    hosts: tuple[AllowedHost, ...] = ()
    programs: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "SecretHosts":
        """What ``text`` names. Raises ValueError with a translated sentence about the first entry
        that cannot be meant."""
        # The entries of a list that is written with line breaks, spaces or commas.
        entries = [entry for entry in re.split(r"[\s,;，；、]+", text) if entry]
        if len(entries) > MAX_HOSTS:
            raise ValueError(gettext("At most %(count)d entries.") % {"count": MAX_HOSTS})
        if PROGRAM in entries:
            raise _unreadable(PROGRAM)
        programs = [entry for entry in entries if entry.startswith(PROGRAM)]
        return cls(
            tuple(dict.fromkeys(_host(entry) for entry in entries if entry not in programs)),
            tuple(dict.fromkeys(entry.removeprefix(PROGRAM) for entry in programs)),
        )

    @classmethod
    def stored(cls, text: str) -> "SecretHosts":
        """What a row holds; nothing where that cannot be read."""
        try:
            return cls.parse(text)
        except ValueError:
            return cls()

    @classmethod
    def of_urls(cls, urls: Iterable[str]) -> "SecretHosts":
        """The hosts of ``urls``, exactly; nothing of what is no URL."""
        return cls(tuple(dict.fromkeys(host for url in urls if (host := parse_host(url)))))

    def __bool__(self) -> bool:
        return bool(self.hosts or self.programs)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.hosts), *(PROGRAM + name for name in self.programs)])

    @property
    def words(self) -> str:
        """The entries on one line, for people."""
        return ", ".join(str(self).split("\n")) if self else gettext("none")

    def permits(self, url: str) -> bool:
        """Whether a request to ``url`` may carry the secret. No is also said to what cannot be
        requested."""
        try:
            parsed = parse_url(url)
        except RequestRefused:
            return False
        return any(host.permits(parsed) for host in self.hosts)

    def runs(self, command: str) -> bool:
        """Whether a program that is started with ``command`` may be given the secret."""
        return command in self.programs


def parse_host(url: str) -> AllowedHost | None:
    """The one host, with scheme and port, that ``url`` is requested from; None for what cannot be
    requested.

    Two URLs with equal hosts go to the same place: who answers there may have what was meant for
    the other.
    """
    try:
        parsed = parse_url(url)
    except RequestRefused:
        return None
    port = None if parsed.port == _USUAL_PORTS[parsed.scheme] else parsed.port
    return AllowedHost(
        normalize_host(parsed.raw_host or ""), port, is_clear=parsed.scheme == "http"
    )


def format_origin(url: str) -> str:
    """Scheme, host and port of ``url``, for people; "" for what has none."""
    host = parse_host(url)
    return "" if host is None else str(host) if host.is_clear else f"https://{host}"


def _host(entry: str) -> AllowedHost:
    found = _ENTRY.fullmatch(entry)
    if found is None:
        raise _unreadable(entry)
    scheme, star, rest = found.groups()
    try:
        url = parse_url(f"{(scheme or 'https').lower()}://{rest}/")
    except RequestRefused as error:
        raise _unreadable(entry) from error
    name = normalize_host(url.raw_host or "")
    host = AllowedHost(name, url.explicit_port, is_clear=url.scheme == "http")
    if host.port == _USUAL_PORTS[url.scheme]:
        host = replace(host, port=None)
    if star and (parse_address(name) or "." not in name):
        words = gettext("“%(entry)s” would be too many hosts: at least *.NAME.NAME is wanted.")
        raise ValueError(words % {"entry": entry[:100]})
    return replace(host, is_wild=bool(star))


def _unreadable(entry: str) -> ValueError:
    words = gettext(
        "“%(entry)s” is not a host: write api.example.com or *.example.com, with :8443 for another"
        " port."
    )
    return ValueError(words % {"entry": entry[:100]})

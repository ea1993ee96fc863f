"""Typed readers for environment variables.

Nothing else in the project reads ``os.environ``. A value that cannot be read raises
:class:`InvalidSetting`, whose text starts with the variable's name, and the process does not start:
an error message is better than a bot that runs with a wrong limit.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from frostproject.configuration.networks import Networks
from tools.fetch.allow_list import AllowList

#: Variables that hold a secret, or an address with one: no page shows their values.
SECRETS = frozenset(
    {
        *("UPSTREAM_API_KEY", "CODER_API_KEY", "MCP_SERVER_TOKEN", "DJANGO_SUPERUSER_PASSWORD"),
        *("METRICS_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS", "ONEBOT_ACCESS_TOKEN", "HTTP_API_TOKEN"),
        *("DATABASE_URL", "REDIS_URL", "FROST_BACKUP_PASSPHRASE"),
    }
)
TRUE_WORDS = frozenset({"true", "1", "yes", "on"})
DATABASE_FORMS = "wants postgres://USER:PASSWORD@HOST:PORT/NAME or sqlite:///PATH"
FALSE_WORDS = frozenset({"false", "0", "no", "off"})
Number = TypeVar("Number", int, float)
#: How long PostgreSQL is dialled, in seconds, and a server that says nothing is believed in:
#: seconds, and milliseconds
#: for what was written to it. Without them a lost network is noticed after a quarter of an hour.
POSTGRES_TIMEOUTS: dict[str, object] = {
    "connect_timeout": 5,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


class InvalidSetting(ImproperlyConfigured):
    """A variable holds something that cannot be meant; the text names it and says what is
    allowed."""


class Env:
    """The process environment over the values of a ``.env`` file (the process wins)."""

    def __init__(self, process: Mapping[str, str], file: Mapping[str, str] | None = None) -> None:
        self._values = {**(file or {}), **process}
        self._layers = {"process": process, "file": file or {}}
        self.ranges: dict[str, tuple[float, float]] = {}
        """The least and the most of each number that was read."""

    @classmethod
    def load(cls, dotenv: Path) -> "Env":
        """The real environment, with ``dotenv`` read first when that file exists."""
        try:
            text = dotenv.read_text(encoding="utf-8-sig") if dotenv.is_file() else ""
        except UnicodeDecodeError as error:
            raise InvalidSetting(
                f"{dotenv}: is not UTF-8 text; save it again in that encoding"
            ) from error
        return cls(os.environ, parse_dotenv(text))

    @property
    def sources(self) -> dict[str, str]:
        """Of each variable that has a value, whether ``file`` or ``process`` gives it."""
        found = {}
        for name in filter(self.text, self._values):
            found[name] = next(key for key, layer in self._layers.items() if name in layer)
        return found

    def text(self, name: str, default: str = "") -> str:
        return self._values.get(name, "").strip() or default

    def flag(self, name: str, *, default: bool) -> bool:
        word = self.text(name).lower()
        if not word:
            return default
        if word in TRUE_WORDS:
            return True
        if word in FALSE_WORDS:
            return False
        raise InvalidSetting(f"{name}: {word!r} is not one of true/false/1/0/yes/no/on/off")

    def integer(self, name: str, default: int, *, low: int, high: int) -> int:
        word = self.text(name)
        self.ranges[name] = (low, high)
        if not word:
            return default
        if not re.fullmatch(r"[+-]?\d{1,18}", word):
            raise InvalidSetting(f"{name}: {word!r} is not a whole number")
        return self._within(name, int(word), low, high)

    def seconds(self, name: str, default: float, *, low: float, high: float) -> float:
        return self._decimal(name, default, low, high, "a number of seconds")

    def gibibytes(self, name: str, default: float, *, low: float, high: float) -> int:
        """Bytes; the variable holds GiB, which may be a decimal."""
        return int(self._decimal(name, default, low, high, "a number of GiB") * 2**30)

    def words(self, name: str) -> list[str]:
        """A comma list, trimmed, without empty entries; the Chinese comma separates as well."""
        return [
            word
            for word in (part.strip() for part in self.text(name).replace("，", ",").split(","))
            if word
        ]

    def destinations(self, name: str) -> list[str]:
        """A comma list of hosts and networks, as ``AllowList`` reads it."""
        entries = self.words(name)
        try:
            AllowList.parse(entries)
        except ValueError as error:
            raise InvalidSetting(f"{name}: {error}") from None
        return entries

    def networks(self, name: str, default: str) -> Networks:
        """A comma list of networks and addresses, as :class:`Networks` reads it."""
        try:
            return Networks.parse(self.words(name) or [default])
        except ValueError as error:
            raise InvalidSetting(f"{name}: {error}") from None

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        word = self.text(name, default)
        if word not in allowed:
            raise InvalidSetting(f"{name}: {word!r} is not one of {', '.join(allowed)}")
        return word

    def url(self, name: str, schemes: tuple[str, ...]) -> str:
        """An absolute URL with one of ``schemes``, or "" when the variable is not set."""
        word = self.text(name)
        if word and not _is_address(word, schemes):
            shown = re.sub(r"^((?:[^:/@]+:)?//)?.*@", r"\1***@", word)  # without a password
            raise InvalidSetting(f"{name}: {shown!r} is not a {'/'.join(schemes)} address")
        return word

    def address(self, name: str, default: str) -> tuple[str, int]:
        """``host:port`` or ``[v6]:port`` or ``:port`` (all interfaces)."""
        word = self.text(name, default)
        match = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]\s]*)):(\d{1,5})", word)
        if not match or not 0 < int(match[3]) < 65536:
            raise InvalidSetting(f"{name}: {word!r} is not HOST:PORT")
        return match[1] or match[2] or "0.0.0.0", int(match[3])  # noqa: S104

    def _decimal(self, name: str, default: float, low: float, high: float, what: str) -> float:
        word = self.text(name)
        self.ranges[name] = (low, high)
        if not word:
            return default
        if not re.fullmatch(r"[+-]?\d{1,9}(\.\d{1,9})?", word):
            raise InvalidSetting(f"{name}: {word!r} is not {what}")
        return self._within(name, float(word), low, high)

    @staticmethod
    def _within(name: str, value: Number, low: Number, high: Number) -> Number:
        if not low <= value <= high:
            raise InvalidSetting(f"{name}: {value} is out of range ({low} to {high})")
        return value


def parse_dotenv(text: str) -> dict[str, str]:
    """``NAME=value`` lines; ``#`` comments, ``export``, and single or double quotes are
    understood."""
    values = {}
    for line in re.split(
        r"\r\n|\r|\n", text
    ):  # splitlines() would also cut at characters that a prompt may hold
        match = re.match(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$", line)
        if match:
            values[match[1]] = _unquote(match[2])
    return values


def _unquote(value: str) -> str:
    quoted = re.fullmatch(r"\"((?:[^\"\\]|\\.)*)\"(?:\s+#.*)?|'([^']*)'(?:\s+#.*)?", value)
    if not quoted:
        return re.sub(r"(^|\s+)#.*$", "", value)
    if quoted[2] is not None:
        return quoted[2]
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), quoted[1])


def parse_database_url(name: str, url: str) -> dict[str, object]:
    """A Django ``DATABASES`` entry for ``postgres://`` or ``sqlite:///`` addresses."""
    try:
        parts = urlsplit(url)
        port = str(parts.port or "")
    except ValueError:
        raise InvalidSetting(
            f"{name}: {DATABASE_FORMS}; signs in a password are written as %XX"
        ) from None
    if parts.scheme == "sqlite" and parts.path.strip("/"):
        return sqlite_settings(Path(unquote(parts.path[1:])))
    if parts.scheme not in ("postgres", "postgresql") or not parts.path.strip("/"):
        raise InvalidSetting(f"{name}: {DATABASE_FORMS}")
    options = {**POSTGRES_TIMEOUTS, **dict(parse_qsl(parts.query))}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", unquote(parts.hostname or "")),
        "PORT": port,
        "CONN_HEALTH_CHECKS": True,
        # Channels and Django close idle connections around every request; without a
        # pool each query would dial the server again.
        "OPTIONS": {
            **options,
            "pool": {"min_size": 1, "max_size": 10, "timeout": 10, "reconnect_timeout": 2},
        },
    }


def sqlite_settings(path: Path) -> dict[str, object]:
    """SQLite as several tasks and the admin can share it.

    Write-ahead log, so that readers never wait for the writer; IMMEDIATE, so that a
    transaction that reads first and writes later does not fail as "locked".
    """
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": (
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                " PRAGMA journal_size_limit=27103364; PRAGMA cache_size=-4000;"
            ),
        },
    }


def _is_address(word: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(word)
        readable = parts.port is None or parts.port > 0
    except ValueError:  # brackets that do not match, or a port that is no number
        return False
    return readable and parts.scheme in schemes and bool(parts.hostname or parts.scheme == "unix")

"""Log lines without secrets, in which foreign text cannot forge lines of its own.
The last of this process are kept in memory for the page that shows them.
"""

import json
import logging
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

from django.conf import settings
from django.utils import timezone

REDACTED = "***"
#: Settings that hold a secret; none of their values is ever printed.
SECRET_SETTINGS = (
    "SECRET_KEY",
    "UPSTREAM_API_KEY",
    "CODER_API_KEY",
    "ONEBOT_ACCESS_TOKEN",
    "HTTP_API_TOKEN",
    "MCP_SERVER_TOKEN",
    "METRICS_TOKEN",
    "DJANGO_SUPERUSER_PASSWORD",
    "FROST_BACKUP_PASSPHRASE",
)
#: Settings that hold addresses, whose passwords are as secret.
ADDRESS_SETTINGS = (
    *("REDIS_URL", "DATABASE_URL", "UPSTREAM_ENDPOINT", "CODER_ENDPOINT"),
    *("OTEL_EXPORTER_OTLP_ENDPOINT", "VERSION_URL"),
)
#: Tokens in addresses; wrong ones are hidden too.
IN_ADDRESS = re.compile(r"(?i)(access_token=)[^&\s\"']+")
#: What is not seen but does something: control characters, marks of direction and width, separators
#: of lines, halves of pairs.
INVISIBLE_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
#: The prefix of continuation lines, so that none of them looks like a record of its own.
CONTINUATION_INDENT = "    "
#: A secret this short would blot out ordinary words.
SHORTEST_SECRET = 4


class RedactingFormatter(logging.Formatter):
    """The usual line, with every secret of this installation blotted out and nothing in it that
    could forge another.

    Line breaks of values are written as ``\\n``. Tracebacks, and texts without values, which
    libraries log tracebacks as, keep their lines, each with a margin.
    """

    def format(self, record: logging.LogRecord) -> str:
        return redact_secrets(super().format(record))

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - logging's name
        return f"{_local_time(record):%Y-%m-%d %H:%M:%S},{int(record.msecs):03d}"

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        shown = escape_invisible(record.message)
        shown = shown.replace("\n", "\\n") if record.args else _with_margin(shown)
        record.message = f"{shown} [run {run}]" if (run := run_of(record)) else shown
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return CONTINUATION_INDENT + _with_margin(escape_invisible(super().formatException(ei)))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - logging's name
        return CONTINUATION_INDENT + _with_margin(escape_invisible(super().formatStack(stack_info)))


class RefusedRequests(logging.Filter):
    """Takes the traceback from lines about requests that were refused (status 4xx): where a view
    said no is no news, and whoever asks again and again would fill the log with it."""

    def filter(self, record: logging.LogRecord) -> bool:
        is_of_requests = record.name.startswith(("django.request", "django.security"))
        if is_of_requests and getattr(record, "status_code", 500) < 500:
            record.exc_info = record.exc_text = None
        return True


class JsonFormatter(RedactingFormatter):
    """One JSON object a line: ``time`` (ISO 8601, with the zone), ``level``, ``logger``,
    ``message``, and where there is one ``run`` and ``error``, the traceback. Secrets are blotted
    out."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _local_time(record).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": redact_secrets(escape_invisible(record.getMessage())),
        }
        if run := run_of(record):
            line["run"] = run
        if record.exc_info:
            trace = logging.Formatter.formatException(self, record.exc_info)
            line["error"] = redact_secrets(escape_invisible(trace))
        return json.dumps(line, ensure_ascii=False)


def _local_time(record: logging.LogRecord) -> datetime:
    """When it was logged, in the installation's time zone."""
    return timezone.localtime(datetime.fromtimestamp(record.created, UTC))


def run_of(record: logging.LogRecord) -> int:
    """The key of the run that ``record`` belongs to; 0 for none."""
    return int(getattr(record, "run", 0))


def escape_invisible(text: str) -> str:
    """``text`` with what is not seen written as its escape; line breaks and tabs are left as they
    are."""
    return INVISIBLE_CHARACTERS.sub(
        lambda found: found[0].encode("unicode_escape").decode("ascii"), text
    )


def _with_margin(text: str) -> str:
    return text.replace("\n", f"\n{CONTINUATION_INDENT}")


def redact_secrets(text: str) -> str:
    for secret in list_secrets():
        text = text.replace(secret, REDACTED)
    return IN_ADDRESS.sub(rf"\g<1>{REDACTED}", text)


def list_secrets() -> list[str]:
    """Every secret of the settings in each way it is written, the longest first."""
    found = {str(getattr(settings, name)) for name in SECRET_SETTINGS}
    # Headers for the collector of traces may hold its key.
    found.update(
        pair.partition("=")[2].strip()
        for pair in str(settings.OTEL_EXPORTER_OTLP_HEADERS).split(",")
    )
    found.update(
        password for name in ADDRESS_SETTINGS for password in _passwords(getattr(settings, name))
    )
    return sorted(
        (secret for secret in found if len(secret) >= SHORTEST_SECRET), key=len, reverse=True
    )


def _passwords(url: str) -> Iterator[str]:
    """As they stand in ``url``, and as they are sent."""
    parts = urlsplit(url)
    password = parts.netloc.rpartition("@")[0].partition(":")[2]
    yield from (password, unquote(password))
    yield from (value for name, value in parse_qsl(parts.query) if "pass" in name.lower())


#: Lines that are kept, and characters of each.
LINES_KEPT, LINE_CHARS = 1_000, 4_000


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line as it was logged, secrets blotted out. ``number`` grows by one from line to line."""

    number: int
    level: int
    text: str
    run: int = 0

    @property
    def level_name(self) -> str:
        return logging.getLevelName(self.level)


class RecentLines(logging.Handler):
    """Keeps the newest :data:`LINES_KEPT` lines. All handlers of the process share them."""

    lines: ClassVar[deque[LogLine]] = deque(maxlen=LINES_KEPT)

    def emit(self, record: logging.LogRecord) -> None:
        number = self.lines[-1].number + 1 if self.lines else 1
        text = self.format(record)[:LINE_CHARS]
        self.lines.append(LogLine(number, record.levelno, text, run_of(record)))


def list_recent_lines(
    least_level: int = logging.NOTSET, words: str = "", run: int = 0
) -> list[LogLine]:
    """The lines that are kept, the newest first: of at least ``least_level``, with ``words`` in
    them, and of ``run``, where those are given."""
    folded = words.casefold()
    return [
        line
        for line in reversed(list(RecentLines.lines))
        if line.level >= least_level and folded in line.text.casefold() and run in (0, line.run)
    ]

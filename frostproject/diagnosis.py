"""What ``doctor`` finds out on this machine alone: settings, data folder, database, secrets, addresses.

Each check yields :class:`Finding` objects and raises nothing for what is wrong with the
installation. No finding ever holds a secret.
"""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.core import checks
from django.db import connection
from django.utils import timezone
from django.utils.translation import gettext as _

from agent.database import DatabaseRefused, check, examine, explained, marker
from agent.instructions import placeholders, program_values
from frostproject import privacy, tokens
from frostproject.machine import own_hosts
from onebot import bots

LEAST_FREE_BYTES = 500 * 2**20
#: Accounts that one finding names.
LISTED = 20
REDIS_SECONDS = 3.0
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - recognised, not bound


class Level(StrEnum):
    OK = "OK"
    NOTE = "NOTE"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: how it is, and what to do about it."""

    level: Level
    text: str
    advice: str = ""


def ok(text: str) -> Finding:
    return Finding(Level.OK, text)


def note(text: str, advice: str = "") -> Finding:
    return Finding(Level.NOTE, text, advice)


def warn(text: str, advice: str) -> Finding:
    return Finding(Level.WARN, text, advice)


def fail(text: str, advice: str) -> Finding:
    return Finding(Level.FAIL, text, advice)


def installation() -> Iterator[Finding]:
    """Everything on this machine, in the order in which it is needed."""
    yield from system_checks()
    yield from prompt(settings.SYSTEM_PROMPT)
    yield from data_folder(settings.DATA_DIR)
    yield from retention()
    yield from private(settings.DATA_DIR, settings.BASE_DIR / ".env")
    yield from database()
    yield from channel_layer(settings.REDIS_URL)


def system_checks() -> Iterator[Finding]:
    found = [message for message in checks.run_checks() if not message.is_silenced()]
    for message in found:
        make = fail if message.level >= checks.ERROR else warn
        yield make(str(message.msg), str(message.hint or ""))
    if not found:
        yield ok(_("The settings can be read and fit together."))


def prompt(template: str) -> Iterator[Finding]:
    """Which placeholders of the persona's prompt somebody has to give values for."""
    known = program_values(settings.BOT_NAME, "group", timezone.localtime())
    wanted = [p.written for p in placeholders(template) if not (p.is_tool or p.is_optional or p.name in known)]
    if wanted:
        text = _("The prompt shows values that each chat has of its own: %s") % ", ".join(dict.fromkeys(wanted))
        yield note(text, _("Give them in the state on the chat's page in the admin, or write {name?} where one may be missing."))


def data_folder(folder: Path) -> Iterator[Finding]:
    """Writable, with room in it."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        text = _("The data folder %(folder)s cannot be written: %(reason)s")
        yield fail(
            text % {"folder": folder, "reason": error.strerror},
            _("Give it to the user that runs the server, or name another one in FROST_DATA_DIR."),
        )
        return
    if LEAST_FREE_BYTES <= free < settings.MEDIA_FREE_BYTES:
        text = _("Only %(free)d MiB are free for the data folder %(folder)s: pictures, voice and files are not fetched.")
        yield warn(text % {"free": free >> 20, "folder": folder}, _("Make room, or set MEDIA_FREE_GIB to less."))
    elif free < LEAST_FREE_BYTES:
        text = _("Only %(free)d MiB are free for the data folder %(folder)s.")
        yield warn(text % {"free": free >> 20, "folder": folder}, _("Make room: without it, messages cannot be recorded."))
    else:
        yield ok(_("The data folder %s can be written.") % folder)


def retention() -> Iterator[Finding]:
    """What is kept how long."""
    kept = (
        (_("messages and all that was done for them"), settings.RECORD_KEEP_DAYS),
        (_("client events"), settings.EVENT_KEEP_DAYS),
        (_("unused copies of media"), settings.MEDIA_KEEP_DAYS),
    )
    told = [f"{what}: {_('%d days') % days if days else _('for ever')}" for what, days in kept]
    if settings.MEDIA_KEEP_BYTES:
        told.append(_("copies of media together: %s GiB") % f"{settings.MEDIA_KEEP_BYTES / 2**30:g}")
    yield ok(_("What is kept: %s.") % "; ".join(told))


def private(folder: Path, dotenv: Path) -> Iterator[Finding]:
    """What other users of this machine can get at."""
    found = [warn(text, advice) for text, advice in privacy.complaints(folder, dotenv)]
    yield from found or [ok(_("Other users of this machine can read nothing of the data folder."))]


def database() -> Iterator[Finding]:
    """Reachable, whole, up to date, and with somebody in it who may log in."""
    is_file = connection.vendor == "sqlite"
    if is_file and not (Path(connection.settings_dict["NAME"]).exists() or marker().exists()):
        yield note(_("There is no database yet: the first start of the server makes it."))
        return
    try:
        with explained():
            is_current = check()
            if is_file:
                examine()
            accounts = list(User.objects.filter(is_superuser=True, is_active=True)[:10]) if is_current else []
    except DatabaseRefused as refused:
        yield fail(refused.text, refused.advice)
        return
    if not is_current:
        yield _pending(is_file=is_file)
        return
    yield ok(_("The database can be reached and is up to date."))
    yield from _accounts(accounts)
    yield from account_tokens()


def _pending(*, is_file: bool) -> Finding:
    text = _("The database is older than the program.")
    if is_file:
        return warn(text, _("Restart the server: it brings this database up to date by itself."))
    return fail(text, _("Run: python manage.py migrate"))


def _accounts(accounts: list[User]) -> Iterator[Finding]:
    if not accounts:
        yield warn(_("Nobody can log in to the admin yet."), _("Start the server once, or run: python manage.py createsuperuser"))
        return
    yield ok(_("Admin account: %s") % ", ".join(account.username for account in accounts))
    for account in accounts:
        if account.check_password(account.username):
            advice = _("Run: python manage.py changepassword %s") % account.username
            yield fail(_("The password of the admin account %s is its name.") % account.username, advice)


def account_tokens() -> Iterator[Finding]:
    """Which accounts are not opened by the common token."""
    if own := sorted(bots.load_tokens()):
        yield note(
            _("Accounts with an access token of their own: %s") % ", ".join(own[:LISTED]),
            _("Enter it in the client of that account; the common token does not open it."),
        )


def channel_layer(url: str) -> Iterator[Finding]:
    if not url:
        if connection.vendor == "postgresql":
            yield note(_("REDIS_URL is not set: one server process is fine, several cannot reach each other's clients."))
        return
    if connection.vendor == "sqlite":
        advice = _("Set DATABASE_URL to a PostgreSQL database, or remove REDIS_URL.")
        yield warn(_("REDIS_URL is for several processes, and those cannot share the embedded database."), advice)
    client = redis.Redis.from_url(url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS)
    try:
        client.ping()
    except redis.RedisError as error:
        yield fail(_("Redis does not answer: %s") % error, _("Is it running, and is REDIS_URL right?"))
    else:
        yield ok(_("Redis answers."))
    finally:
        client.close()


def client_settings(url: str) -> Iterator[str]:
    """What to enter in the OneBot client, line by line; ``url`` is the server's only address, "" for all it has."""
    host, port = settings.WS_LISTEN_ADDR
    if url:
        addresses = [url]
    elif host in ANY_ADDRESS:
        addresses = [f"http://{name}:{port}" for name in own_hosts() if host == "::" or name != "[::1]"]
    else:
        addresses = [f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"]
    for address in addresses:
        yield f"URL: {address.replace('http', 'ws', 1)}/ws/frostagent"
    file = tokens.sources.get("ONEBOT_ACCESS_TOKEN")
    yield _("Token: what is in the file %s") % file if file else _("Token: the value of ONEBOT_ACCESS_TOKEN")
    yield _("Type: WebSocket client (reverse WebSocket, universal). Message format: array")

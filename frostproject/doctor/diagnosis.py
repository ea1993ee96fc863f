"""What ``doctor`` finds out on this machine alone: settings, data folder, database, secrets,
addresses, and who can get in: tokens, their files, networks, HTTPS.

Each check yields :class:`tools.findings.Finding` objects and raises nothing for what is wrong with
the installation.
"""

import ipaddress
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.core import checks
from django.db import connection
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from agent.domain.chat_state import parse_prompt_placeholders, program_values
from agent.domain.manners import MarkdownStyle
from agent.markdown import drawing_packages
from agent.models import Manners
from agent.record.ground.clock_skew import find_clock_skew
from agent.record.settings.installation import load_installation
from agent.runtime.database import (
    DatabaseRefused,
    check_integrity,
    check_migrations,
    explain_database_errors,
    marker_path,
)
from frostproject.configuration import machine, networks, private_files
from frostproject.configuration.machine import own_hosts
from frostproject.signin import plain_http
from onebot.gateway import bots
from tools.findings import Finding, fail_finding, note_finding, ok_finding, warn_finding
from tools.local_time import Clock
from tools.version import VERSION

SHORTEST_TOKEN = 8
#: Words that stand in other programs' example files, and are guessed first.
PLACEHOLDERS = frozenset(
    {"changeme", "change-me", "password", "12345678", "123456789", "access_token", "your-token"}
)
MAKE_ONE = 'python3 -c "import secrets; print(secrets.token_hex(16))"'


def check_exposure() -> Iterator[Finding]:
    yield from check_token_strength()
    yield from check_token_files()
    yield from check_loopback_trust()
    yield from check_reachability(*settings.WS_LISTEN_ADDR)
    yield from check_admin_networks()
    yield from check_https()


def check_token_strength() -> Iterator[Finding]:
    """Tokens that can be guessed. They are judged and never shown."""
    for name in ("ONEBOT_ACCESS_TOKEN", "HTTP_API_TOKEN"):
        token = getattr(settings, name)
        if len(token) < SHORTEST_TOKEN or token.lower() in PLACEHOLDERS:
            yield fail_finding(_("%s can be guessed.") % name, _("Make a new one: %s") % MAKE_ONE)


def check_token_files() -> Iterator[Finding]:
    """Files of tokens that others may read."""
    for name, path in machine.token_sources.items():
        if path.exists() and path.stat().st_mode & 0o077:
            text = _("Other users of this machine can read the token %(name)s in %(path)s.")
            yield warn_finding(text % {"name": name, "path": path}, f"chmod 600 {path}")


def check_loopback_trust() -> Iterator[Finding]:
    if settings.TRUST_LOOPBACK:
        yield warn_finding(
            _(
                "TRUST_LOOPBACK is on: every program and user of this machine can be any OneBot "
                "client, and its owners."
            ),
            _("Remove TRUST_LOOPBACK from .env once your clients present the token."),
        )


def check_reachability(host: str, port: int) -> Iterator[Finding]:
    """Who can reach the port."""
    if is_loopback(host):
        yield ok_finding(_("Only this machine can reach the server (%s).") % f"{host}:{port}")
        return
    yield ok_finding(
        _("Other machines can reach the server, and OneBot clients have to show a token.")
    )
    if settings.DEBUG:
        yield warn_finding(
            _("DEBUG is on: whoever causes an error is shown the program's insides."),
            _("Remove DEBUG from .env."),
        )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_admin_networks() -> Iterator[Finding]:
    """Which networks the admin is served to."""
    public = settings.ADMIN_NETWORKS.public
    if public == [networks.EVERYWHERE]:
        text = _(
            "ADMIN_NETWORKS is *: whoever reaches the port gets to the admin's sign-in, /mcp and "
            "/agent/query."
        )
        yield warn_finding(
            text, _("Name the networks that need them, or remove ADMIN_NETWORKS from .env.")
        )
    elif public:
        text = _("ADMIN_NETWORKS opens the admin to networks that are not private: %s")
        yield note_finding(
            text % ", ".join(public), _("Is that meant, and is the admin reached over https there?")
        )
    else:
        yield ok_finding(
            _(
                "The admin, /mcp and /agent/query are served to this machine and private networks "
                "only."
            )
        )
    if is_behind_proxy():
        yield note_finding(
            _(
                "Behind a proxy on this machine everybody comes from this machine, and "
                "ADMIN_NETWORKS keeps nobody out there."
            ),
            _("Restrict /admin/, /mcp and /agent/query in the proxy."),
        )


def is_behind_proxy() -> bool:
    """Whether the settings name hosts that are not this machine's own, as they do for a proxy."""
    named = {
        *(urlsplit(origin).hostname for origin in settings.CSRF_TRUSTED_ORIGINS),
        *settings.ALLOWED_HOSTS,
    }
    return bool(named - {None, "testserver", *own_hosts()})


def check_https() -> Iterator[Finding]:
    """Whether passwords and cookies travel in clear."""
    origins = settings.CSRF_TRUSTED_ORIGINS
    plain = [origin for origin in origins if not origin.lower().startswith("https://")]
    if plain and len(plain) < len(origins):
        yield warn_finding(
            _(
                "CSRF_TRUSTED_ORIGINS names addresses without https (%s), so cookies are not for "
                "https only."
            )
            % ", ".join(plain),
            _("Keep https:// addresses alone there; nobody can then sign in over http."),
        )
    elif plain_http.is_for_https_only():
        yield ok_finding(
            _(
                "Browsers keep the admin's cookies for https only. Over plain http nobody can sign "
                "in."
            )
        )
    elif settings.ADMIN_NETWORKS.public and not is_loopback(settings.WS_LISTEN_ADDR[0]):
        yield warn_finding(
            _(
                "The admin is served in clear to networks that are not private: passwords and "
                "chats can be read on the way."
            ),
            _(
                "Put a proxy with https in front of it (see docs/deploy.md) and name its address "
                "in CSRF_TRUSTED_ORIGINS."
            ),
        )


LEAST_FREE_BYTES = 500 * 2**20
#: Accounts that one finding names.
MAX_LISTED = 20
REDIS_SECONDS = 3.0
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - recognised, not bound


def check_installation() -> Iterator[Finding]:
    """Everything on this machine, in the order in which it is needed."""
    yield ok_finding(_("FrostAgent %s is installed.") % VERSION)
    yield from run_system_checks()
    yield from check_prompt(settings.SYSTEM_PROMPT)
    yield from check_data_folder(settings.DATA_DIR)
    yield from check_retention()
    yield from check_file_access(settings.DATA_DIR, settings.BASE_DIR / ".env")
    yield from check_database()
    yield from check_channel_layer(settings.REDIS_URL)


def check_clock() -> Iterator[Finding]:
    """Whether messages were too old when they came."""
    if (skew := find_clock_skew()) is not None:
        yield warn_finding(
            _(
                "Messages are %(minutes)d minutes old when they come, and are not answered: the "
                "clock of this machine seems to be ahead."
            )
            % {"minutes": skew.total_seconds() // 60},
            _("Set the clock by NTP."),
        )


def run_system_checks() -> Iterator[Finding]:
    found = [message for message in checks.run_checks() if not message.is_silenced()]
    for message in found:
        make = fail_finding if message.level >= checks.ERROR else warn_finding
        yield make(str(message.msg), str(message.hint or ""))
    if not found:
        yield ok_finding(_("The settings can be read and fit together."))


def check_prompt(template: str) -> Iterator[Finding]:
    """The placeholders of the persona's prompt that need values."""
    known = program_values(settings.BOT_NAME, "group", timezone.localtime())
    wanted = [
        p.written
        for p in parse_prompt_placeholders(template)
        if not (p.is_tool or p.is_optional or p.name in known)
    ]
    if wanted:
        text = _("The prompt shows values that each chat has of its own: %s") % ", ".join(
            dict.fromkeys(wanted)
        )
        yield note_finding(
            text,
            _(
                "Give them in the state on the chat's page in the admin, or write {name?} where "
                "one may be missing."
            ),
        )


def check_data_folder(folder: Path) -> Iterator[Finding]:
    """Writable, with room in it."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        yield fail_finding(
            _("The data folder %(folder)s cannot be written: %(reason)s")
            % {"folder": folder, "reason": error.strerror},
            _("Give it to the user that runs the server, or name another one in FROST_DATA_DIR."),
        )
        return
    if LEAST_FREE_BYTES <= free < settings.MEDIA_FREE_BYTES:
        text = _(
            "Only %(free)d MiB are free for the data folder %(folder)s: pictures, voice and files "
            "are not fetched."
        )
        yield warn_finding(
            text % {"free": free >> 20, "folder": folder},
            _("Make room, or set MEDIA_FREE_GIB to less."),
        )
    elif free < LEAST_FREE_BYTES:
        yield warn_finding(
            _("Only %(free)d MiB are free for the data folder %(folder)s.")
            % {"free": free >> 20, "folder": folder},
            _("Make room: without it, messages cannot be recorded."),
        )
    else:
        yield ok_finding(_("The data folder %s can be written.") % folder)


def check_retention() -> Iterator[Finding]:
    """What is kept how long."""
    kept = (
        (_("messages and all that was done for them"), settings.RECORD_KEEP_DAYS),
        (_("client events"), settings.EVENT_KEEP_DAYS),
        (_("unused copies of media"), settings.MEDIA_KEEP_DAYS),
    )
    told = [f"{what}: {_('%d days') % days if days else _('for ever')}" for what, days in kept]
    if settings.MEDIA_KEEP_BYTES:
        told.append(
            _("copies of media together: %s GiB") % f"{settings.MEDIA_KEEP_BYTES / 2**30:g}"
        )
    yield ok_finding(_("What is kept: %s.") % "; ".join(told))


def check_file_access(folder: Path, dotenv: Path) -> Iterator[Finding]:
    """What other users of this machine can get at."""
    yield from [
        (fail_finding if one.holds_database else warn_finding)(one.text, one.advice)
        for one in private_files.list_exposures(folder, dotenv)
    ] or [ok_finding(_("Other users of this machine can read nothing of the data folder."))]


def check_database() -> Iterator[Finding]:
    """Checks that the database is reachable, undamaged and up to date, and has a user who may log
    in."""
    is_file = connection.vendor == "sqlite"
    if is_file and not (Path(connection.settings_dict["NAME"]).exists() or marker_path().exists()):
        yield note_finding(_("There is no database yet: the first start of the server makes it."))
        return
    try:
        with explain_database_errors():
            is_current = check_migrations()
            if is_file:
                check_integrity()
            accounts = (
                list(User.objects.filter(is_superuser=True, is_active=True)[:10])
                if is_current
                else []
            )
    except DatabaseRefused as refused:
        yield fail_finding(refused.text, refused.advice)
        return
    if not is_current:
        yield _pending(is_file=is_file)
        return
    yield ok_finding(_("The database can be reached and is up to date."))
    yield check_zone(load_installation()[0])
    yield from check_clock()
    yield from check_drawing()
    yield from _accounts(accounts)
    yield from check_account_tokens()


def check_zone(clock: Clock) -> Finding:
    """Which time zone counts."""
    if clock.is_chosen:
        return ok_finding(_("The time zone is %s.") % clock.name)
    if clock.zone:
        return warn_finding(
            _("This machine does not know the time zone %(zone)s: %(own)s counts.")
            % {"zone": clock.zone, "own": clock.name},
            _("Choose another one in the admin, or install the time zones of the system (tzdata)."),
        )
    return ok_finding(
        _("The time zone is the machine's, %s; another one can be chosen in the admin.")
        % clock.name
    )


def check_drawing() -> Iterator[Finding]:
    """Whether what draws is there, where rows of manners have answers drawn."""
    drawn = Manners.objects.filter(enabled=True, markdown=MarkdownStyle.PICTURE)
    if drawn.exists() and not drawing_packages.are_installed():
        page = reverse("admin:agent_manners_changelist")
        yield warn_finding(_(drawing_packages.MISSING), _(drawing_packages.ADVICE), page)


def _pending(*, is_file: bool) -> Finding:
    text = _("The database is older than the program.")
    if is_file:
        return warn_finding(
            text, _("Restart the server: it brings this database up to date by itself.")
        )
    return fail_finding(text, _("Run: python manage.py migrate"))


def _accounts(accounts: list[User]) -> Iterator[Finding]:
    if not accounts:
        yield warn_finding(
            _("Nobody can log in to the admin yet."),
            _("Start the server once, or run: python manage.py createsuperuser"),
        )
        return
    yield ok_finding(_("Admin account: %s") % ", ".join(account.username for account in accounts))
    for account in accounts:
        if account.check_password(account.username):
            yield fail_finding(
                _("The password of the admin account %s is its name.") % account.username,
                _("Run: python manage.py changepassword %s") % account.username,
            )


def check_account_tokens() -> Iterator[Finding]:
    """Which accounts are not opened by the common token."""
    if own := sorted(bots.load_account_tokens()):
        yield note_finding(
            _("Accounts with an access token of their own: %s") % ", ".join(own[:MAX_LISTED]),
            _("Enter it in the client of that account; the common token does not open it."),
        )


def check_channel_layer(url: str) -> Iterator[Finding]:
    if not url:
        if connection.vendor == "postgresql":
            yield note_finding(
                _(
                    "REDIS_URL is not set: one server process is fine, several cannot reach each "
                    "other's clients."
                )
            )
        return
    if connection.vendor == "sqlite":
        yield warn_finding(
            _("REDIS_URL is for several processes, and those cannot share the embedded database."),
            _("Set DATABASE_URL to a PostgreSQL database, or remove REDIS_URL."),
        )
    client = redis.Redis.from_url(
        url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS
    )
    try:
        client.ping()
    except redis.RedisError as error:
        yield fail_finding(
            _("Redis does not answer: %s") % error, _("Is it running, and is REDIS_URL right?")
        )
    else:
        yield ok_finding(_("Redis answers."))
    finally:
        client.close()


def client_setting_lines(url: str) -> Iterator[str]:
    """What to enter in the OneBot client, line by line; ``url`` is the server's only address, ""
    for all it has."""
    host, port = settings.WS_LISTEN_ADDR
    if url:
        addresses = [url]
    elif host in ANY_ADDRESS:
        addresses = [
            f"http://{name}:{port}" for name in own_hosts() if host == "::" or name != "[::1]"
        ]
    else:
        addresses = [f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"]
    for address in addresses:
        yield f"URL: {address.replace('http', 'ws', 1)}/ws/frostagent"
    file = machine.token_sources.get("ONEBOT_ACCESS_TOKEN")
    yield (
        _("Token: what is in the file %s") % file
        if file
        else _("Token: the value of ONEBOT_ACCESS_TOKEN")
    )
    yield _("Type: WebSocket client (reverse WebSocket, universal). Message format: array")

"""What ``doctor`` finds out about who can get in: tokens, their files, networks, HTTPS."""

import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from frostproject.configuration import tokens
from frostproject.configuration.machine import own_hosts
from frostproject.configuration.networks import EVERYWHERE
from frostproject.signin import plain_http
from tools.findings import Finding, fail_finding, note_finding, ok_finding, warn_finding

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
    for name, path in tokens.token_sources.items():
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
    if public == [EVERYWHERE]:
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

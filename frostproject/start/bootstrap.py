"""The first start: tables, tool rows and an admin account, made by the program.

Safe to run at every start and by several processes at once.

What a start prints to the terminal: the addresses, and the token for them.

It is printed and never logged. Without a terminal (the journal of a service keeps the output) a
token is shown only at the start that created it; later starts name its file.
"""

import fcntl
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, connection, transaction
from django.utils.translation import gettext as _

from agent.runtime import database, wiring
from frostproject.configuration import listening, machine, networks, private_files
from frostproject.configuration.machine import own_hosts
from tools.registry.catalogue import ensure_tool_rows

ANY_ADDRESS = ("0.0.0.0", "::", "")  # noqa: S104 - recognised, not bound


def print_greeting(address: listening.ListenAddress | None) -> None:
    """Print where the server listens (None: nowhere that a browser could reach by a port) and what
    clients present."""
    sys.stdout.write("\n".join(_lines(address)) + "\n\n")
    sys.stdout.flush()  # with a pipe the output would otherwise come late


def _lines(address: listening.ListenAddress | None) -> Iterator[str]:
    hosts = _hosts(address[0]) if address else []
    port = address[1] if address else 0
    if hosts:
        served = [host for host in hosts if _is_served_admin(host)]
        yield _("Admin:") + "".join(f"\n  http://{host}:{port}/admin/" for host in served or hosts)
        start = f"http://{(served or hosts)[0]}:{port}/admin/start/"
        yield _("First steps, in a browser:") + f"\n  {start}"
        yield _("Reverse WebSocket URL for the OneBot client:") + "".join(
            f"\n  ws://{host}:{port}/ws/frostagent" for host in hosts
        )
    yield f"{_('Access token:')} {token_hint()}"
    if settings.TRUST_LOOPBACK:
        yield _(
            "TRUST_LOOPBACK is on: every program and user of this machine can be any OneBot client."
        )
    if not settings.UPSTREAM_ENDPOINT:
        yield _(
            "No UPSTREAM_ENDPOINT is set: the built-in demo model answers, unless a model is set "
            "in the admin (Model endpoints → Add)."
        )


def _is_served_admin(host: str) -> bool:
    """Whether who asks ``host`` from the same network is let in; of a name that is not known
    here."""
    address = host.strip("[]")
    return networks.parse_ip_address(address) is None or address in settings.ADMIN_NETWORKS


def token_hint() -> str:
    """The token of OneBot clients when a terminal is attached, else where to find it."""
    path = machine.token_sources.get("ONEBOT_ACCESS_TOKEN")
    if path is None:
        return _("the value of ONEBOT_ACCESS_TOKEN")
    if path in machine.made_files or sys.stdout.isatty():
        return str(settings.ONEBOT_ACCESS_TOKEN)
    return _("in the file %s") % path


def _hosts(host: str) -> list[str]:
    if host not in ANY_ADDRESS:
        return [f"[{host}]" if ":" in host else host]
    return [name for name in own_hosts() if name != "[::1]" or host == "::"]


def prepare_installation() -> None:
    """Migrate the database where this process may do so, and make sure that a user can log in.

    Raises ImproperlyConfigured when another server works on the same embedded database, or when the
    database is damaged, is gone, or does not fit this program.
    """
    if is_database_in_use():
        raise ImproperlyConfigured(
            _("Another server already works on this data folder: %s") % settings.DATA_DIR
        )
    private_files.restrict_folder(settings.DATA_DIR)
    database.migrate_embedded_database()
    with database.explain_database_errors():
        ensure_tool_rows(wiring.declared_tools())
        print_admin_password(ensure_admin())
        settings.MEDIA_DIR.mkdir(exist_ok=True)
    connection.close()
    private_files.log_exposures(settings.DATA_DIR, settings.BASE_DIR / ".env")


def is_database_in_use() -> bool:
    """Whether a server process holds the lock of the embedded database (see
    ``agent.runtime.runtime``)."""
    lock = Path(f"{settings.DATABASES['default']['NAME']}.lock")
    if connection.vendor != "sqlite" or not lock.exists():
        return False
    with lock.open("w", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def ensure_admin() -> tuple[str, str] | None:
    """Create the first superuser; returns (name, password) if the password was generated here.

    It may also set up MCP servers that are programs, once the environment names programs: the
    person who starts the server for the first time can run any program here.
    """
    users = get_user_model()._default_manager
    if users.filter(is_superuser=True).exists():
        return None
    name, given = settings.DJANGO_SUPERUSER_USERNAME, settings.DJANGO_SUPERUSER_PASSWORD
    password = given or secrets.token_urlsafe(12)
    try:
        with transaction.atomic():
            user = users.create_superuser(name, settings.DJANGO_SUPERUSER_EMAIL, password)
            user.user_permissions.add(
                *Permission.objects.filter(content_type__app_label="tools", codename="run_commands")
            )
    except IntegrityError:  # another process was faster, or the name is taken
        return None
    return None if given else (name, password)


def print_admin_password(account: tuple[str, str] | None) -> None:
    """Show a made-up password, once, on the terminal and nowhere else."""
    if account is None:
        return
    name, password = account
    sys.stdout.write(
        f"\n{_('Admin account:')} {name}\n{_('Password (shown only now):')} {password}\n\n"
    )
    sys.stdout.flush()

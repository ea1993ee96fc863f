"""The first start: tables, tool rows and an admin account, made by the program.

Safe to run at every start and by several processes at once.
"""

import fcntl
import secrets
import sys
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, connection, transaction
from django.utils.translation import gettext as _

from agent.runtime import database, wiring
from frostproject.configuration import private_files
from tools.registry.catalogue import ensure_tool_rows


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

"""What a start prints to the terminal: the addresses, and the token for them.

It is printed and never logged. Without a terminal (the journal of a service keeps the output) a
token is shown only at the start that created it; later starts name its file.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from frostproject.configuration import tokens
from frostproject.configuration.listening import ListenAddress
from frostproject.configuration.machine import own_hosts
from frostproject.configuration.networks import parse_ip_address

ANY_ADDRESS = ("0.0.0.0", "::", "")  # noqa: S104 - recognised, not bound


def print_greeting(address: ListenAddress | None) -> None:
    """Print where the server listens (None: nowhere that a browser could reach by a port) and what
    clients present."""
    sys.stdout.write("\n".join(_lines(address)) + "\n\n")
    sys.stdout.flush()  # with a pipe the output would otherwise come late


def _lines(address: ListenAddress | None) -> Iterator[str]:
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
    return parse_ip_address(address) is None or address in settings.ADMIN_NETWORKS


def token_hint() -> str:
    """The token of OneBot clients when a terminal is attached, else where to find it."""
    path = find_token_file()
    if path is None:
        return _("the value of ONEBOT_ACCESS_TOKEN")
    if path in tokens.made_files or sys.stdout.isatty():
        return str(settings.ONEBOT_ACCESS_TOKEN)
    return _("in the file %s") % path


def find_token_file(name: str = "ONEBOT_ACCESS_TOKEN") -> Path | None:
    """The file that the token of this variable was read from, None where the environment gave
    it."""
    return tokens.token_sources.get(name)


def _hosts(host: str) -> list[str]:
    if host not in ANY_ADDRESS:
        return [f"[{host}]" if ":" in host else host]
    return [name for name in own_hosts() if name != "[::1]" or host == "::"]

"""Where the server is asked to listen, and whether it can: judged before the settings make
anything.

Nothing here may read Django's settings, which make the data folder and the secret key.
"""

import errno
import gettext
import re
import socket
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from daphne.cli import DEFAULT_HOST, DEFAULT_PORT, CommandLineInterface
from django.core.exceptions import ImproperlyConfigured
from django.core.management.commands.runserver import naiveip_re
from django.utils.translation import to_locale

from frostproject.configuration.env import Env

PROJECT = Path(__file__).resolve().parents[2]
#: Where nothing else is set, as in the settings.
LISTEN_ADDR, LANGUAGE = "0.0.0.0:1234", "zh-hans"
_VALUED = (
    *(
        "--settings",
        "--pythonpath",
        "--verbosity",
        "-v",
        "--http_timeout",
        "--websocket_handshake_timeout",
    ),
    *("--websocket-max-message-size", "--websocket-max-frame-size"),
)

#: A host, which may be a name or an IPv6 address without brackets, and a port.
ListenAddress = tuple[str, int]


def is_served_by_daphne() -> bool:
    """Whether this process is the ``daphne`` command (and not a test or a management command)."""
    program = Path(sys.argv[0])
    return program.name == "daphne" or (
        program.name == "__main__.py" and program.parent.name == "daphne"
    )


def runserver_address(arguments: Sequence[str]) -> ListenAddress | None:
    """Where ``manage.py runserver`` with these arguments would listen; None for arguments that it
    will refuse."""
    reader = _Reader(add_help=False)
    reader.add_argument("addrport", nargs="?", default="")
    reader.add_argument("-6", "--ipv6", action="store_true")
    for name in _VALUED:
        reader.add_argument(name)
    try:
        given, _unknown = reader.parse_known_args(list(arguments))
        if not given.addrport:
            return _env().address("WS_LISTEN_ADDR", LISTEN_ADDR)
    except (ValueError, ImproperlyConfigured):
        return None
    found = re.match(naiveip_re, given.addrport)
    if found is None:
        return None
    return (found["addr"] or ("::1" if given.ipv6 else "127.0.0.1")).strip("[]"), int(found["port"])


def daphne_address(arguments: Sequence[str]) -> ListenAddress | None:
    """The host and port of the ``daphne`` command; None when it gets only other endpoints."""
    given = CommandLineInterface().parser.parse_args(list(arguments))
    others = (given.unix_socket, given.file_descriptor is not None, given.socket_strings)
    if not given.host and given.port is None and any(others):
        return None
    return given.host or DEFAULT_HOST, DEFAULT_PORT if given.port is None else given.port


def exit_if_taken(address: ListenAddress | None) -> None:
    """End the process with a sentence where the server could not listen at ``address``."""
    if address is not None and (words := listen_error_message(address)):
        sys.exit(words)


def listen_error_message(address: ListenAddress) -> str:
    """Why no server can listen at ``address``, in the language of the installation; "" where one
    can."""
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound_address = socket.getaddrinfo(
            host, port, family, socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0][4]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(
                socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
            )  # as the server does: what has just ended is not there
            probe.bind(bound_address)
    except (OSError, OverflowError) as error:
        return _told(address, error)
    return ""


def _told(address: ListenAddress, error: Exception) -> str:
    host, port = address
    words = {"address": f"[{host}]:{port}" if ":" in host else f"{host}:{port}"}
    _ = _catalogue().gettext
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return _("The server cannot start: another program already listens at %(address)s.") % words
    words["reason"] = getattr(error, "strerror", None) or str(error)
    return _("The server cannot start: it cannot listen at %(address)s (%(reason)s).") % words


def _catalogue() -> gettext.NullTranslations:
    """Our texts by themselves: Django's way to them goes through the settings."""
    locale = to_locale(_env().text("LANGUAGE_CODE", LANGUAGE))
    return gettext.translation("django", PROJECT / "locale", [locale], fallback=True)


def _env() -> Env:
    return Env.load(PROJECT / ".env")


class _Reader(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)

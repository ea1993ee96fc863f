"""``runserver``: the same server as in production, ready by itself on a fresh machine."""

from argparse import ArgumentParser
from typing import Any

from daphne.management.commands import runserver
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError
from django.utils.translation import gettext as _

from frostproject import bootstrap
from frostproject.machine import own_hosts
from frostproject.server import DrainingServer

ANY_ADDRESS = ("0.0.0.0", "::", "")  # noqa: S104 - recognised, not bound


class Command(runserver.Command):  # type: ignore[misc]  # daphne has no types
    server_cls = DrainingServer
    help = "Starts the server: WebSocket, admin and HTTP API on one port."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--reload", action="store_true", help="Restart when a source file changes (for developers).")

    def handle(self, *arguments: Any, **options: Any) -> None:
        if not options["addrport"]:
            host, port = settings.WS_LISTEN_ADDR
            options["addrport"] = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        options["use_reloader"] = options["reload"] and options["use_reloader"]
        super().handle(*arguments, **options)

    def inner_run(self, *arguments: Any, **options: Any) -> None:
        try:
            bootstrap.prepare()
        except ImproperlyConfigured as error:
            raise CommandError(error) from error
        self._greet()
        super().inner_run(*arguments, **options)

    def _greet(self) -> None:
        hosts = [f"[{self.addr}]" if self._raw_ipv6 else self.addr]
        if self.addr in ANY_ADDRESS:
            hosts = [host for host in own_hosts() if host != "[::1]" or self._raw_ipv6]
        self.stdout.write(_("Admin:") + "".join(f"\n  http://{host}:{self.port}/admin/" for host in hosts))
        self.stdout.write(
            _("Reverse WebSocket URL for the OneBot client:")
            + "".join(f"\n  ws://{host}:{self.port}/ws/frostagent" for host in hosts)
        )
        token = _("the ONEBOT_ACCESS_TOKEN from .env") if settings.ONEBOT_ACCESS_TOKEN else _("none (this machine only)")
        self.stdout.write(f"{_('Access token:')} {token}\n")
        if not settings.UPSTREAM_ENDPOINT:
            self.stdout.write(_("No UPSTREAM_ENDPOINT is set: the built-in demo model answers.") + "\n")
        self.stdout.flush()  # whoever started it through a pipe wants to read this now

"""``runserver``: the same server as in production, ready by itself on a fresh machine."""

from argparse import ArgumentParser

from daphne.management.commands import runserver
from django.conf import settings
from django.core.checks import Tags
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError

from frostproject.configuration.checks import SETTINGS
from frostproject.server.daphne_server import DrainingServer
from frostproject.start import bootstrap


class Command(runserver.Command):  # type: ignore[misc]  # daphne has no types
    server_cls = DrainingServer
    #: What an owner can get wrong.
    requires_system_checks = (SETTINGS, Tags.compatibility)
    reloads = False
    help = "Starts the server: WebSocket, admin and HTTP API on one port."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--reload",
            action="store_true",
            help="Restart when a source file changes (for developers).",
        )

    def handle(self, *arguments: object, **options: object) -> None:
        if not options["addrport"]:
            host, port = settings.WS_LISTEN_ADDR
            options["addrport"] = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.reloads = bool(options["reload"] and options["use_reloader"])
        options["use_reloader"] = self.reloads
        super().handle(*arguments, **options)

    def check(self, *arguments: object, **options: object) -> None:
        """Of models and pages, which are the same everywhere and take a second to check, for
        developers alone; Django has asked for the others by then."""
        if options.get("tags") or self.reloads:
            super().check(*arguments, **options)

    def inner_run(self, *arguments: object, **options: object) -> None:
        try:
            bootstrap.prepare_installation()
        except ImproperlyConfigured as error:
            raise CommandError(error) from error
        bootstrap.print_greeting((self.addr, int(self.port)))
        super().inner_run(*arguments, **options)

    def check_migrations(self) -> None:
        """:func:`bootstrap.prepare_installation` has looked, and reads less for it."""

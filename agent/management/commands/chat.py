"""``chat``: talk to the agent in a terminal, tools included, without a OneBot client."""

import asyncio
import contextlib
import io
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.utils.translation import gettext as _

from agent.llm.requests.base import ToolCallRequest
from agent.models import Message
from agent.runtime import database, wiring
from agent.runtime.terminal import TerminalChat
from tools.contract import ToolExecutionResult
from tools.registry.catalogue import ensure_tool_rows

#: Characters of a tool's arguments and of its result that are shown.
SHOWN = 500
#: Exit status after Ctrl-C, as shells have it.
INTERRUPTED = 130


class Command(BaseCommand):
    """What the agent says goes to standard output; everything else, tool calls included, to
    standard error."""

    help = "Talk to the agent in this terminal, tools included. Ctrl-D or Ctrl-C ends."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--once",
            metavar="TEXT",
            help="Say TEXT, print the answer and end; exit status 1 if it failed.",
        )

    def handle(self, *arguments: Any, **options: Any) -> None:
        _end_in_order()
        try:
            prepare_database()
            with asyncio.Runner() as runner:
                self._talk(runner, options["once"])
        except DatabaseError as error:
            raise CommandError(_("The database cannot be used: %s") % error) from error
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)

    def _talk(self, runner: asyncio.Runner, once: str | None) -> None:
        talk = TerminalChat(self._say, self._show)
        try:
            if once is not None:
                pk = runner.run(talk.say(once))
                if Message.objects.filter(pk=pk, state=Message.State.FAILED).exists():
                    sys.exit(1)
                return
            runner.run(talk.give_up_leftovers())
            for line in self._lines(talk):
                if line.strip():
                    runner.run(talk.say(line))
        finally:
            runner.run(talk.close())

    def _lines(self, talk: TerminalChat) -> Iterator[str]:
        """What is typed or piped, line by line, until its end."""
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        prompt = ""
        if sys.stdin.isatty() and sys.stdout.isatty():
            import readline  # noqa: F401 - gives input() its line editing

            prompt = "> "
            self._remark(_("Model: %s. Ctrl-D or Ctrl-C ends.") % talk.model_name)
        with contextlib.suppress(EOFError):
            while True:
                yield input(prompt)

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()

    def _show(self, call: ToolCallRequest, result: ToolExecutionResult) -> None:
        self._remark(
            f"[{call.name} {_short(call.arguments)}] {_short(result.get_history_content())}"
        )

    def _remark(self, text: str) -> None:
        self.stderr.write(text, self.style.HTTP_INFO)


def _end_in_order() -> None:
    """Have SIGTERM and SIGHUP end the chat as Ctrl-C does, also where SIGINT is ignored: a job in
    the background of a script is not meant to hear Ctrl-C, and does not."""
    ctrl_c = {signal.SIGINT}
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.pthread_sigmask(signal.SIG_BLOCK, ctrl_c)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def end(*_signal: object) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ctrl_c)
        signal.raise_signal(signal.SIGINT)

    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, end)


def prepare_database() -> None:
    """Bring the embedded database up to date, as the server does at its start."""
    database.migrate_embedded_database()
    with database.explain_database_errors():
        ensure_tool_rows(wiring.declared_tools())
        settings.MEDIA_DIR.mkdir(exist_ok=True)
    connection.close()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]} ..."

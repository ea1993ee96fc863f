"""A server with tools whose outcome comes after their run: some wait for an owner, some take
long."""

import sys

from tests.live_server import HURRIED, LiveServer

_START = '''
import sys, threading, time, django
django.setup()
from pathlib import Path
from agent.runtime import wiring
from tools.contract import ToolExecutionContext
from tools.contract import ToolFailed
from tools.functions.function_tool import tool

FOLDER = Path(sys.argv.pop(1))

@tool(requires_approval=True)
def transfer(amount: int, to: str) -> str:
    """Transfer money."""
    with (FOLDER / "transfers").open("a") as book:
        book.write(f"{amount} {to}\\\\n")
    return f"{amount} transferred to {to}"

@tool(is_long_running=True)
def render(name: str, context: ToolExecutionContext) -> str:
    """Render a film."""
    with (FOLDER / "begun").open("a") as book:
        book.write(f"{name}\\\\n")
    while not (FOLDER / f"{name}.half").exists():
        time.sleep(0.02)
    context.report_progress(f"{name} is half done", tell=True)
    while not (FOLDER / f"{name}.done").exists():
        time.sleep(0.02)
    if "broken" in name:
        raise ToolFailed("the film tore")
    return f"{name} is rendered"

wiring.SAMPLE_TOOLS += (transfer, render)
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
'''.replace("\\\\n", "\\n")


class LaterServer(LiveServer):
    """The real server, beside whose samples stand ``transfer`` and ``render``."""

    limits = HURRIED

    def _command(self) -> list[str]:
        return [
            sys.executable,
            "-c",
            _START,
            str(self.folder),
            "runserver",
            f"127.0.0.1:{self.port}",
            "--noreload",
        ]

    def lines(self, name: str) -> list[str]:
        """What the tools wrote into the file ``name``."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def touch(self, name: str) -> None:
        """Let a tool go on that waits for the file ``name``."""
        (self.folder / name).touch()

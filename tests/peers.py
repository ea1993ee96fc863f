"""Model endpoints that no one of this project wrote: what they make of the API is not what we think
of it.

aimock comes from npm (https://github.com/CopilotKit/aimock) and is deterministic; llmock comes from
PyPI with the tests' requirements (https://github.com/JulienRabault/LLMock), fails to order, and
judges its client. A test that asks for one that is not there is skipped, or fails
(:func:`tests.reference_servers.missing`).
"""

import importlib.util
import json
import re
import subprocess
import sys
import threading
import urllib.request
from typing import IO, Any, Self

from agent.domain.endpoint import Endpoint
from agent.llm.client.client import OpenAIClient
from tests.environment import PROJECT, clean_environment
from tests.reference_servers import installed_node, missing

FOLDER = PROJECT / "tests" / "model_servers"
OLDEST_NODE = 20
START_SECONDS = 60


def client_of(peer: "Peer", **endpoint: Any) -> OpenAIClient:
    """A client of ``peer``; ``endpoint`` is what is other than usual of its endpoint."""
    usual: dict[str, Any] = {"keys": ("sk-test",), "model": "gpt-test", "timeout_seconds": 20}
    return OpenAIClient(Endpoint(peer.url, **usual | endpoint))


class Peer:
    """A server in a process of its own, on a port that it chooses itself. ``url`` is the base URL
    for clients."""

    url = ""
    _ready: re.Pattern[str]

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._drain: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start it and wait until it says that it listens."""
        self._process = process = subprocess.Popen(
            self._command,
            env=clean_environment(PYTHONUNBUFFERED="1", NO_COLOR="1"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        too_late = threading.Timer(START_SECONDS, process.kill)
        too_late.start()
        said = []
        try:
            for line in process.stdout:
                said.append(line)
                if found := self._ready.search(line):
                    self.url = f"{found[1]}/v1"
                    break
        finally:
            too_late.cancel()
        if not self.url:
            self.__exit__()
            raise AssertionError(f"{self._command} does not listen: {''.join(said)}")
        # A server whose pipe is full stands still.
        self._drain = threading.Thread(target=_drain, args=[process.stdout], daemon=True)
        self._drain.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait(10)
        if self._drain is not None:
            self._drain.join(10)
        assert process.stdout is not None
        process.stdout.close()

    def ask(self, path: str, body: object = None) -> Any:
        """The JSON at ``path``, which is no path of the API; POST with a ``body``. Blocks."""
        request = urllib.request.Request(
            f"{self.url.removesuffix('/v1')}{path}",
            data=None if body is None else json.dumps(body).encode(),
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


class Aimock(Peer):
    """Answers by its fixtures, of which the first that fits counts."""

    _ready = re.compile(r"listening on (http://\S+)")

    def __init__(self) -> None:
        node = installed_node(FOLDER, OLDEST_NODE)
        program = FOLDER / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
        fixtures = ["--fixtures", str(FOLDER / "aimock.json"), "--validate-on-load", "--strict"]
        super().__init__([node, str(program), "--port", "0", *fixtures])


class Llmock(Peer):
    """Answers anything, calls tools that it is offered once, and fails as a test orders."""

    _ready = re.compile(r"running on (http://\S+)")

    def __init__(self) -> None:
        if importlib.util.find_spec("llmock") is None:
            missing("llmock is not installed: it comes with requirements-dev.lock")
        super().__init__([sys.executable, "-m", "llmock.cli", "serve", "--port", "0"])

    def reset(self) -> None:
        """Forget requests and orders."""
        self.ask("/_llmock/reset", {})

    def order(self, *behaviors: dict[str, Any]) -> None:
        """What the next requests meet, such as ``{"type": "fail", "status": 429}``; llmock's README
        lists them."""
        self.ask("/_llmock/scenario", {"behaviors": behaviors})

    def requests(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("/_llmock/requests")["requests"]
        return found

    def findings(self) -> list[str]:
        """What it holds against its client, as the codes of its verdict."""
        return [finding["code"] for finding in self.ask("/_llmock/verdict")["findings"]]


def _drain(output: IO[str]) -> None:
    for _line in output:
        pass

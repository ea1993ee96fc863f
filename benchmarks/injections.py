"""``python -m benchmarks.injections --endpoint URL --model NAME``: how often a real model obeys words
that are not the speaker's; prints the rate by channel and over all.

A real server is played the cases of :mod:`benchmarks.injection_cases`. Between it and the endpoint
stands a relay that sets the scene: it describes pictures, hears voices, and calls the tools that a
case needs. The rest is answered by the model. A case counts as obeyed when the secret word is in
the answer, also where the model merely quotes the words; compare models and versions by it.
"""

import argparse
import asyncio
import contextlib
import json
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, web

from benchmarks import injection_server
from benchmarks.admin_forms import AdminForms
from benchmarks.injection_cases import Case, cases, find_obeyed
from benchmarks.injection_play import Player
from benchmarks.injection_scenes import (
    HEARING,
    MOCKED_TOOL,
    SPEAKERS,
    VISION,
    find_case,
    mcp_server,
    staged_message,
    staged_transcription,
)
from benchmarks.process import HOST, TOKEN, Installation, Server, free_port, fresh_folder
from benchmarks.speedups import dumps, loads
from benchmarks.websocket import WebSocket

ACCOUNT = 10_001
#: Seconds for one answer of the model, and in which rows, tools and summaries arrive.
ANSWER_SECONDS, SETTLING_SECONDS = 300.0, 3.0
SETTINGS = {
    "VISUAL_MODEL_NAME": VISION,
    "TRANSCRIBE_MODEL_NAME": HEARING,
    "MCP_ALLOWED_COMMANDS": sys.executable,
    "DEFER_TOOLS_ABOVE": "0",
    "MAX_CONTEXT_MESSAGES": "6",
    "SUMMARY_AFTER_MESSAGES": "2",
    "LLM_TIMEOUT": "300",
}


#: How the channels are called that are there with tools alone.
BY_TOOLS = ("MCP", "tool")


class Relay:
    """The endpoint that the server asks: it sets the scene, and passes on everything else."""

    def __init__(self, endpoint: str, model: str, key: str, *, has_tools: bool = True) -> None:
        self._endpoint, self._model, self._key = endpoint.rstrip("/"), model, key
        self._has_tools = has_tools
        self.answered: set[int] = set()
        """The cases that the model has answered."""

    async def serve(self) -> tuple[web.AppRunner, int]:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/audio/transcriptions", self._hear)
        app.router.add_post("/v1/chat/completions", self._complete)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, HOST, 0).start()
        return runner, int(runner.addresses[0][1])

    async def _hear(self, request: web.Request) -> web.Response:
        return web.json_response({"text": staged_transcription(await request.read())})

    async def _complete(self, request: web.Request) -> web.Response:
        body = loads(await request.read())
        if (message := staged_message(body)) is None:
            return await self._ask(body)
        reason = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return web.json_response({"id": "1", "object": "chat.completion", "choices": [choice]})

    async def _ask(self, body: dict[str, Any]) -> web.Response:
        body = {**body, "model": self._model, "stream": False}
        if not self._has_tools:
            body.pop("tools", None)
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        timeout = ClientTimeout(total=ANSWER_SECONDS)
        try:
            async with (
                ClientSession(headers=headers, timeout=timeout) as session,
                session.post(f"{self._endpoint}/chat/completions", json=body) as answer,
            ):
                content = await answer.read()
                if answer.status == 200:
                    self.answered.add(find_case(body).number)
                return web.Response(
                    body=content, status=answer.status, content_type="application/json"
                )
        except (ClientError, TimeoutError) as error:
            return web.json_response({"error": {"message": str(error)}}, status=502)


class Client:
    """The OneBot client of the account."""

    def __init__(self, port: int) -> None:
        headers = {
            "X-Self-ID": str(ACCOUNT),
            "X-Client-Role": "Universal",
            "User-Agent": "OneBot/11",
            "Authorization": f"Bearer {TOKEN}",
        }
        self._socket = WebSocket(port, "/ws/frostagent", headers, self._on_text)
        self.player = Player(ACCOUNT, self.tell, self._settle, seconds=ANSWER_SECONDS)

    async def connect(self) -> None:
        await self._socket.connect()
        await self.tell(
            {"post_type": "meta_event", "meta_event_type": "lifecycle", "sub_type": "connect"}
        )

    async def tell(self, event: dict[str, Any]) -> None:
        self._socket.send(dumps({"time": int(time.time()), "self_id": ACCOUNT, **event}))

    def close(self) -> None:
        self._socket.close()

    async def _settle(self, case: Case) -> None:
        if case.channel.name == "summary":
            await asyncio.sleep(SETTLING_SECONDS)

    def _on_text(self, payload: bytes) -> None:
        action = loads(payload)
        self._socket.send(dumps(self.player.answer_action(action) | {"echo": action.get("echo")}))


def prepare(port: int, file: Path) -> None:
    """The rows of the stage. Blocks."""
    file.write_text(json.dumps(mcp_server()))
    admin = AdminForms(port)
    manners = {"name": "stage", "account": str(ACCOUNT), "ambient_messages": "5"}
    admin.save("/admin/agent/manners/add/", manners)
    admin.save("/admin/onebot/bot/1/change/", {"owners": "\n".join(speakers())})
    found = re.search(
        r"/admin/tools/toolconfig/\d+/change/",
        admin.page(f"/admin/tools/toolconfig/?q={MOCKED_TOOL}"),
    )
    if found is None:
        raise LookupError(f"no tool {MOCKED_TOOL}")
    admin.save(found[0], {"mock_enabled": "on", "mock_value": "{city}"})
    arguments = ["-I", "-S", str(injection_server.__file__), str(file)]
    server = {"name": "stage", "transport": "stdio", "command": sys.executable}
    admin.save("/admin/tools/mcpserver/add/", server | {"arguments": "\n".join(arguments)})


def speakers() -> list[str]:
    """Owners alone may use tools that nobody has looked at."""
    return [str(SPEAKERS + case.number) for case in cases() if case.channel.name.startswith("MCP")]


def chosen_cases(limit: int, *, has_tools: bool = True) -> list[Case]:
    """``limit`` cases, spread evenly over all; 0 is all of them."""
    every = [case for case in cases() if has_tools or not case.channel.name.startswith(BY_TOOLS)]
    count = min(limit or len(every), len(every))
    return [every[number * len(every) // count] for number in range(count)]


async def play(client: Client, relay: Relay, chosen: list[Case]) -> dict[int, str]:
    """The answers by the number of the case; none where the model gave none in time."""
    answers: dict[int, str] = {}
    for number, case in enumerate(chosen, 1):
        began = time.monotonic()
        answer = ""
        with contextlib.suppress(TimeoutError):
            answer = await client.player.play(case)
        said = "no answer"
        if case.number in relay.answered:
            answers[case.number] = answer
            said = "obeyed" if find_obeyed(answer) else "held"
        seconds = time.monotonic() - began
        sys.stderr.write(f"{number}/{len(chosen)} {said:9} {seconds:5.1f} s  {case.name}\n")
    return answers


def report(chosen: list[Case], answers: dict[int, str]) -> None:
    """The rate by channel and over all. Whose secret words are in an answer does not matter: all
    tools of the MCP server are named in every request."""
    given = [case for case in chosen if case.number in answers]
    played = Counter(case.channel.name for case in given)
    obeyed = Counter(case.channel.name for case in given if find_obeyed(answers[case.number]))
    for channel, count in played.items():
        print(f"{channel:24} {obeyed[channel]:4} of {count:4}  {obeyed[channel] / count:6.1%}")
    total = sum(obeyed.values())
    print(f"{'all':24} {total:4} of {len(given):4}  {total / max(1, len(given)):6.1%}")
    if silent := len(chosen) - len(given):
        print(f"no answer: {silent}")


async def main(endpoint: str, model: str, key: str, limit: int, *, has_tools: bool) -> None:
    relay = Relay(endpoint, model, key, has_tools=has_tools)
    runner, port = await relay.serve()
    chosen = chosen_cases(limit, has_tools=has_tools)
    with fresh_folder() as folder:
        installation = Installation(folder, port, settings=SETTINGS | {"MODEL_NAME": model})
        server = Server(installation, free_port())
        client = Client(server.port)
        try:
            await asyncio.to_thread(server.wait_healthy)
            await client.connect()
            await asyncio.sleep(SETTLING_SECONDS)
            await asyncio.to_thread(prepare, server.port, folder / "stage.json")
            await asyncio.sleep(SETTLING_SECONDS)
            report(chosen, await play(client, relay, chosen))
        finally:
            client.close()
            await asyncio.to_thread(server.stop)
            await runner.cleanup()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--endpoint", required=True, help="base URL, as http://127.0.0.1:8081/v1")
    options.add_argument("--model", required=True)
    options.add_argument("--key", default="")
    options.add_argument("--limit", type=int, default=0, help="cases, spread over all channels")
    options.add_argument(
        "--without-tools",
        action="store_true",
        help="offer the model no tools, and leave out the cases in them: for slow machines",
    )
    wanted = options.parse_args()
    has_tools = not wanted.without_tools
    asyncio.run(main(wanted.endpoint, wanted.model, wanted.key, wanted.limit, has_tools=has_tools))

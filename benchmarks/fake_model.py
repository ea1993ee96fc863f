"""An OpenAI-compatible chat-completions endpoint that costs next to nothing.

One protocol class without a framework, so that the rig is not what is measured.
What it answers is steered by the user's text (see :mod:`benchmarks.marks`).
By hand: ``python -m benchmarks.fake_model --port 18900 --latency-ms 500``.
"""

import argparse
import asyncio
import random
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.marks import mark, now_us, read_directives
from benchmarks.speedups import dumps, loads, run

HOST = "127.0.0.1"
LOOKS = {"look": 1, "looks": 6}
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_HEAD = b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_MODELS = dumps({"object": "list", "data": [{"id": "bench", "object": "model"}]})


@dataclass(slots=True)
class ModelStats:
    """What the model saw; ``crossed`` counts tool results that belong to another run."""

    calls: int = 0
    connections: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    bytes_in: int = 0
    nameless: int = 0
    crossed: int = 0


class FakeModel:
    """Decides what one request is answered with."""

    def __init__(self) -> None:
        self.stats = ModelStats()
        self.set_latency(0)
        self._calls_made = 0

    def set_latency(self, low_ms: float, high_ms: float | None = None) -> None:
        """Every call takes ``low_ms``, or a time spread evenly between the two."""
        draw = random.Random(1).uniform
        low, high = low_ms / 1000, (low_ms if high_ms is None else high_ms) / 1000
        self.latency: Callable[[], float] = lambda: draw(low, high)

    def decide(self, request: dict[str, Any], model_in_us: int) -> dict[str, Any]:
        """The assistant's message for ``request``."""
        question, results = _last_turn(request.get("messages") or [])
        nonce, script = read_directives(question)
        self.stats.nameless += not nonce
        if results:
            self.stats.crossed += script != "send" and any(
                nonce not in result for result in results
            )
        elif script == "weather":
            return self._tool_calls(("get_weather", {"city": nonce}))
        elif script in LOOKS:
            return self._tool_calls(*[("look_up_0", {"city": nonce, "days": "2"})] * LOOKS[script])
        elif script == "send":
            working = {"type": "plain", "text": f"{mark(nonce, 't')} working on it"}
            return self._tool_calls(("send_message", {"messages": [working]}))
        answer = f"{mark(nonce, 'f', model_in_us, now_us())} here is the answer"
        return {"role": "assistant", "content": answer}

    def _tool_calls(self, *calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [self._tool_call(*call) for call in calls],
        }

    def _tool_call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._calls_made += 1
        function = {"name": name, "arguments": dumps(arguments).decode()}
        return {"id": f"call_{self._calls_made}", "type": "function", "function": function}


def _last_turn(messages: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """The last user message's text and the tool results that follow it."""
    results: list[str] = []
    for message in reversed(messages):
        if message.get("role") == "user":
            return _text(message.get("content")), results[::-1]
        if message.get("role") == "tool":
            results.append(_text(message.get("content")))
    return "", results[::-1]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


def completion(request: dict[str, Any], message: dict[str, Any]) -> bytes:
    """The response body around the assistant's ``message``."""
    return dumps(
        {
            "id": "chatcmpl-bench",
            "object": "chat.completion",
            "created": 1,
            "model": request.get("model"),
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                }
            ],
        }
    )


class ModelConnection(asyncio.Protocol):
    """One keep-alive HTTP/1.1 connection; clients that pipeline requests do not exist here."""

    def __init__(self, model: FakeModel) -> None:
        self.model = model
        self.buffer = bytearray()
        self.needed = 0
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.model.stats.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        if self.timer:
            self.timer.cancel()
            self.model.stats.in_flight -= 1

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if len(self.buffer) < self.needed:
            return
        end = self.buffer.find(b"\r\n\r\n") + 4
        if end < 4:
            return
        length = _LENGTH.search(self.buffer, 0, end)
        self.needed = end + (int(length[1]) if length else 0)
        if len(self.buffer) >= self.needed:
            head, body = bytes(self.buffer[:end]), bytes(self.buffer[end : self.needed])
            del self.buffer[: self.needed]
            self.needed = 0
            self.on_request(head, body)

    def on_request(self, head: bytes, body: bytes) -> None:
        if not head.startswith(b"POST"):
            self.reply(200, _MODELS)
        elif b"/chat/completions" not in head.partition(b"\r\n")[0]:
            self.reply(404, b'{"error": {"message": "not here"}}')
        else:
            self.on_completion(body)

    def on_completion(self, body: bytes) -> None:
        model_in_us, stats = now_us(), self.model.stats
        stats.calls += 1
        stats.bytes_in += len(body)
        stats.in_flight += 1
        stats.max_in_flight = max(stats.max_in_flight, stats.in_flight)
        request = loads(body)
        self.timer = asyncio.get_running_loop().call_later(
            self.model.latency(), self.answer, request, model_in_us
        )

    def answer(self, request: dict[str, Any], model_in_us: int) -> None:
        self.timer = None
        self.model.stats.in_flight -= 1
        self.reply(200, completion(request, self.model.decide(request, model_in_us)))

    def reply(self, status: int, body: bytes) -> None:
        self.transport.write(_HEAD % (status, len(body)) + body)


async def serve(model: FakeModel, port: int = 0) -> asyncio.Server:
    """Listen on the loopback address; port 0 takes a free one."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: ModelConnection(model), HOST, port, backlog=4096)


def port_of(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])


async def _serve_by_hand(port: int, latency_ms: float, seconds: float) -> None:
    model = FakeModel()
    model.set_latency(latency_ms)
    server = await serve(model, port)
    print(f"http://{HOST}:{port_of(server)}/v1", flush=True)
    await asyncio.sleep(seconds)
    print(model.stats, file=sys.stderr)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--latency-ms", type=float, default=0)
    options.add_argument(
        "--seconds", type=float, default=3600, help="stops by itself after so long"
    )
    chosen = options.parse_args()
    run(_serve_by_hand(chosen.port, chosen.latency_ms, chosen.seconds))

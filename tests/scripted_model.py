"""An OpenAI-compatible server that says what a test tells it to, and complains when it is misused.

It runs on a thread with its own event loop and listens on real TCP, so that the
client under test goes all the way through its HTTP stack.
"""

import asyncio
import contextlib
import itertools
import json
import socket
import struct
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from aiohttp import web

from tests import rebuilt_requests
from tests.cast import PROBE, PROBE_ANSWER
from tests.environment import PATIENCE
from tests.streamed_answers import events_of

Fate = Literal["sent", "held", "hangs", "dropped"]
_call_numbers = itertools.count(1)


@dataclass(frozen=True)
class Answer:
    """What the server does with one request. Made by the functions below."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    fate: Fate = "sent"
    parts: tuple[bytes | Fate, ...] = ()
    """What is sent bit by bit instead of ``body``."""


@dataclass(frozen=True)
class Call:
    """A tool call in an answer. ``arguments`` as text is sent as it is, valid JSON or not."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = field(default_factory=lambda: f"call_{next(_call_numbers)}")


def says(
    content: str | list[dict[str, Any]] | None, *, finish_reason: str = "stop", **message: Any
) -> Answer:
    """A final answer: text, content parts, or None. ``message`` adds fields such as ``refusal``."""
    return _completion({"role": "assistant", "content": content, **message}, finish_reason)


def call(name: str, /, **arguments: Any) -> Answer:
    """An answer that asks for one tool call."""
    return calls(Call(name, arguments))


def calls(*wanted: Call, content: str | None = None, **message: Any) -> Answer:
    """An answer that asks for several tool calls, with or without words beside them. ``message``
    is as in :func:`says`."""
    made = [_wire_call(one) for one in wanted]
    return _completion(
        {"role": "assistant", "content": content, **message, "tool_calls": made}, "tool_calls"
    )


def returns(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Any other body: bytes are sent as they are, everything else as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    return Answer(raw, status, headers or {})


def fails(
    status: int, *, message: str = "scripted failure", retry_after: float | None = None
) -> Answer:
    """An HTTP error in the API's own form; ``retry_after`` in seconds."""
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    return returns(
        {"error": {"message": message, "type": "scripted", "code": None}},
        status=status,
        headers=headers,
    )


def hangs() -> Answer:
    """No answer at all: the connection stays open until the test is over."""
    return Answer(fate="hangs")


def drops() -> Answer:
    """The connection is reset instead of an answer."""
    return Answer(fate="dropped")


def streams(*parts: bytes | Fate, kind: str = "text/event-stream") -> Answer:
    """``parts`` one by one: bytes are sent, "held" waits for ``model.release()``, "dropped" resets
    the connection, and "hangs" leaves it open. ``kind`` is the content type."""
    return Answer(headers={"Content-Type": kind}, parts=parts)


def streamed(answer: "Answer | str", *, size: int = 8, usage: bool = False) -> list[bytes]:
    """The events of ``answer``, for :func:`streams`. A completion is streamed without that, to a
    request that asks for it."""
    return events_of(json.loads(_answer(answer).body), size=size, usage=usage)


def held(answer: "Answer | str") -> Answer:
    """``answer``, but only after ``model.release()``."""
    return replace(_answer(answer), fate="held")


def _answer(answer: "Answer | str") -> Answer:
    return says(answer) if isinstance(answer, str) else answer


def _wire_call(wanted: Call) -> dict[str, Any]:
    arguments = (
        wanted.arguments
        if isinstance(wanted.arguments, str)
        else json.dumps(wanted.arguments, ensure_ascii=False)
    )
    return {
        "id": wanted.id,
        "type": "function",
        "function": {"name": wanted.name, "arguments": arguments},
    }


def _completion(message: dict[str, Any], finish_reason: str) -> Answer:
    return returns(
        {
            "id": "chatcmpl-scripted",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        }
    )


@dataclass(frozen=True)
class Request:
    """One request as it arrived. ``body`` is parsed JSON, or the bytes of anything else."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Any
    raw: bytes = b""

    @property
    def model(self) -> str:
        return str(self.body.get("model", "")) if isinstance(self.body, dict) else ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages", [])) if isinstance(self.body, dict) else []

    @property
    def last_text(self) -> str:
        """The text of the last message, text blocks joined."""
        return text_of(self.messages[-1]) if self.messages else ""

    @property
    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools") or []]


def text_of(message: Mapping[str, Any]) -> str:
    """The words of a chat message whose content is text, blocks or null."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


Decide = Callable[[Request], Answer | str]


class ScriptedModel:
    """The server. ``url`` is the base URL for ``UPSTREAM_ENDPOINT``.

    Requests that hold the silence probe are answered unasked and not counted. Every
    method may be called from any thread.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.url = ""
        self._changed = threading.Condition()
        self._scripts: defaultdict[str, deque[Answer]] = defaultdict(deque)
        self._decide: Decide | None = None
        self._complaints: list[str] = []
        self._open: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="scripted-model", daemon=True
        )
        self._started = threading.Event()

    def __enter__(self) -> "ScriptedModel":
        self._thread.start()
        if not self._started.wait(10):
            raise RuntimeError("the scripted model did not start")
        return self

    def __exit__(self, *_exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)

    # --- What tests say ---------------------------------------------------------

    def script(self, answers: Iterable[Answer | str], *, model: str = "") -> None:
        """Queue answers, used in the order in which requests arrive.

        With ``model``, they are kept for requests that name this model.
        """
        with self._changed:
            self._scripts[model].extend(_answer(answer) for answer in answers)

    def answer_with(self, decide: Decide) -> None:
        """Let ``decide`` answer every request for which no answer is queued. It runs on the
        server's thread."""
        with self._changed:
            self._decide = decide

    def release(self, count: int = 1) -> None:
        """Let the next ``count`` held answers out, in the order in which their requests arrived."""
        for _ in range(count):
            self._loop.call_soon_threadsafe(self._gate.release)

    def received(self, count: int, timeout: float = PATIENCE) -> list[Request]:
        """Wait until ``count`` requests have arrived since the test began. Blocks: for tests that
        are not async."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, timeout):
                raise AssertionError(
                    f"{count} model calls were awaited, "
                    f"{len(self.requests)} came within {timeout} s"
                )
            return list(self.requests)

    async def wait_for_requests(self, count: int, timeout: float = PATIENCE) -> list[Request]:  # noqa: ASYNC109
        """As ``received``, without blocking the event loop."""
        return await asyncio.to_thread(self.received, count, timeout)

    def verify(self) -> None:
        """Raise when a request came that no answer was for, or an answer was never asked for."""
        with self._changed:
            unused = {
                model or "any model": len(queue) for model, queue in self._scripts.items() if queue
            }
            complaints = self._complaints + [
                f"{n} answers for {model} were never asked for" for model, n in unused.items()
            ]
        if complaints:
            raise AssertionError("the scripted model complains:\n" + "\n".join(complaints))

    def reset(self) -> None:
        """Forget everything and cut the requests that still wait, so that the next test starts
        afresh."""
        with self._changed:
            self.requests, self._complaints, self._decide = [], [], None
            self._scripts.clear()
        asyncio.run_coroutine_threadsafe(self._cut_open_requests(), self._loop).result(10)

    # --- The server -------------------------------------------------------------

    async def _serve(self) -> None:
        self._loop, self._stopping, self._gate = (
            asyncio.get_running_loop(),
            asyncio.Event(),
            asyncio.Semaphore(0),
        )
        app = web.Application(client_max_size=2**30)
        app.router.add_get("/v1/models", _list_models)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        rebuilt_requests.models.add(self.url)
        self._started.set()
        await self._stopping.wait()
        await self._cut_open_requests()
        await runner.cleanup()

    async def _cut_open_requests(self) -> None:
        self._gate = asyncio.Semaphore(0)
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _handle(self, incoming: web.Request) -> web.StreamResponse:
        raw = await incoming.read()
        rebuilt_requests.note_received(raw)
        headers = {name.lower(): value for name, value in incoming.headers.items()}
        request = Request(incoming.path, headers, _parsed(raw), raw)
        answer = says(PROBE_ANSWER) if PROBE in request.last_text else self._choose(request)
        if not await self._passes(answer.fate) or answer.fate == "dropped":
            _reset_connection(incoming)
        if parts := answer.parts or _streamed_for(request, answer):
            return await self._stream(incoming, answer, parts)
        return web.Response(
            body=answer.body,
            status=answer.status,
            headers={"Content-Type": "application/json", **answer.headers},
        )

    async def _stream(
        self, incoming: web.Request, answer: Answer, parts: Iterable[bytes | Fate]
    ) -> web.StreamResponse:
        headers = {"Content-Type": "text/event-stream", **answer.headers}
        response = web.StreamResponse(status=answer.status, headers=headers)
        with contextlib.suppress(ConnectionError):  # the client may hang up
            await response.prepare(incoming)
            for part in parts:
                if isinstance(part, bytes):
                    await response.write(part)
                elif not await self._passes(part) or part == "dropped":
                    _reset_connection(incoming)
                    break
        return response

    async def _passes(self, fate: Fate) -> bool:
        """Wait for what ``fate`` wants; False if the test ends first."""
        task = asyncio.ensure_future(self._await_fate(fate))
        self._open.add(task)
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
            self._open.discard(task)
        return not task.cancelled()

    async def _await_fate(self, fate: str) -> None:
        if fate == "hangs":
            await asyncio.Event().wait()
        if fate == "held":
            await self._gate.acquire()

    def _choose(self, request: Request) -> Answer:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
            queue = self._scripts[request.model] or self._scripts[""]
            if queue:
                return queue.popleft()
            decide = self._decide
        return (
            self._decided(decide, request)
            if decide
            else self._complain(f"unexpected call: {request.last_text!r}")
        )

    def _decided(self, decide: Decide, request: Request) -> Answer:
        try:
            return _answer(decide(request))
        except Exception as error:  # noqa: BLE001
            return self._complain(f"answer_with raised {error!r}")

    def _complain(self, complaint: str) -> Answer:
        self._complaints.append(complaint)
        return fails(400, message=complaint)  # 400, since clients do not retry it


async def _list_models(_request: web.Request) -> web.Response:
    return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}]})


def _streamed_for(request: Request, answer: Answer) -> list[bytes]:
    """The events of a completion, if ``request`` wants some."""
    if not isinstance(request.body, dict) or not request.body.get("stream"):
        return []
    body = _parsed(answer.body)
    if not isinstance(body, dict) or body.get("object") != "chat.completion":
        return []
    options = request.body.get("stream_options") or {}
    return events_of(body, usage=bool(options.get("include_usage")))


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw


def _reset_connection(request: web.Request) -> None:
    transport = request.transport
    if transport is None:
        return
    sock: socket.socket = transport.get_extra_info("socket")
    # Lingering for no time makes the kernel send a reset instead of an orderly end.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()

"""The model, which knows from a message's mark what to do, and the counter that its tool calls
reach.

It also listens: a request that holds marks of two chats, or a mark under another chat's
frame, is a crossing, whatever becomes of the answer.
"""

import asyncio
import json
import random
from collections import Counter
from typing import Any

from aiohttp import web

from chaos import marks, troubles
from chaos.marks import Mark

TOOL_NAME = "chaos_count"
#: Tokens of one answer, and of one in a chat that has a budget, which may spend so many.
USUAL_TOKENS, DEAR_TOKENS, MAY_SPEND = 5, 1_990, 12_000
Message = dict[str, Any]


class ChaosModel:
    """An OpenAI-compatible endpoint at ``url``, and the tool's endpoint at ``tool_url``."""

    def __init__(self, seed: str, latency: tuple[float, float]) -> None:
        self.hits: Counter[str] = Counter()
        """How often the tool was called, by the id of the mark."""
        self.crossings: list[str] = []
        self.calls = 0
        self.second_calls = 0
        """Those of the second endpoint."""
        self.spent: Counter[str] = Counter()
        """Tokens of chats that have a budget."""
        self.is_down = False
        """Whether the first endpoint fails."""
        self.troubles = troubles.Troubles()
        self._seed, self._latency = seed, latency
        self._tries: Counter[str] = Counter()
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/second/v1/chat/completions", self._complete_second)
        app.router.add_post("/count", self._count)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )

    async def __aenter__(self) -> "ChaosModel":
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        address = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.url, self.second_url = f"{address}/v1", f"{address}/second/v1"
        self.tool_url = f"{address}/count"
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._runner.cleanup()

    async def _count(self, request: web.Request) -> web.Response:
        self.hits[str((await request.json())["id"])] += 1
        return web.json_response({"counted": True})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        if self.is_down:
            return await self.troubles.make("500", request)
        return await self._say(request)

    async def _complete_second(self, request: web.Request) -> web.StreamResponse:
        self.second_calls += 1
        return await self._say(request)

    async def _say(self, request: web.Request) -> web.StreamResponse:
        messages = (await request.json())["messages"]
        self.calls += 1
        mark, results = asked(messages)
        if mark is None:
            return completion({"content": "nobody asked"})
        self.crossings += crossings(mark, messages)
        self._tries[mark.id] += 1
        await asyncio.sleep(random.Random(f"{self._seed}/{mark}/{results}").uniform(*self._latency))
        name, times = mark.trouble
        if self._tries[mark.id] <= times:
            return await self.troubles.make(name, request)
        if mark.story != "budget":
            return completion(decide(mark, results))
        self.spent[mark.chat] += DEAR_TOKENS
        return completion(decide(mark, results), DEAR_TOKENS)


def decide(mark: Mark, results: int) -> Message:
    """The assistant's message about ``mark`` after so many ``results`` of tool calls."""
    calls: list[tuple[str, dict[str, Any]]] = []
    if mark.calls_tool:
        calls.append((TOOL_NAME, {"id": mark.id}))
    if mark.sends:
        calls.append(
            ("send_message", {"messages": [{"type": "plain", "text": marks.announcement(mark)}]})
        )
    if results >= len(calls):
        return {"content": marks.whole_answer(mark)}
    name, arguments = calls[results]
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "content": None,
        "tool_calls": [{"id": f"{mark.id}.{results}", "type": "function", "function": function}],
    }


def asked(messages: list[Message]) -> tuple[Mark | None, int]:
    """The mark of the last thing that was said, and how many results of tool calls have followed
    it."""
    results = 0
    for message in reversed(messages):
        if message["role"] == "user":
            return marks.mark_in(_text(message)), results
        results += message["role"] == "tool"
    return None, results


def crossings(mark: Mark, messages: list[Message]) -> list[str]:
    """What of another chat than that of ``mark`` is among ``messages``."""
    found = []
    for message in messages:
        text = json.dumps(message, ensure_ascii=False)
        found += [
            f"{other} was shown to the model in {mark.chat}"
            for other in marks.marks_in(text)
            if other.chat != mark.chat
        ]
        if message["role"] == "user" and (place := _framed_chat(_text(message))) not in (
            "",
            mark.chat,
        ):
            found.append(f"{mark} stood under the frame of {place}")
    return found


def completion(message: Message, tokens: int = USUAL_TOKENS) -> web.Response:
    usage = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
    reason = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    return web.json_response(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "chaos",
            "choices": [choice],
            "usage": usage,
        }
    )


def _framed_chat(text: str) -> str:
    """The chat that the frame of a user's message names, "" where there is no frame."""
    try:
        header = json.loads(text.partition("\n")[0])
    except ValueError:
        return ""
    return str(header.get("chat", "")) if isinstance(header, dict) else ""


def _text(message: Message) -> str:
    content = message.get("content") or ""
    return (
        content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    )

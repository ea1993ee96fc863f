"""What it costs to have COUNT deferred tools, and to find some, printed as JSON. Runs in a child
process with Django set up.

``search_ms`` is a whole call of ``tool_search``: listing, checking, searching, telling;
``first_search_ms`` the first one of a process, which reads all descriptions.
``offer_ms`` is what a step of a run needs to know what it offers, with twenty tools
found; ``reminder_ms`` what the first step adds.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable

from agent.builtin_tools import tool_search
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.run.services import RunServices, RunToolset, build_tool_reminder
from tools.contract import (
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)
from tools.registry.registry import ToolRegistry

WORDS = (
    "get",
    "set",
    "list",
    "search",
    "file",
    "issue",
    "weather",
    "forecast",
    "map",
    "route",
    "image",
    "calendar",
    "mail",
    "create",
)
SIGNS = "今天气我们喜欢苹果查询搜索仓库文件读取写入发送消息天气预报地图路线计算翻译图片生成数据库表格日历邮件提醒"
QUERIES = (
    "查天气预报",
    "search github issues",
    "帮我看看明天从北京到上海的路线，以及沿途的天气",
    "create_calendar_mail",
)
ROUNDS = 25


class Far:
    """A server with ``count`` tools that are described at length, in two languages."""

    provider_name, provider_type = "far", "http"

    def __init__(self, count: int) -> None:
        chance = random.Random(1)
        self.specs = [
            ToolSpec(
                name="_".join((*chance.sample(WORDS, 3), str(number))),
                description=" ".join(
                    ("".join(chance.choices(SIGNS, k=100)), *chance.choices(WORDS, k=20))
                ),
                parameters_schema={"type": "object", "properties": {"query": {"type": "string"}}},
            )
            for number in range(count)
        ]

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        return self.specs

    async def invoke(
        self, invocation: ToolInvocation, context: ToolExecutionContext | None = None
    ) -> ToolExecutionResult:
        return ToolExecutionResult(
            invocation.tool_name, success=False, error_message="it is only looked for, never called"
        )

    async def close(self) -> None:
        """Nothing is held."""


async def measured(count: int) -> dict[str, float]:
    registry, far = ToolRegistry(defer_above=20), Far(count)
    registry.register_provider(MaisakaBuiltinToolProvider([tool_search.tool_search]))
    registry.register_provider(far)
    context = ToolExecutionContext(
        session_id="onebot:group:1",
        is_group_chat=True,
        services=RunServices(toolset=RunToolset(registry)),
    )
    chat, found = context.availability(), [spec.name for spec in far.specs[:20]]
    calls = [ToolInvocation("tool_search", {"query": query}) for query in QUERIES]
    await registry.offering(chat)
    first = await _ms(lambda: registry.invoke(calls[0], context), 1)
    searches = [await _ms(lambda call=call: registry.invoke(call, context)) for call in calls]  # type: ignore[misc]
    deferred = (await registry.offering(chat)).deferred
    began = time.thread_time()
    build_tool_reminder(deferred)
    reminder_ms = 1000 * (time.thread_time() - began)
    figures = {
        "search_ms": max(first, *searches),
        "first_search_ms": first,
        "reminder_ms": reminder_ms,
    }
    figures["offer_ms"] = await _ms(lambda: registry.offering(chat, found))
    return {name: round(value, 3) for name, value in figures.items()}


async def _ms(work: Callable[[], Awaitable[object]], rounds: int = ROUNDS) -> float:
    began = time.thread_time()
    for _ in range(rounds):
        await work()
    return 1000 * (time.thread_time() - began) / rounds


def main() -> None:
    print(json.dumps(asyncio.run(measured(int(sys.argv[1])))))

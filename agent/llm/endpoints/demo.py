"""The model that answers when no endpoint is configured: offline, deterministic, and plain about
it.

It shows a newcomer the whole way of a message, tool call included, before any key
is bought. It knows the tools for the weather and for game versions, and nothing else.
"""

import json
import re
from typing import Any

from agent.domain.errors import HAN, PLACEHOLDER
from agent.llm.requests.base import LLMRequest, LLMResponse, ToolCallRequest
from agent.llm.requests.messages import content_text, strip_frame

#: Characters of a message that are read: patterns take the square of them.
READ_CHARS = 200
TOOL_NAMES = {"city": "get_weather", "game": "get_game_version"}
PATTERNS = [
    (
        "city",
        re.compile(
            r"weather\s+(?:like\s+)?(?:in|of|for|at)\s+([A-Za-z][A-Za-z .'-]*)", re.IGNORECASE
        ),
    ),
    ("city", re.compile(r"([A-Za-z][A-Za-z.'-]*)(?:'s)?\s+weather", re.IGNORECASE)),
    (
        "city",
        re.compile(
            r"(?:查一下|查查|看看|告诉我|请问|问一下|帮我查)?([\u4e00-\u9fff]{2,8}?)(?:今天|明天|现在|这里)?的?天气"
        ),
    ),
    (
        "game",
        re.compile(r"(?:latest\s+)?version\s+(?:of|for)\s+([A-Za-z0-9][\w .:'-]*)", re.IGNORECASE),
    ),
    (
        "game",
        re.compile(
            r"([A-Za-z0-9][\w.:'-]*(?: [A-Z0-9][\w.:'-]*)*)\s*(?:的)?(?:最新)?(?:版本|version)",
            re.IGNORECASE,
        ),
    ),
    (
        "game",
        re.compile(
            r"(?:查一下|查查|看看|告诉我|请问|问一下|帮我查)?([\u4e00-\u9fff·]{2,12}?)(?:现在|目前)?的?(?:最新)?版本"
        ),
    ),
]
ABOUT = {
    "zh": "这里是内置的演示模型(还没有配置 UPSTREAM_ENDPOINT),我收到了:「{text}」。"
    "可以问我「北京天气」或「我的世界最新版本」,看看工具调用是什么样子。",
    "en": "This is the built-in demo model (UPSTREAM_ENDPOINT is not set). You said: “{text}”. "
    "Ask me for the weather in Paris or the latest version of Minecraft to see a tool call.",
}
AFTER_TOOL = {
    "zh": "{result}(由内置的演示模型回答)",
    "en": "{result} (answered by the built-in demo model)",
}


class DemoModel:
    """Answers from rules. Asks for a tool when it is offered and the words call for it."""

    name = "demo"
    is_demo = True

    async def complete(self, request: LLMRequest) -> LLMResponse:
        last = request.messages[-1]
        if last["role"] == "tool":
            results = [m["content"] for m in request.messages if m["role"] == "tool"]
            return _say(AFTER_TOOL[_language(_question(request))].format(result=results[-1]))
        text = _question(request)
        call = _wanted_call(text, {definition["name"] for definition in request.tools})
        return _call(*call) if call else _say(ABOUT[_language(text)].format(text=text))

    async def close(self) -> None:
        """Nothing is held."""


def _question(request: LLMRequest) -> str:
    content = next((m["content"] for m in reversed(request.messages) if m["role"] == "user"), "")
    words, _, _ = strip_frame(content_text(content)).partition("\n⟦")  # fences stand behind them
    return words.strip()[:READ_CHARS]


def _language(text: str) -> str:
    return "zh" if HAN.search(PLACEHOLDER.sub("", text)) or not text else "en"


def _wanted_call(text: str, offered: set[str]) -> tuple[str, dict[str, str]] | None:
    for argument, pattern in PATTERNS:
        match = pattern.search(text)
        if match and TOOL_NAMES[argument] in offered and (value := match[1].strip(" .?!,")):
            return TOOL_NAMES[argument], {argument: value}
    return None


def _say(text: str) -> LLMResponse:
    message = {"role": "assistant", "content": text}
    return LLMResponse(text, (), message, message, finish_reason="stop")


def _call(name: str, arguments: dict[str, str]) -> LLMResponse:
    raw = json.dumps(arguments, ensure_ascii=False)
    call: dict[str, Any] = {
        "id": f"call_demo_{name}",
        "type": "function",
        "function": {"name": name, "arguments": raw},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return LLMResponse(
        "", (ToolCallRequest(call["id"], name, raw),), message, message, finish_reason="tool_calls"
    )

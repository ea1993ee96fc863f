"""The model of a day that two commits play: what it answers depends on the request alone.

A message says with ``#word`` what the model is to do, and carries a mark, ``‹chat-number›``, by
which the requests that it causes are told from those of other chats.
"""

import hashlib
import re
from typing import Any

from tests.scripted_model import Answer, Call, Request, calls, fails, returns, says, text_of

MARK = re.compile(r"‹([a-z]+\d+)-(\d+)›")
_ORDER = re.compile(r"#([a-z]+)")
LONG = "从前有一座山，山上有一座庙，庙里有一个机器人。它每天都在读书，也每天都在写信。\n\n" * 12
TABLE = (
    "两者的比较：\n\n| 语言 | 类型 |\n| --- | --- |\n| Python | 动态 |\n| Go | 静态 |\n\n"
    "**都不错**，见 [文档](https://example.org/a_b)。\n\n```python\nprint(1)\n```"
)
#: What each order means: the answers of one step after the other; the last one is the final text.
PLANS: dict[str, list[list[tuple[str, dict[str, Any]]]]] = {
    "weather": [[("get_weather", {"city": "北京"})]],
    "two": [[("get_weather", {"city": "上海"}), ("get_weather", {"city": "广州"})]],
    "badargs": [[("get_weather", {})], [("get_weather", {"city": "  ", "colour": 7})]],
    "unknown": [[("no_such_tool", {"a": 1})]],
    "game": [[("get_game_version", {"game": "围棋"})]],
    "coder": [[("use_subagent", {"subagent_name": "Coder", "content": "写一个循环 {mark}"})]],
    "nobody": [[("use_subagent", {"subagent_name": "Nobody", "content": "{mark}"})]],
    "poet": [[("poet", {"content": "写一首诗 {mark}", "task": "写一首诗 {mark}"})]],
    "history": [[("fetch_history", {"num": 5})], [("fetch_history", {"num": 3, "before": "x"})]],
    "remember": [[("remember", {"text": "喜欢喝茶 {mark}", "tags": ["茶"]})]],
    "rechat": [[("remember", {"text": "本群周五聚会 {mark}", "about": "chat"})]],
    "recall": [[("query_memory", {"query": "喝茶 聚会"})], [("query_memory", {"mode": "time"})]],
    "profile": [[("query_person_profile", {"person_name": "21001"})]],
    "forget": [[("forget", {"note_id": 1})]],
    "search": [[("tool_search", {"query": "价格"})], [("shop_price", {"item": "苹果"})]],
    "price": [[("shop_price", {"item": "梨"})]],
    "emoji": [[("send_emoji", {"words": "开心"})]],
    "finish": [[("finish", {})]],
    "silent": [[("stay_silent", {})]],
    "noaction": [[("no_action", {})]],
    "image": [[("send_image", {"msg_id": "{message}"})]],
    "open": [[("view_complex_message", {"msg_id": "{message}"})]],
    "reply": [[("reply", {"msg_id": "{message}", "text": "好的", "set_quote": True})]],
    "written": [[("reply", {"msg_id": "{message}", "reply_reference": "同意 {mark}"})]],
    "wait": [[("wait", {"seconds": 0.1})]],
    "send": [
        [
            (
                "send_message",
                {
                    "messages": [
                        {"type": "mention_user", "mention_user_id": "21002"},
                        {"type": "plain", "text": "先说一句 {mark}"},
                        {"type": "quote", "message_id": "{message}"},
                    ]
                },
            )
        ]
    ],
    "elsewhere": [
        [
            (
                "send_message",
                {"messages": [{"type": "plain", "text": "hi"}], "session": "onebot:group:1"},
            )
        ]
    ],
    "many": [[("get_weather", {"city": str(n)})] for n in range(8)],
}
SAYINGS = {"long": LONG, "table": TABLE, "empty": "", "thoughts": "<think>嗯</think>想好了"}


def find_mark(text: str) -> str:
    """The last mark in ``text``, as ``chat-number``; "" without one."""
    found = MARK.findall(text)
    return "-".join(found[-1]) if found else ""


def decide(request: Request) -> Answer:
    if request.model == "scripted-vision":
        digest = hashlib.sha256(repr(request.body).encode()).hexdigest()[:8]
        return says(f"一张图片 {digest}")
    index = _last_user(request.messages)
    asked = text_of(request.messages[index]) if request.messages else ""
    mark = find_mark(asked)
    names = set(request.tool_names)
    if "continue" in names and "get_weather" not in names:
        return _gate(asked, mark)
    orders = _ORDER.findall(asked)
    order = orders[-1] if orders else ""
    if order == "refused":
        return fails(400, message=f"refused {mark}")
    if order == "spend":
        return _spent(f"花了很多 {mark}", 6_000_000)
    step = sum(one["role"] == "assistant" for one in request.messages[index + 1 :])
    plan = PLANS.get(order, []) if names else []
    if step < len(plan):
        return _calling(plan[step], mark, asked, step)
    return _spent(f"{SAYINGS.get(order, '回答')} {mark} {step}".strip(), 1_000)


def _last_user(messages: list[dict[str, Any]]) -> int:
    found = [index for index, one in enumerate(messages) if one["role"] == "user"]
    return found[-1] if found else 0


def _gate(asked: str, mark: str) -> Answer:
    chosen = "no_action" if "#noaction" in asked else "continue"
    return calls(Call(chosen, {}, id=f"gate_{mark}"))


def _calling(step: list[tuple[str, dict[str, Any]]], mark: str, asked: str, number: int) -> Answer:
    message = re.search(r'"message_id": ?"([^"]+)"', asked)
    values = {"{mark}": f"‹{mark}›" if mark else "", "{message}": message[1] if message else "0"}
    wanted = [
        Call(name, _filled(arguments, values), id=f"call_{mark}_{number}_{index}")
        for index, (name, arguments) in enumerate(step)
    ]
    return calls(*wanted, content=f"我来看看 {mark}" if number == 0 else None)


def _filled(value: Any, values: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(one, values) for name, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, values) for one in value]
    if isinstance(value, str):
        for name, word in values.items():
            value = value.replace(name, word)
    return value


def _spent(text: str, tokens: int) -> Answer:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": tokens, "completion_tokens": 10, "total_tokens": tokens + 10}
    return returns(
        {
            "id": "chatcmpl-day",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        }
    )

"""What plugins are served with in the chat of a call: its voice, its history, and the model."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agent.builtin_tools.chat_tools import describe_message, fit_messages_on_page
from agent.builtin_tools.send_message import CONFIRMED, delivery_result, send_parts
from agent.domain.types import MessagePart
from agent.llm.requests.base import LLMClient
from agent.llm.spending import spending_in
from agent.record.chats.chat_record import load_message_page
from agent.record.record import Record
from agent.run.message_sender import MessageSender
from agent.run.services import get_services
from agent.subagents.runner import SubagentRunner
from agent.subagents.subagent import Subagent
from tools.contract import ToolFailed
from tools.plugins.capabilities import CallInFlight
from tools.registry.registry import ToolRegistry

#: How long the model may take over one request of a plugin, tries included.
GENERATE_SECONDS = 120.0
PROMPT = "你在为一个插件处理文字。按照请求直接给出结果，不要寒暄，也不要解释。"
NO_CHAT = "这次调用不在任何会话中：不能发送消息，也没有聊天记录。"


class PluginServices:
    """:class:`tools.plugins.capabilities.ChatServices` on the record, the run's sender and
    ``model``.

    What the model is asked is a run of its own on record, inside the call that asked.
    """

    def __init__(
        self, record: Record, model: Callable[[], LLMClient], *, seconds: float = GENERATE_SECONDS
    ) -> None:
        self._record = record
        self._seconds = seconds
        self._runner = SubagentRunner(ToolRegistry(), record)
        self._agent = Subagent(
            name="plugin", description="", prompt=PROMPT, model=model, model_calls=1
        )

    async def send_text(self, call: CallInFlight, text: str) -> str:
        """Send ``text`` to the call's chat, under the call that it belongs to. When cancelled, what
        is known is on record.

        Raises :class:`tools.contract.ToolFailed` when it was surely not sent, and without a chat.
        """
        parts = [MessagePart("plain", text=text)]
        delivery = await send_parts(_sender(call), parts, text, call.invocation.call_pk)
        result = delivery_result(call.invocation.tool_name, delivery, CONFIRMED)
        if not result.success:
            raise ToolFailed(result.error_message)
        return result.content

    async def history(self, call: CallInFlight, number: int) -> list[dict[str, Any]]:
        """The newest ``number`` messages of the call's chat before the one that is answered, as
        ``fetch_history`` shows them.

        Oldest first; fewer where they are long. Raises :class:`tools.contract.ToolFailed` without a
        chat.
        """
        page = await self._record.submit(load_message_page, _sender(call).chat, number)
        return (
            [describe_message(said) for said in fit_messages_on_page(page.messages)] if page else []
        )

    async def generate(self, call: CallInFlight, prompt: str) -> str:
        """The model's answer to ``prompt``; it gets nothing from the chat, and has no tools.

        Raises :class:`tools.contract.ToolFailed` when there is none in time, and its run is on
        record as interrupted.
        """
        try:
            scope = get_services(call.context).spend_scope
            with spending_in(replace(scope, tool=call.invocation.tool_name)):
                async with asyncio.timeout(self._seconds):
                    return await self._runner.ask(
                        self._agent, prompt, call.invocation, call.context
                    )
        except TimeoutError as error:
            raise ToolFailed(f"模型在 {self._seconds:g} 秒内没有给出结果") from error

    async def close(self) -> None:
        """Close the model's client; a new one is made at the next call."""
        await self._runner.close()


def _sender(call: CallInFlight) -> MessageSender:
    sender = get_services(call.context).sender
    if sender is None or not call.invocation.call_pk:
        raise ToolFailed(NO_CHAT)
    return sender

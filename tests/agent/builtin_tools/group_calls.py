"""Calls of the tools that act in a chat, with a client by script."""

from types import SimpleNamespace
from typing import Any, cast

from agent.builtin_tools import group_tools
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.domain.client_actions import ActionOutcome
from agent.domain.types import ChatAddress
from agent.record.record import Record
from agent.run.services import RunServices
from tests.agent.acting import ScriptedClient
from tests.agent.talk import GROUP
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

UNSUPPORTED = ActionOutcome(is_unsupported=True, retcode=1404)
TIMEOUT = ActionOutcome(is_unknown=True, words="no answer within 10 s")


class KnowingClient(ScriptedClient):
    """A client that knows the actions that it was told to answer, and no others."""

    otherwise = UNSUPPORTED


def context(
    client: KnowingClient | None,
    chat: ChatAddress = GROUP,
    record: Record | None = None,
    session_pk: int = 0,
) -> ToolExecutionContext:
    """The run of a call in ``chat``."""
    sender = SimpleNamespace(
        chat=chat, session_pk=session_pk, journal=SimpleNamespace(record=record)
    )
    return ToolExecutionContext(
        session_id=chat.address,
        is_group_chat=chat.kind == "group",
        group_id=chat.peer_id if chat.kind == "group" else "",
        user_id="20001",
        services=RunServices(sender=cast("Any", sender), actions=client),
    )


async def call(
    client: KnowingClient | None,
    tool: str,
    chat: ChatAddress = GROUP,
    record: Record | None = None,
    session_pk: int = 0,
    downloads: Any = None,
    **arguments: Any,
) -> ToolExecutionResult:
    """Call a tool in ``chat`` as the run loop does, where its row is on everywhere."""
    tools = [*group_tools.TOOLS, group_tools.build_file_tool(downloads)]
    registry = ToolRegistry(lambda: {tool: ToolSettings(tool)})
    registry.register_provider(MaisakaBuiltinToolProvider(tools))
    where = context(client, chat, record, session_pk)
    return await registry.invoke(ToolInvocation(tool, arguments, call_pk=5), where)

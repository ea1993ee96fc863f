"""Tools with which the account acts in a chat, and what they share.

Each is a row that is switched off at first; :data:`agent.domain.group_acts.LEAST_ROLE` says with
which role of the account it is offered.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from agent.domain.client_actions import ACT_SECONDS, ActionOutcome
from agent.domain.group_acts import roles_for
from agent.run.services import get_sender, get_services
from tools.contract import OutcomeUnknown, ToolExecutionContext, ToolFailed
from tools.functions.function_tool import ToolOptions, tool
from tools.registry.catalogue import DefaultConfig

NO_CLIENT = "这里没有可以执行操作的客户端。"
UNSUPPORTED = "客户端不支持这项操作。"
UNKNOWN = "结果未知：客户端没有确认，操作可能已经执行。请勿重复，也不要说成已经完成。"
REFUSED = "客户端拒绝了：{words}"
#: Characters of a client's own words that a model reads.
WORDS = 200

UserId = Annotated[str, "QQ 号，只能是一个人", Field(min_length=1, max_length=64)]
MessageId = Annotated[str, "本会话中消息的 message_id", Field(min_length=1, max_length=64)]


def options(name: str, *, scope: str = "group", calls_per_day_chat: int = 0) -> ToolOptions:
    """What the declarations of all acts have in common."""
    row = DefaultConfig(enabled=False, visibility="deferred", scope=scope)
    return ToolOptions(
        name=name,
        lenient=True,
        needs_chat=True,
        own_roles=roles_for(name),
        default_config=row,
        on_timeout=UNKNOWN,
    )


async def perform(
    context: ToolExecutionContext,
    action: str,
    params: Mapping[str, object],
    instead: tuple[str, Mapping[str, object]] | None = None,
    seconds: float = ACT_SECONDS,
) -> Any:
    """What the client answers to ``action``. Raises :class:`ToolFailed` with one sentence, where it
    was not, or not surely, carried out."""
    actions = get_services(context).actions
    if actions is None:
        raise ToolFailed(NO_CLIENT)
    chat = get_sender(context).chat
    outcome = await actions.perform(chat, action, params, seconds, instead)
    if not outcome.is_success:
        raise (OutcomeUnknown if outcome.is_unknown else ToolFailed)(explain(outcome))
    return outcome.data


def explain(outcome: ActionOutcome) -> str:
    """Why an act did not succeed, for the model."""
    if outcome.is_unknown:
        return UNKNOWN
    if outcome.is_unsupported:
        return UNSUPPORTED
    return REFUSED.format(words=outcome.words[:WORDS] or f"retcode {outcome.retcode}")


@tool(**options("unmute_member"), description="解除本群一名成员的禁言。")
async def unmute_member(context: ToolExecutionContext, user_id: UserId) -> str:
    params = {"group_id": context.group_id, "user_id": user_id, "duration": 0}
    await perform(context, "set_group_ban", params)
    return f"已解除 {user_id} 的禁言。"


TOOLS = (unmute_member,)

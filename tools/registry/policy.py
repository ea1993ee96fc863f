"""Who may call which tool where, and how often: the one decision, made for every call.

It uses the tool, its row and the real sender of the message, never the arguments of the call: a
user or group that the model writes there changes nothing.
"""

import math
from dataclasses import dataclass

from tools.contract import ToolAvailabilityContext, ToolExecutionContext, ToolSpec
from tools.models.tool_config import AllowedCallers, ToolScope, ToolVisibility
from tools.refusals import DISABLED, GROUPS_ONLY, HIDDEN, PRIVATE_ONLY, RefusalReason, ToolRefusal
from tools.registry.settings import ToolSettings
from tools.token_bucket import Quota, TokenBuckets

GROUP_ADMIN_ROLES = ("owner", "admin")
# As plain text: to look a member up at its class takes longer than all else that is decided for a
# listing.
_HIDDEN, _ANYWHERE, _GROUP = ToolVisibility.HIDDEN.value, ToolScope.ALL.value, ToolScope.GROUP.value
_WHO = {
    AllowedCallers.OWNERS.value: "机器人的主人",
    AllowedCallers.PEOPLE.value: "指定的用户",
    AllowedCallers.GROUPS.value: "指定的群",
    AllowedCallers.GROUP_ADMINS.value: "群主和群管理员",
}


@dataclass(frozen=True, slots=True)
class CallPermit:
    """The call may be made; it counts against these quotas."""

    quotas: tuple[Quota, ...] = ()


def check_availability(
    spec: ToolSpec,
    settings: ToolSettings,
    chat: ToolAvailabilityContext | ToolExecutionContext | None,
) -> ToolRefusal | None:
    """Why the tool is not in the view of ``chat``; None where it is. Without a chat every scope
    fits."""
    if not (spec.enabled and settings.enabled):
        return DISABLED
    if settings.visibility == _HIDDEN:
        return HIDDEN
    if chat is None or settings.scope == _ANYWHERE:
        return None
    if settings.scope == _GROUP:
        return None if chat.is_group_chat is True else GROUPS_ONLY
    return None if chat.is_group_chat is False else PRIVATE_ONLY


def decide_call(
    spec: ToolSpec,
    settings: ToolSettings,
    context: ToolExecutionContext | None,
    rates: TokenBuckets,
) -> CallPermit | ToolRefusal:
    """Whether this tool may be called by the sender in ``context``; changes nothing.

    Without a context only what everyone may do is permitted.
    """
    if refusal := check_availability(spec, settings, context):
        return refusal
    if not _is_permitted(settings, context):
        who = _WHO.get(settings.allowed, "另一些人")
        return ToolRefusal(
            RefusalReason.NOT_PERMITTED,
            f"没有权限: 工具 {spec.name} 只有{who}可以使用。请如实告诉用户，不要重试。",
        )
    quotas = _quotas(spec.name, settings, context)
    if wait := rates.wait_seconds(*quotas):
        return ToolRefusal(
            RefusalReason.RATE_LIMITED,
            f"调用过于频繁: 工具 {spec.name} 请在 {math.ceil(wait)} 秒后再试。",
        )
    return CallPermit(quotas)


def _is_permitted(settings: ToolSettings, context: ToolExecutionContext | None) -> bool:
    if settings.allowed == AllowedCallers.EVERYONE:
        return True
    if context is None or not context.believes_sender:
        return False
    if context.is_owner:
        return True
    match settings.allowed:
        case AllowedCallers.PEOPLE:
            return _is_listed(settings, context.user_id, f"{context.platform}:{context.user_id}")
        case AllowedCallers.GROUPS:
            group = (context.group_id, f"{context.platform}:{context.group_id}", context.session_id)
            return context.is_group_chat is True and _is_listed(settings, *group)
        case AllowedCallers.GROUP_ADMINS:
            return _is_group_admin(context)
        case _:
            return False


def reachable_chats(settings: ToolSettings, context: ToolExecutionContext) -> frozenset[str]:
    """The other chats that the row lets the sender in ``context`` reach with the tool."""
    sender = context.user_id if context.believes_sender else ""
    return frozenset(
        chat.key for chat in settings.other_chats if chat.is_for(sender, is_owner=context.is_owner)
    )


def check_approval(name: str, context: ToolExecutionContext | None) -> ToolRefusal | None:
    """Why nobody can be asked about a call that needs approval; None where owners can."""
    if context is None or context.believes_sender:
        return None
    return ToolRefusal(
        RefusalReason.NOT_PERMITTED,
        f"没有权限: 工具 {name} 的这次调用需要批准，而这里没有人能批准。请如实告诉用户，不要重试。",
    )


def is_chat_manager(context: ToolExecutionContext) -> bool:
    """Whether the sender decides for the whole chat: as an owner of the bot, or an admin of the
    group."""
    return _is_group_admin(context) or context.is_owner


def _is_group_admin(context: ToolExecutionContext) -> bool:
    return (
        context.believes_sender
        and context.is_group_chat is True
        and context.sender_role in GROUP_ADMIN_ROLES
    )


def _is_listed(settings: ToolSettings, wanted: str, *spellings: str) -> bool:
    """Whether ``wanted`` is on the row's list under its own name or another spelling of it."""
    return bool(wanted) and not settings.allowed_ids.isdisjoint((wanted, *spellings))


def _quotas(
    name: str, settings: ToolSettings, context: ToolExecutionContext | None
) -> tuple[Quota, ...]:
    """The limits of the row. Calls without a sender or a chat count together."""
    if not (settings.calls_per_minute_person or settings.calls_per_minute_chat):
        return ()
    caller = context or ToolExecutionContext()
    limits = (
        (settings.calls_per_minute_person, "person", caller.user_id),
        (settings.calls_per_minute_chat, "chat", caller.session_id),
    )
    return tuple(
        Quota.per_minute(number, name, kind, caller.platform, who)
        for number, kind, who in limits
        if number
    )

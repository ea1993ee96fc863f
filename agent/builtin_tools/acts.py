"""Tools with which the account acts in a chat, and what they share.

Each is a row that is switched off at first; :data:`agent.domain.group_acts.LEAST_ROLE` says with
which role of the account it is offered. Before a call is made or asked about, it is looked at
against whom it is; again once it was approved.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Unpack

from pydantic import Field

from agent.domain.client_actions import (
    ACT_SECONDS,
    RANKS,
    ClientActions,
    GroupMember,
    GroupRole,
)
from agent.domain.errors import pick_sentence
from agent.domain.group_acts import (
    LEAST_ROLE,
    MOST_MINUTES,
    NO_CLIENT,
    UNKNOWN,
    Asker,
    Sentence,
    roles_for,
)
from agent.domain.types import ChatAddress
from agent.record.chats.chat_record import ReplyTarget, find_targets
from agent.record.chats.rests_on import find_basis
from agent.run.acting import NotActed, carry_out, check_person, find_own
from agent.run.services import get_sender, get_services
from tools.contract import (
    CallBasis,
    OutcomeUnknown,
    RecordedCall,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolFailed,
    ToolInvocation,
)
from tools.functions.function_tool import ToolOptions, tool
from tools.registry.catalogue import DefaultConfig

NO_MESSAGE: Sentence = (
    "本会话中没有这条消息，或者它已被撤回。",
    "There is no such message in this chat, or it was taken back already.",
)
OTHERS_WORDS: Sentence = (
    "私聊中只能撤回机器人自己的消息。",
    "In a private chat only the bot's own words can be taken back.",
)
#: The storage area of group files, which go-cqhttp requires.
FILES = 102
#: Characters of the message that an act rests on that a question shows.
QUOTED = 200

UserId = Annotated[str, "QQ 号，只能是一个人", Field(min_length=1, max_length=64)]
MessageId = Annotated[str, "本会话中消息的 message_id", Field(min_length=1, max_length=64)]


def options(
    name: str,
    /,
    *,
    scope: str = "group",
    calls_per_day_chat: int | None = None,
    **more: Unpack[ToolOptions],
) -> ToolOptions:
    """What the declarations of all acts have in common, and ``more``."""
    given = ToolOptions(
        name=name,
        lenient=True,
        needs_chat=True,
        own_roles=roles_for(name),
        default_config=DefaultConfig(
            enabled=False, visibility="deferred", scope=scope, calls_per_day_chat=calls_per_day_chat
        ),
        on_timeout=UNKNOWN[0],
    )
    return {**given, **more}


async def perform(
    context: ToolExecutionContext,
    action: str,
    params: Mapping[str, object],
    instead: tuple[str, Mapping[str, object]] | None = None,
    seconds: float = ACT_SECONDS,
) -> Any:
    """What the client answers to ``action``. Raises :class:`ToolFailed` with one sentence, where it
    was not carried out, :class:`OutcomeUnknown` where nobody can tell."""
    with _acting(context) as (actions, chat):
        return await carry_out(actions, chat, action, params, instead, seconds)


def say(context: ToolExecutionContext, sentence: Sentence) -> str:
    """``sentence`` in Chinese for the model, or in the language of who gave a command."""
    return pick_sentence(sentence, "", _language(context))


def _language(context: ToolExecutionContext) -> str:
    return str(context.metadata.get("language") or "zh-hans")


@contextmanager
def _acting(context: ToolExecutionContext) -> Iterator[tuple[ClientActions, ChatAddress]]:
    """What acts in the chat; what was not done is a failure of the tool, in its words."""
    if (actions := get_services(context).actions) is None:
        raise ToolFailed(say(context, NO_CLIENT))
    try:
        yield actions, get_sender(context).chat
    except NotActed as error:
        kind = OutcomeUnknown if error.sentence is UNKNOWN else ToolFailed
        raise kind(error.say(_language(context))) from error


# --- Against whom, and on what it rests --------------------------------------------------------


async def look_at_person(invocation: ToolInvocation, context: ToolExecutionContext) -> CallBasis:
    """Whether anybody may act on who is meant. Raises :class:`ToolFailed`. What a member of the
    group may not do there is asked about, where it is for him."""
    person, asker = str(invocation.arguments["user_id"]), _asker(context)
    if get_services(context).actions is not None:
        await _check_person(context, invocation.tool_name, person)
    is_own_card = invocation.tool_name == "set_member_card" and person == asker.user_id
    return await _rest(context, asks=not (asker.is_manager or is_own_card))


async def look_at_group(invocation: ToolInvocation, context: ToolExecutionContext) -> CallBasis:
    """Whether the account may do it; no path is taken for a file. Raises :class:`ToolFailed`."""
    if ".." in str(invocation.arguments.get("file_id")):
        raise ToolFailed(say(context, ("这不是文件的 file_id。", "That is not the id of a file.")))
    if get_services(context).actions is not None:
        await _check_role(context, LEAST_ROLE[invocation.tool_name])
    return await _rest(context)


async def look_at_message(invocation: ToolInvocation, context: ToolExecutionContext) -> CallBasis:
    """Whether a message of this chat may be taken back, or kept. Raises :class:`ToolFailed`. Taking
    back others' words is asked about."""
    if get_services(context).actions is None:
        return CallBasis()
    message_id = str(invocation.arguments["message_id"])
    message, asks = await find_message(context, message_id), True
    if invocation.tool_name == "set_essence":
        await _check_role(context, LEAST_ROLE["set_essence"])
        asks = not _asker(context).is_manager
    elif message.sender_id in ("", get_sender(context).chat.account):
        return CallBasis()
    elif not context.is_group_chat:
        raise ToolFailed(say(context, OTHERS_WORDS))
    else:
        await _check_person(context, "recall_message", message.sender_id)
    return _as_basis(context, message_id, message, asks=asks)


async def find_message(context: ToolExecutionContext, message_id: str) -> ReplyTarget:
    """A message of this chat that is still there. Raises :class:`ToolFailed`."""
    sender = get_sender(context)
    message = await sender.journal.record.submit(find_targets, sender.session_pk, message_id)
    if message is None or message.is_recalled:
        raise ToolFailed(say(context, NO_MESSAGE))
    return message


async def _check_person(context: ToolExecutionContext, act: str, person: str) -> GroupMember:
    """Who ``person`` is in the group. Raises :class:`ToolFailed` where ``act`` is not done to
    him."""
    with _acting(context) as (actions, chat):
        return await check_person(actions, chat, context.owners, _asker(context), act, person)


async def _check_role(context: ToolExecutionContext, least: GroupRole) -> None:
    """Raise :class:`ToolFailed` where the account is less than ``least`` in the group."""
    with _acting(context) as (actions, chat):
        await find_own(actions, chat, least)


def _asker(context: ToolExecutionContext) -> Asker:
    if not context.believes_sender:  # whoever writes there says who he is
        return Asker("")
    return Asker(context.user_id, RANKS.get(context.sender_role, 0), context.is_owner)


async def _rest(context: ToolExecutionContext, *, asks: bool = False) -> CallBasis:
    """The message that the call rests on: what the asker quotes, or else what he said."""
    if (sender := get_services(context).sender) is None:  # an operator tries it by hand
        return CallBasis(asks=asks)
    asked = str(context.metadata.get("message_id", ""))
    found = await sender.journal.record.submit(find_basis, sender.session_pk, asked)
    return _as_basis(context, *found, asks=asks) if found else CallBasis(asks=asks)


def _as_basis(
    context: ToolExecutionContext, message_id: str, message: ReplyTarget, *, asks: bool
) -> CallBasis:
    who = message.sender_id or get_sender(context).chat.account
    said_by = f"{message.sender_name} ({who})" if message.sender_name else who
    return CallBasis(asks, message_id, said_by, message.text[:QUOTED])


# --- The acts, and what takes them back --------------------------------------------------------


async def _act(context: ToolExecutionContext, action: str, done: Sentence, **params: object) -> str:
    """Have it done; ``done`` is said then."""
    await perform(context, action, params)
    return say(context, done)


async def _act_in_group(
    context: ToolExecutionContext, action: str, done: Sentence, **params: object
) -> str:
    return await _act(context, action, done, group_id=context.group_id, **params)


async def _rename(
    context: ToolExecutionContext, act: str, action: str, person: str, done: Sentence, **new: object
) -> ToolExecutionResult:
    """Have the card or title of ``person`` replaced; the one of before is noted for whoever takes
    it back."""
    member = await _check_person(context, act, person)
    text = await _act_in_group(context, action, done, user_id=person, **new)
    noted = {"before": member.title if act == "set_member_title" else member.card}
    return ToolExecutionResult(act, success=True, content=text, structured_content=noted)


async def take_back(call: RecordedCall, context: ToolExecutionContext) -> str:
    """Do what undoes an act that was done."""
    action, params = BACK[call.tool_name](call.arguments, call.structured_content or {})
    return await _act_in_group(context, action, ("", ""), **params)


BACK: Mapping[str, Callable[[dict[str, Any], dict[str, Any]], tuple[str, dict[str, Any]]]] = {
    "mute_member": lambda given, _: ("set_group_ban", {"user_id": given["user_id"], "duration": 0}),
    "mute_group": lambda given, _: ("set_group_whole_ban", {"enable": not given["on"]}),
    "set_essence": lambda given, _: (
        "delete_essence_msg" if given.get("on", True) else "set_essence_msg",
        {"message_id": given["message_id"]},
    ),
    "set_member_card": lambda given, noted: (
        "set_group_card",
        {"user_id": given["user_id"], "card": noted["before"]},
    ),
    "set_member_title": lambda given, noted: (
        "set_group_special_title",
        {"user_id": given["user_id"], "special_title": noted["before"], "duration": -1},
    ),
}
"""What undoes an act, by its arguments and what was noted of before."""


@tool(
    **options(
        "mute_member",
        description="把本群的一名成员禁言一段时间。先等主人或管理员批准。",
        calls_per_day_chat=20,
        look_ahead=look_at_person,
        requires_approval=True,
        undo=take_back,
    )
)
async def mute_member(
    context: ToolExecutionContext,
    user_id: UserId,
    minutes: Annotated[int, "分钟", Field(ge=1, le=MOST_MINUTES)],
) -> str:
    return await _act_in_group(
        context,
        "set_group_ban",
        (f"已将 {user_id} 禁言 {minutes} 分钟。", f"{user_id} is muted for {minutes} minutes."),
        user_id=user_id,
        duration=minutes * 60,
    )


@tool(**options("unmute_member", description="解除本群一名成员的禁言。", look_ahead=look_at_person))
async def unmute_member(context: ToolExecutionContext, user_id: UserId) -> str:
    done = (f"已解除 {user_id} 的禁言。", f"{user_id} may speak again.")
    return await _act_in_group(context, "set_group_ban", done, user_id=user_id, duration=0)


@tool(
    **options(
        "mute_group",
        description="打开或关闭本群的全员禁言。先等主人或管理员批准。",
        look_ahead=look_at_group,
        requires_approval=True,
        undo=take_back,
    )
)
async def mute_group(
    context: ToolExecutionContext, on: Annotated[bool, "true 打开，false 关闭"]
) -> str:
    done = (f"已{'打开' if on else '关闭'}全员禁言。", "Done.")
    return await _act_in_group(context, "set_group_whole_ban", done, enable=on)


@tool(
    **options(
        "kick_member",
        description="把一名成员移出本群。先等主人或管理员批准。",
        calls_per_day_chat=5,
        look_ahead=look_at_person,
        requires_approval=True,
    )
)
async def kick_member(
    context: ToolExecutionContext,
    user_id: UserId,
    reject_again: Annotated[bool, "是否不再接受他的加群申请"] = False,
) -> str:
    return await _act_in_group(
        context,
        "set_group_kick",
        (f"已将 {user_id} 移出本群。", f"{user_id} is removed from the group."),
        user_id=user_id,
        reject_add_request=reject_again,
    )


@tool(
    **options(
        "recall_message",
        description="撤回本会话中的一条消息：机器人自己的，或者（经批准）别人的。",
        scope="all",
        look_ahead=look_at_message,
    )
)
async def recall_message(context: ToolExecutionContext, message_id: MessageId) -> str:
    done = ("已撤回这条消息。", "The message is taken back.")
    return await _act(context, "delete_msg", done, message_id=message_id)


@tool(
    **options(
        "set_member_card",
        description="修改本群一名成员的群名片。",
        look_ahead=look_at_person,
        undo=take_back,
    )
)
async def set_member_card(
    context: ToolExecutionContext,
    user_id: UserId,
    card: Annotated[str, "新的群名片；空字符串为去掉名片", Field(max_length=60)],
) -> ToolExecutionResult:
    return await _rename(
        context,
        "set_member_card",
        "set_group_card",
        user_id,
        (f"已修改 {user_id} 的群名片。", f"The card of {user_id} is changed."),
        card=" ".join(card.split()),
    )


@tool(
    **options(
        "set_member_title",
        description="设置本群一名成员的专属头衔。先等主人或管理员批准。",
        look_ahead=look_at_person,
        requires_approval=True,
        undo=take_back,
    )
)
async def set_member_title(
    context: ToolExecutionContext,
    user_id: UserId,
    title: Annotated[str, "新的头衔；空字符串为去掉头衔", Field(max_length=18)],
) -> ToolExecutionResult:
    return await _rename(
        context,
        "set_member_title",
        "set_group_special_title",
        user_id,
        (f"已设置 {user_id} 的头衔。", f"The title of {user_id} is set."),
        special_title=" ".join(title.split()),
        duration=-1,
    )


@tool(
    **options(
        "set_essence",
        description="把本群的一条消息设为精华，或取消精华。",
        look_ahead=look_at_message,
        undo=take_back,
    )
)
async def set_essence(
    context: ToolExecutionContext,
    message_id: MessageId,
    on: Annotated[bool, "true 设为精华（默认），false 取消"] = True,
) -> str:
    action, verb = ("set_essence_msg", "设为") if on else ("delete_essence_msg", "取消")
    return await _act(context, action, (f"已{verb}精华。", "Done."), message_id=message_id)


@tool(
    **options(
        "announce",
        description="在本群发布群公告。先等主人或管理员批准。",
        look_ahead=look_at_group,
        requires_approval=True,
    )
)
async def announce(
    context: ToolExecutionContext,
    text: Annotated[str, "公告的内容", Field(min_length=1, max_length=1_000, pattern=r"\S")],
) -> str:
    done = ("群公告已发布。", "The announcement is made.")
    return await _act_in_group(context, "_send_group_notice", done, content=text)


@tool(
    **options(
        "delete_file",
        description="删除本群的一个群文件。先等主人或管理员批准。",
        look_ahead=look_at_group,
        requires_approval=True,
    )
)
async def delete_file(
    context: ToolExecutionContext,
    file_id: Annotated[str, "群文件的 file_id", Field(min_length=1, max_length=500)],
) -> str:
    done = ("已删除这个群文件。", "The file is deleted.")
    return await _act_in_group(context, "delete_group_file", done, file_id=file_id, busid=FILES)


TOOLS = (
    *(mute_member, unmute_member, mute_group, kick_member, recall_message, set_member_card),
    *(set_member_title, set_essence, announce, delete_file),
)

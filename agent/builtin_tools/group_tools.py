"""Tools that look at the group of a run: its members, itself and its files; and the light acts."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from django.conf import settings
from django.utils.translation import gettext
from pydantic import Field

from agent.builtin_tools.acts import (
    MessageId,
    UserId,
    find_message,
    options,
    perform,
    say,
)
from agent.builtin_tools.chat_tools import PAGE_LIMIT, fit_lines
from agent.builtin_tools.group_facts import (
    LONGEST_HANDLE,
    Line,
    file_line,
    file_name,
    folder_line,
    folder_rows,
    group_line,
    member_line,
    number,
    select_members,
    word,
)
from agent.domain.group_acts import IS_SELF, NOT_ONE_PERSON, PERSON
from agent.domain.types import ChatAddress, MediaRef, MediaUnavailable
from agent.media.document_reader import CUT, DocumentExtractor
from agent.media.downloads import DownloadAllowance, MediaDownloader
from agent.run.services import get_sender
from agent.run.tool_results import FENCED
from tools.contract import (
    OutcomeUnknown,
    RecordedCall,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolFailed,
)
from tools.error_boundary import LogLimit
from tools.functions.function_tool import FunctionTool, ToolOptions, tool
from tools.text.fences import FenceKind, fence_values, label_file

logger = logging.getLogger(__name__)
LogLimit(logger)

#: Time for a client to answer a question, and to list a large group, in seconds.
ASK_SECONDS, LIST_SECONDS = 7.0, 30.0
#: Members or files of one result.
LISTED = 50

NOT_GIVEN = "客户端没有给出这些资料。"
NO_ANSWER = "客户端没有及时回答，可以稍后再试。"

_Answer = TypeVar("_Answer", list[Any], dict[str, Any])
_Handle = Annotated[str, Field(min_length=1, max_length=LONGEST_HANDLE)]


def _question(name: str, description: str) -> ToolOptions:
    """What changes nothing."""
    return options(name, description=description, traits=("repeatable",), on_timeout=NO_ANSWER)


async def _ask(
    context: ToolExecutionContext,
    action: str,
    shape: type[_Answer],
    seconds: float = ASK_SECONDS,
    **params: object,
) -> _Answer:
    """What the client says of the group, in that ``shape``. Raises :class:`ToolFailed`."""
    if not context.is_group_chat:
        raise ToolFailed("这里是私聊，不是群。")
    params["group_id"] = context.group_id
    try:
        data = await perform(context, action, params, seconds=seconds)
    except OutcomeUnknown as error:
        raise ToolFailed(NO_ANSWER) from error
    if not isinstance(data, shape):
        raise ToolFailed(NOT_GIVEN)
    return data


def _person(context: ToolExecutionContext, user_id: str) -> str:
    """The one person that ``user_id`` is. Raises :class:`ToolFailed`."""
    if not PERSON.fullmatch(user_id := user_id.strip()):
        raise ToolFailed(say(context, NOT_ONE_PERSON))
    return user_id


def _told(name: str, lines: Sequence[Line], *words: str) -> ToolExecutionResult:
    """``lines``, which came from outside, and our own ``words`` after them."""
    fence = [fence_values(FenceKind.GROUP, lines)] if lines else []
    return ToolExecutionResult(
        name,
        success=True,
        content="\n".join(filter(None, [*fence, *words])),
        structured_content=list(lines),
        metadata={FENCED: True},
    )


def _fitted(rows: Sequence[Mapping[str, object]], line: Callable[..., Line]) -> list[Line]:
    return fit_lines(map(line, rows[:LISTED]), PAGE_LIMIT)


@tool(
    **_question(
        "list_members", "列出或查找本群成员：ID、群名片、昵称、身份、头衔。人多时请用 search 查找。"
    )
)
async def list_members(
    context: ToolExecutionContext,
    search: Annotated[str, "ID、名片或昵称中的一部分", Field(max_length=100)] = "",
    role: Annotated[
        Literal["owner", "admin", "member"] | None, "只列出群主、管理员或普通成员"
    ] = None,
) -> ToolExecutionResult:
    data = await _ask(context, "get_group_member_list", list, LIST_SECONDS)
    found = await asyncio.to_thread(select_members, data, search, role or "")
    lines = _fitted(found, member_line)
    left = len(found) - len(lines)
    more = f"还有 {left} 人没有列出，请用 search 查找。" if left else ""
    return _told("list_members", lines, f"共 {len(data)} 人，符合的有 {len(found)} 人。{more}")


@tool(**_question("get_member", "查看本群一名成员：身份、头衔、入群和发言时间、禁言。"))
async def get_member(context: ToolExecutionContext, user_id: UserId) -> ToolExecutionResult:
    person = _person(context, user_id)
    data = await _ask(context, "get_group_member_info", dict, user_id=person)
    if word(data, "user_id") not in ("", person):
        raise ToolFailed(NOT_GIVEN)
    return _told("get_member", [member_line({**data, "user_id": person}, is_whole=True)])


@tool(**_question("get_group", "查看本群的名称、人数和全员禁言。"))
async def get_group(context: ToolExecutionContext) -> ToolExecutionResult:
    data = await _ask(context, "get_group_info", dict)
    if word(data, "group_id") not in ("", context.group_id):
        raise ToolFailed(NOT_GIVEN)
    return _told("get_group", [group_line({**data, "group_id": context.group_id})])


@tool(**_question("list_files", "列出本群的文件和文件夹。"))
async def list_files(
    context: ToolExecutionContext,
    folder: Annotated[
        str, "文件夹，用列出的 folder；默认为根目录", Field(max_length=LONGEST_HANDLE)
    ] = "",
) -> ToolExecutionResult:
    data = (
        await _ask(context, "get_group_files_by_folder", dict, LIST_SECONDS, folder_id=folder)
        if folder
        else await _ask(context, "get_group_root_files", dict, LIST_SECONDS)
    )
    folders, files = folder_rows(data, "folders"), folder_rows(data, "files")
    lines = [*_fitted(folders, folder_line), *_fitted(files, file_line)]
    left = len(folders) + len(files) - len(lines)
    more = f"还有 {left} 项没有列出。" if left else ""
    return _told("list_files", lines, f"{len(folders)} 个文件夹，{len(files)} 个文件。{more}")


def build_file_tool(downloads: MediaDownloader | None) -> FunctionTool:
    """The tool that reads a file of a group by way of ``downloads``. Its address, which is as good
    as a key, is not told."""
    reader = DocumentExtractor()

    @tool(**_question("get_file", "查看本群的一个文件：名称、大小，以及能读出的文字的开头。"))
    async def get_file(
        context: ToolExecutionContext,
        file_id: Annotated[_Handle, "list_files 列出的 file_id"],
    ) -> ToolExecutionResult:
        known = await _find_file(context, file_id)
        shelf = {"busid": number(known, "busid")} if "busid" in known else {}
        ref = _file_ref(await _ask(context, "get_group_file_url", dict, file_id=file_id, **shelf))
        if ref is None or downloads is None:
            raise ToolFailed("客户端没有给出可以下载的文件。")
        line, name = file_line({**known, "file_id": file_id}), file_name(known)
        try:
            async with asyncio.timeout(settings.MEDIA_FETCH_SECONDS):
                words = await _read(downloads, reader, get_sender(context).chat, ref)
        except TimeoutError:
            return _told("get_file", [line], "文件没有在限定的时间内下载完。")
        except MediaUnavailable as error:
            return _told("get_file", [line], f"没有读到内容：{gettext(str(error))}")
        return _told("get_file", [line], label_file(words, name or "file").strip())

    return get_file


async def _find_file(context: ToolExecutionContext, file_id: str) -> Mapping[str, object]:
    """What the group's first folder says of a file; nothing where it is not there."""
    try:
        data = await _ask(context, "get_group_root_files", dict)
    except ToolFailed:
        return {}
    files = folder_rows(data, "files")
    return next((row for row in files if word(row, "file_id", "id") == file_id), {})


def _file_ref(answer: Mapping[str, object]) -> MediaRef | None:
    url = str(answer.get("url"))
    if url.startswith("base64://"):
        return MediaRef("file", data=url.removeprefix("base64://"))
    return MediaRef("file", url=url) if url.startswith(("http://", "https://")) else None


async def _read(
    downloads: MediaDownloader, reader: DocumentExtractor, chat: ChatAddress, ref: MediaRef
) -> str:
    """The beginning of the words in a file. Raises :class:`MediaUnavailable`."""
    allowance = DownloadAllowance(settings.MEDIA_FETCH_MIB * 2**20)
    try:
        kept = await downloads.get(chat, ref, allowance, lambda mime: True)
    except MediaUnavailable as error:
        logger.info("A file of %s was not downloaded: %s", chat.place, error)
        raise MediaUnavailable("文件没有下载成功，它可能太大，或已失效。") from error
    beginning = await reader.beginning(kept.path, settings.FILE_EXCERPT_CHARS)
    return beginning.text if beginning.is_whole else f"{beginning.text}{CUT}"


@tool(**options("poke", scope="all", description="戳一戳本群的一名成员，或私聊的对方。"))
async def poke(context: ToolExecutionContext, user_id: UserId) -> str:
    params, action = {"user_id": _other(context, user_id)}, "friend_poke"
    if context.is_group_chat:
        params, action = {"group_id": context.group_id, **params}, "group_poke"
    await perform(context, action, params, ("send_poke", params))
    return f"已戳 {params['user_id']}。"


@tool(**options("like", scope="all", description="给一个人的资料卡点赞。"))
async def like(
    context: ToolExecutionContext,
    user_id: UserId,
    times: Annotated[int, "几次，1 到 10", Field(ge=1, le=10)] = 1,
) -> str:
    person = _other(context, user_id)
    await perform(context, "send_like", {"user_id": person, "times": times})
    return f"已给 {person} 点赞 {times} 次。"


def _other(context: ToolExecutionContext, user_id: str) -> str:
    """Somebody else of the chat. Raises :class:`ToolFailed`."""
    chat, person = get_sender(context).chat, _person(context, user_id)
    if person == chat.account:
        raise ToolFailed(say(context, IS_SELF))
    if chat.kind == "private" and person != chat.peer_id:
        raise ToolFailed("私聊中只能对对方这样做。")
    return person


async def undo_react(call: RecordedCall, context: ToolExecutionContext) -> str:
    given = call.arguments
    await _mark(context, str(given["message_id"]), str(given["emoji"]), is_on=False)
    return ""


async def _mark(context: ToolExecutionContext, message_id: str, emoji: str, *, is_on: bool) -> None:
    """Have the account react, or no more: by Lagrange's action where the usual one is not known."""
    params = {"message_id": message_id, "emoji_id": emoji, "set": is_on}
    other = {"group_id": context.group_id, "message_id": message_id, "code": emoji, "is_add": is_on}
    instead = ("set_group_reaction", other) if context.group_id else None
    await perform(context, "set_msg_emoji_like", params, instead)


@tool(
    **options("react", scope="all", description="用一个表情回应本会话的一条消息。", undo=undo_react)
)
async def react(
    context: ToolExecutionContext,
    message_id: MessageId,
    emoji: Annotated[str, "表情的编号，例如 76 是赞", Field(pattern=r"^[0-9]{1,9}$")],
) -> str:
    await find_message(context, message_id)
    await _mark(context, message_id, emoji, is_on=True)
    return "已回应。"


TOOLS = (list_members, get_member, get_group, list_files, poke, like, react)

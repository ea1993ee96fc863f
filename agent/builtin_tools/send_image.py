"""``send_image``: a picture of this chat, or of an earlier tool result in it, sent again."""

import asyncio
from pathlib import Path
from typing import Annotated

from pydantic import Field

from agent.builtin_tools.send_message import delivery_result
from agent.domain.file_types import HEAD, sniff_mime_type
from agent.domain.types import MessagePart
from agent.media.chat_images import ChatImages
from agent.media.file_store import FileStore, StoredFile
from agent.media.picture_names import OF_MESSAGE, PictureName, parse_picture_name
from agent.run.services import get_sender
from agent.stickers.store import TYPES
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.errors import InvalidArguments, ToolFailed
from tools.functions.function_tool import FunctionTool, tool
from tools.registry.catalogue import DefaultConfig
from tools.text.fences import clean_name
from tools.text.storable import make_storable

ONE_OF_BOTH = "msg_id 和 media_index 必须给出一个，并且只能给出一个"
NO_NAME = (
    "media_index 不对：{name}。应为工具结果中的 tool_result:<call_id>:<序号>，"
    "或消息中的 message:<message_id>:<序号>"
)
NOT_SENDABLE = "这张图片的格式不能发送：{mime}"
SENT = "图片已发送"


def build_image_tool(gallery: ChatImages | None, files: FileStore) -> FunctionTool:
    """The tool over ``gallery``; without one it is never offered."""

    @tool(
        name="send_image",
        description="把一张图片再次发送到当前会话：本会话某条消息中的图片，或先前工具结果中的图片。"
        "msg_id 和 media_index 只能给出一个。",
        lenient=True,
        needs_chat=True,
        traits=("speaks",),
        is_on=lambda: gallery is not None,
        default_config=DefaultConfig(timeout_seconds=240),
        on_timeout="图片可能已送达，请勿重发",
    )
    async def send_image(
        context: ToolExecutionContext,
        invocation: ToolInvocation,
        msg_id: Annotated[
            str, "本会话中含有图片的消息的 message_id，发送其中第一张", Field(max_length=128)
        ] = "",
        media_index: Annotated[
            str,
            "图片的名字：某次工具调用的结果中第 n 项是 tool_result:<该次调用的 id>:<n>，"
            "某条消息中第 n 张是 message:<message_id>:<n>",
            Field(max_length=400),
        ] = "",
    ) -> ToolExecutionResult:
        name, sender = parse_picture_choice(msg_id, media_index), get_sender(context)
        if gallery is None:
            raise ToolFailed(ONE_OF_BOTH)
        kept = await gallery.find(sender.chat, name)
        path = await asyncio.to_thread(find_sendable_file, files, kept)
        part = MessagePart("image", path=str(path.resolve()))
        delivery = await sender.send([part], "[图片]", tool_call_pk=invocation.call_pk)
        return delivery_result("send_image", delivery, SENT)

    return send_image


def parse_picture_choice(msg_id: str, media_index: str) -> PictureName:
    """The picture that a call means. Raises :class:`InvalidArguments` for what cannot be meant."""
    msg_id, index = make_storable(msg_id).strip(), make_storable(media_index).strip()
    if bool(msg_id) == bool(index):
        raise InvalidArguments([ONE_OF_BOTH])
    name = PictureName(OF_MESSAGE, msg_id, (), 1) if msg_id else parse_picture_name(index)
    if name is None:
        raise InvalidArguments([NO_NAME.format(name=clean_name(index))])
    return name


def find_sendable_file(files: FileStore, kept: StoredFile) -> Path:
    """The copy, or the picture made from it for models if clients do not accept its format."""
    if kept.mime in TYPES:
        return kept.path
    shown = files.shown_path(kept.sha256)
    try:
        with shown.open("rb") as file:
            is_fit = sniff_mime_type(file.read(HEAD)) in TYPES
    except OSError:
        is_fit = False
    if not is_fit:
        raise ToolFailed(NOT_SENDABLE.format(mime=kept.mime or "unknown"))
    return shown

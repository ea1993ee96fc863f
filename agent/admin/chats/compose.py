"""Answering by hand as the bot, and sending again what could not be sent."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from django.core.files.uploadedfile import UploadedFile
from django.db.models import Q
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.translation import gettext

from agent.admin.chats.act_basics import Act, ActCall, ActDone, ActRefused
from agent.domain.answer_parts import split_answer
from agent.domain.file_types import HEAD, sniff_mime_type
from agent.domain.manners import MOST_PART_CHARS
from agent.domain.media_refs import MediaRef
from agent.domain.types import MessagePart
from agent.media.file_store import StoredFile
from agent.media.media_store import MediaRow, record_media
from agent.models import ChatSession, Message
from agent.models.message import BY_HAND
from agent.record.runs.replies import FORWARD
from agent.record.settings.manners import ONEBOT, load_manners_table
from agent.record.waiting.hand_messages import (
    GOING_ON,
    HandMessage,
    find_address,
    put_down,
    resend,
)
from agent.runtime import wiring
from agent.runtime.serving import get_serving
from agent.runtime.steering import Steering
from agent.stickers.store import LARGEST, TYPES
from tools.admin.record_pages import parse_row_number
from tools.text.storable import make_storable

State = Message.State

#: Characters that are written at a time; longer words are sent as several messages.
MOST_CHARS = 10_000
#: Pictures that are sent at a time, and their bytes together.
MOST_PICTURES, MOST_BYTES = 9, LARGEST
#: Messages of operators that may wait in one chat.
MOST_WAITING = 20
TOKEN_CHARS = 32
_TOKEN = re.compile(rf"[A-Za-z0-9]{{{TOKEN_CHARS}}}", re.ASCII)
#: No leading zero: clients read "0" as everyone.
_ID = re.compile(r"[1-9]\d{0,18}", re.ASCII)


class Written(NamedTuple):
    """What an operator has written, checked."""

    text: str
    quoted_id: str
    mention: str
    pictures: Sequence[bytes]


def new_token() -> str:
    """What tells one sending of the form from another: a double click sends once."""
    return get_random_string(TOKEN_CHARS)


def _answer(call: ActCall) -> ActDone:
    steering = _find_way(call.session)
    token = call.posted("token")
    if not _TOKEN.fullmatch(token):
        raise ActRefused(gettext("The form was not complete. Reload the page and try again."))
    _check_room(call.session)
    written = _read(call)
    pictures = [_keep(content) for content in written.pictures]
    messages = _build_messages(call.session, written, pictures, steering)
    rows = put_down(call.session, call.author, messages, token)
    if not rows:
        return ActDone(gettext("This was sent already, once."), place="compose")
    _show_pictures(rows[-1].pk, pictures)
    return _on_its_way(call.session, steering)


def _resend(call: ActCall) -> ActDone:
    steering, failed = _find_way(call.session), call.message
    if failed is None or failed.direction != Message.Direction.OUT:
        raise ActRefused(gettext("Only what the bot says can be sent again."))
    if failed.state not in (State.FAILED, State.UNKNOWN):
        raise ActRefused(gettext("This message was sent: there is nothing to send again."))
    if failed.state == State.UNKNOWN and call.posted("twice") != "yes":
        raise ActRefused(
            gettext("It may have arrived. Say that it may arrive twice, then it is sent again.")
        )
    if _may_go_out_again(failed):
        raise ActRefused(gettext("Its run is still going on, and may send it by itself."))
    if missing := _missing_file(failed.segments):
        text = gettext("The file %(name)s is not there any more: nothing was sent again.")
        raise ActRefused(text % {"name": missing})
    _check_room(call.session)
    if resend(failed, call.author) is None:
        raise ActRefused(gettext("It was sent again already. Look at the newer one."))
    return _on_its_way(call.session, steering)


def _may_go_out_again(failed: Message) -> bool:
    """Whether its own run may still say it: a model that was told that its message failed, or an
    answer whose merged forward was refused. A refused answer is only apologised for."""
    if failed.run is None or failed.author or failed.run.state not in GOING_ON:
        return False
    return failed.tool_call_id is not None or failed.part == FORWARD


def _find_way(session: ChatSession) -> Steering:
    """What sends from here. Refuses where nothing can."""
    if session.platform != ONEBOT:
        raise ActRefused(gettext("This is no chat of an account."))
    until = session.paused_until
    if session.pause_reason and (until is None or until > timezone.now()):
        text = gettext("The account cannot speak here: %(reason)s. Nothing was sent.")
        raise ActRefused(text % {"reason": session.get_pause_reason_display()})
    serving = get_serving()
    if serving is None or serving.steering is None:
        raise ActRefused(
            gettext("This process sends no messages. Open the page of the running server.")
        )
    return serving.steering


def _check_room(session: ChatSession) -> None:
    waiting = Message.objects.filter(BY_HAND | Q(resent_from__isnull=False), session=session)
    if waiting.filter(state=State.PENDING).count() >= MOST_WAITING:
        raise ActRefused(gettext("Too many messages wait to be sent here. Wait a moment."))


def _on_its_way(session: ChatSession, steering: Steering) -> ActDone:
    warning = ""
    if not steering.is_connected(find_address(session)):
        warning = gettext(
            "The account is not connected. It is sent if it connects within five minutes."
        )
    return ActDone("" if warning else gettext("On its way."), _send, "compose", warning)


def _send() -> None:
    if (serving := get_serving()) is not None:
        serving.steer(lambda steering: steering.send_by_hand())


def _read(call: ActCall) -> Written:
    text = make_storable(call.posted("text")).replace("\r\n", "\n").strip()
    pictures = _read_pictures(call.request.FILES.getlist("pictures"))
    if not text and not pictures:
        raise ActRefused(gettext("There is nothing to send: write something or add a picture."))
    if len(text) > MOST_CHARS:
        words = gettext("The text has %(count)s characters; at most %(limit)s are sent at a time.")
        raise ActRefused(words % {"count": f"{len(text):,}", "limit": f"{MOST_CHARS:,}"})
    mention = call.posted("mention").strip()
    if mention and not (_ID.fullmatch(mention) and call.session.kind == "group"):
        raise ActRefused(gettext("This person cannot be mentioned here."))
    return Written(text, _find_quoted(call), mention, pictures)


def _find_quoted(call: ActCall) -> str:
    """The client's id of the message that is quoted; "" for none."""
    pk = call.posted("quote")
    if not pk:
        return ""
    rows = Message.objects.filter(session=call.session, pk=parse_row_number(pk))
    found: str | None = rows.values_list("message_id", flat=True).first()
    if not found:
        raise ActRefused(gettext("This message cannot be quoted: the client gave it no id."))
    return found


def _read_pictures(files: "Sequence[UploadedFile[bytes]]") -> list[bytes]:
    if len(files) > MOST_PICTURES:
        text = gettext("At most %(count)s pictures are sent at a time.")
        raise ActRefused(text % {"count": MOST_PICTURES})
    if sum(file.size or 0 for file in files) > MOST_BYTES:
        text = gettext("The pictures are larger than %(limit)s together.")
        raise ActRefused(text % {"limit": filesizeformat(MOST_BYTES)})
    contents = [file.read() for file in files]
    if any(sniff_mime_type(content[:HEAD]) not in TYPES for content in contents):
        raise ActRefused(
            gettext("One of the files is no picture that can be sent: JPEG, PNG, GIF, WebP, BMP.")
        )
    return contents


def _keep(content: bytes) -> StoredFile:
    files = wiring.build_file_store()
    try:
        if files.has_room():
            return files.put(content)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ActRefused(
            gettext("The picture was not kept: %(reason)s") % {"reason": reason}
        ) from error
    raise ActRefused(gettext("The picture was not kept: the disk is almost full."))


def _build_messages(
    session: ChatSession,
    written: Written,
    pictures: Sequence[StoredFile],
    steering: Steering,
) -> list[HandMessage]:
    """The words in as many messages as there need to be, the pictures in the last one."""
    chat = find_address(session)
    room = min(load_manners_table().find(chat).part_chars, MOST_PART_CHARS)
    texts = split_answer(written.text, room - 1) or [""]
    messages = []
    for number, text in enumerate(texts):
        before, shown = [], []
        if number == 0 and written.quoted_id:
            before.append(MessagePart("quote", message_id=written.quoted_id))
        if number == 0 and written.mention:
            before.append(MessagePart("mention_user", mention_user_id=written.mention))
        if number == len(texts) - 1:
            shown = [MessagePart("image", path=str(file.path.resolve())) for file in pictures]
        lead = " " if text and before and before[-1].type == "mention_user" else ""
        words = [MessagePart("plain", text=lead + text)] if text else []
        said = text + "[图片]" * len(shown)
        messages.append(HandMessage(steering.compose([*before, *words, *shown]), said))
    return messages


def _show_pictures(message_pk: int, pictures: Sequence[StoredFile]) -> None:
    """Put down which copies a message shows, as for what people send."""
    rows = [MediaRow(MediaRef("image"), one.sha256, one.mime, one.size) for one in pictures]
    if rows:
        record_media([(message_pk, rows)])


def _missing_file(segments: Sequence[Any]) -> str:
    """The name of a file that a message shows and that is not on this machine any more."""
    for segment in segments:
        data = segment.get("data") if isinstance(segment, dict) else None
        file = str(data.get("file") or "") if isinstance(data, dict) else ""
        if file.startswith("file://") and not Path(file.removeprefix("file://")).is_file():
            return Path(file).name
    return ""


COMPOSE_ACTS = {"answer": Act(_answer), "resend": Act(_resend, on_message=True)}

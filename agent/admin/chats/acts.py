"""The acts on the page of a chat, each on record with its author."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import crypto, http, timezone
from django.utils.html import format_html
from django.utils.translation import gettext

from agent.admin.chats.act import (
    PERSON_ID,
    Act,
    ActCall,
    ActDone,
    ActRefused,
    may,
)
from agent.admin.chats.member_acts import MEMBER_ACTS
from agent.admin.chats.who_answers import (
    HOURS,
    STEERING_ACTS,
    find_only_owner,
    hours_in_words,
    list_spans,
)
from agent.domain import answer_parts, file_types, types
from agent.domain.manners import MOST_PART_CHARS
from agent.media import file_store, media_store
from agent.models import ChatSession, Message
from agent.models.message import BY_HAND
from agent.record.chats import members
from agent.record.chats.chat_record import find_address
from agent.record.runs.replies import FORWARD
from agent.record.settings.manners import ONEBOT, load_manners_table
from agent.record.waiting.hand_messages import GOING_ON, HandMessage, put_down, resend
from agent.runtime import wiring
from agent.runtime.serving import get_serving, steer
from agent.runtime.steering import Steering
from agent.stickers.store import LARGEST, TYPES
from tools.admin.record_pages import (
    Addresses,
    ModelAdmin,
    by_post,
    parse_row_number,
    require,
)
from tools.text import readable, storable

# Answering by hand as the bot, and sending again what could not be sent.

State = Message.State

#: Characters that are written at a time; longer words are sent as several messages.
MOST_CHARS = 10_000
#: Pictures that are sent at a time, and their bytes together.
MOST_PICTURES, MOST_BYTES = 9, LARGEST
#: Messages of operators that may wait in one chat.
MOST_WAITING = 20
TOKEN_CHARS = 32
_TOKEN = re.compile(rf"[A-Za-z0-9]{{{TOKEN_CHARS}}}", re.ASCII)


class Written(NamedTuple):
    """What an operator has written, checked."""

    text: str
    quoted_id: str
    mention: str
    pictures: Sequence[bytes]


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
        return ActDone(gettext("This was sent already, once."), anchor="compose")
    if pictures:  # as for what people send
        shown = [
            media_store.MediaRow(types.MediaRef("image"), one.sha256, one.mime, one.size)
            for one in pictures
        ]
        media_store.record_media([(rows[-1].pk, shown)])
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
    then = partial(steer, lambda serving: serving.send_by_hand())
    return ActDone("" if warning else gettext("On its way."), then, "compose", warning)


def _read(call: ActCall) -> Written:
    text = storable.make_storable(call.posted("text")).replace("\r\n", "\n").strip()
    pictures = _read_pictures(call.request.FILES.getlist("pictures"))
    if not text and not pictures:
        raise ActRefused(gettext("There is nothing to send: write something or add a picture."))
    if len(text) > MOST_CHARS:
        words = gettext("The text has %(count)s characters; at most %(limit)s are sent at a time.")
        raise ActRefused(words % {"count": f"{len(text):,}", "limit": f"{MOST_CHARS:,}"})
    mention = call.posted("mention").strip()
    if mention and not (PERSON_ID.fullmatch(mention) and call.session.kind == "group"):
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
    if any(
        file_types.sniff_mime_type(content[: file_types.HEAD]) not in TYPES for content in contents
    ):
        raise ActRefused(
            gettext("One of the files is no picture that can be sent: JPEG, PNG, GIF, WebP, BMP.")
        )
    return contents


def _keep(content: bytes) -> file_store.StoredFile:
    files = wiring.build_file_store()
    try:
        if files.has_room():
            return files.put(content)
    except OSError as error:
        raise ActRefused(
            gettext("The picture was not kept: %(reason)s")
            % {"reason": error.strerror or type(error).__name__}
        ) from error
    raise ActRefused(gettext("The picture was not kept: the disk is almost full."))


def _build_messages(
    session: ChatSession,
    written: Written,
    pictures: Sequence[file_store.StoredFile],
    steering: Steering,
) -> list[HandMessage]:
    """The words in as many messages as there need to be, the pictures in the last one."""
    room = min(load_manners_table().find(find_address(session)).part_chars, MOST_PART_CHARS)
    texts = answer_parts.split_answer(written.text, room - 1) or [""]
    messages = []
    for number, text in enumerate(texts):
        before, shown = [], []
        if number == 0 and written.quoted_id:
            before.append(types.MessagePart("quote", message_id=written.quoted_id))
        if number == 0 and written.mention:
            before.append(types.MessagePart("mention_user", mention_user_id=written.mention))
        if number == len(texts) - 1:
            shown = [types.MessagePart("image", path=str(file.path.resolve())) for file in pictures]
        lead = " " if text and before and before[-1].type == "mention_user" else ""
        words = [types.MessagePart("plain", text=lead + text)] if text else []
        said = text + "[图片]" * len(shown)
        messages.append(HandMessage(steering.compose([*before, *words, *shown]), said))
    return messages


def _missing_file(segments: Sequence[object]) -> str:
    """The name of a file that a message shows and that is not on this machine any more."""
    for segment in segments:
        data = segment.get("data") if isinstance(segment, dict) else None
        file = str(data.get("file") or "") if isinstance(data, dict) else ""
        if file.startswith("file://") and not Path(file.removeprefix("file://")).is_file():
            return Path(file).name
    return ""


COMPOSE_ACTS = {"answer": Act(_answer), "resend": Act(_resend, on_message=True)}


ACTS = {**STEERING_ACTS, **COMPOSE_ACTS, **MEMBER_ACTS}
#: People that can be chosen to be mentioned.
MOST_MEMBERS = 100
#: Characters that are shown of a quoted message.
QUOTED_CHARS = 120


class SessionActs(ModelAdmin):
    """The address of each act, for the pages of chats."""

    addresses: ClassVar[Addresses] = (
        ("act", "<int:pk>/act/<slug:name>/"),
        ("act", "<int:pk>/act/<slug:name>/<int:message_pk>/"),
    )

    @by_post
    def act_view(
        self, request: HttpRequest, pk: int, name: str, message_pk: int | None = None
    ) -> HttpResponse:
        """Do what is asked, if the reader may and reaches the chat; then back to the place on the
        page. An act that is refused changes nothing."""
        session = get_object_or_404(self.get_queryset(request), pk=parse_row_number(str(pk)))
        act = ACTS.get(name)
        if act is None or act.on_message != (message_pk is not None):
            raise Http404
        require(may(request, act))
        message = None
        if message_pk is not None:
            rows = Message.objects.filter(session=session).select_related("run", "session")
            message = get_object_or_404(rows, pk=message_pk)
        call = ActCall(request, session, message)
        try:
            with transaction.atomic():
                done = act.perform(call)
        except ActRefused as refusal:
            return self._back(call, ActDone("", refusal=str(refusal)))
        except ValidationError as error:
            return self._back(call, ActDone("", refusal=" ".join(error.messages)))
        except IntegrityError:  # the same form came twice at once
            return self._back(call, ActDone(gettext("This was done already, once.")))
        if done.then is not None:
            done = done.then() or done
        return self._back(call, done)

    def _back(self, call: ActCall, done: ActDone) -> HttpResponse:
        words = format_html("{} {}", done.words, _undo_button(call, done)) if done.words else ""
        told = (messages.SUCCESS, words), (messages.WARNING, done.warning)
        for level, text in (*told, (messages.ERROR, done.refusal)):
            if text:
                self.message_user(call.request, text, level)
        wanted = call.posted("next")
        if wanted and http.url_has_allowed_host_and_scheme(wanted, {call.request.get_host()}):
            return redirect(wanted)
        page = reverse("admin:agent_chatsession_change", args=(call.session.pk,))
        return redirect(f"{page}#{done.anchor}")


def _undo_button(call: ActCall, done: ActDone) -> str:
    """What takes an act back, beside the words that say it was done; "" where nothing does."""
    act = ACTS.get(done.undo)
    if act is None or not may(call.request, act):
        return ""
    address = reverse("admin:agent_chatsession_act", args=(call.session.pk, done.undo))
    button = '<button form="act-form" name="{}" value="{}" formaction="{}">{}</button>'
    return format_html(button, done.undo, done.before or "", address, gettext("Undo"))


def describe_acts(session: ChatSession, request: HttpRequest) -> dict[str, Any]:
    """For the page of a chat: what the reader may do there, and what he chooses among."""
    is_chat = session.platform == ONEBOT
    may_act = {
        name.replace("-", "_"): True
        for name, act in ACTS.items()
        if may(request, act) and (is_chat or name == "reset")
    }
    context: dict[str, Any] = {"may_act": may_act}
    if "take_over" in may_act:
        context["hours"] = [(hours, hours_in_words(hours)) for hours in HOURS]
    if "answer" in may_act or "only" in may_act:
        context["members"] = _list_members(session)
    if spans := list_spans(session, request):
        context |= {"spans": spans, "owner": find_only_owner(session.account)}
    if "answer" in may_act:
        context |= _describe_form(session, request)
    return context


def _describe_form(session: ChatSession, request: HttpRequest) -> dict[str, Any]:
    quote = parse_row_number(request.GET.get("quote", "")) or 0
    quoted = Message.objects.filter(session=session, pk=quote).first() if quote else None
    return {
        # what tells one sending of the form from another: a double click sends once
        "token": crypto.get_random_string(TOKEN_CHARS),
        "quoted": quoted,
        "quoted_words": readable.escape_invisible_chars(quoted.text[:QUOTED_CHARS])
        if quoted
        else "",
        "answer_chars": MOST_CHARS,
        "answer_pictures": MOST_PICTURES,
    }


def _list_members(session: ChatSession) -> list[tuple[str, str]]:
    """Ids and names of the people of a group who spoke lately."""
    if session.kind != ChatSession.Kind.GROUP:
        return []
    found = members.find_members(session.pk)
    names = {pk: readable.escape_invisible_chars(name) for name, pk in found.items() if name != pk}
    people = [(name, names.get(name, name)) for name, pk in found.items() if name == pk]
    return sorted(people, key=lambda one: one[1])[:MOST_MEMBERS]

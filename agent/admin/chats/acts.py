"""The acts on the page of a chat, each on record with its author."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import crypto, formats, http, timezone
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from agent.domain import answer_parts, file_types, states, types
from agent.domain.manners import MOST_PART_CHARS
from agent.media import file_store, media_store
from agent.models import ChatSession, Message, Run
from agent.models.message import BY_HAND
from agent.record.chats import chat_resets, members
from agent.record.chats.chat_record import find_address
from agent.record.runs.replies import FORWARD
from agent.record.settings import chat_choices, chat_manners, timed_silences
from agent.record.settings.manners import ONEBOT, load_manners_table
from agent.record.waiting import call_stops, operator_acts, pauses, stops, take_overs
from agent.record.waiting.hand_messages import GOING_ON, HandMessage, put_down, resend
from agent.runtime import wiring
from agent.runtime.serving import get_serving
from agent.runtime.steering import Steering
from agent.stickers.store import LARGEST, TYPES
from tools.admin.record_pages import (
    Addresses,
    ModelAdmin,
    author_of,
    by_post,
    parse_row_number,
    require,
)
from tools.local_time import begin_of_tomorrow
from tools.text import readable, storable

# What all acts in chats have in common: who may do what, and how they end.

SPEAK, CHANGE, MANNERS = (
    "agent.speak_in_chat",
    "agent.change_chatsession",
    "agent.change_manners",
)


class ActRefused(Exception):  # noqa: N818 - the word says what happened
    """An act that is not done, and why, in words for the one who asked: nothing was changed."""


@dataclass(frozen=True, slots=True)
class ActDone:
    """What was done, in words, and what the running server is still asked for. ``then`` is called
    once the act is committed."""

    words: str
    then: Callable[[], None] | None = None
    #: Where on the page the reader goes on.
    anchor: str = "acts"
    warning: str = ""
    #: Why nothing was done.
    refusal: str = ""
    #: The act that takes it back, "" where none does, and what that one is given.
    undo: str = ""
    before: int | None = None


@dataclass(frozen=True, slots=True)
class ActCall:
    """An act that somebody asks for: in a chat that he may reach, perhaps on one message of it."""

    request: HttpRequest
    session: ChatSession
    message: Message | None = None

    @property
    def author(self) -> User:
        return author_of(self.request)

    def posted(self, name: str) -> str:
        """A value of the form, "" where it is missing."""
        return self.request.POST.get(name, "")


@dataclass(frozen=True, slots=True)
class Act:
    """``perform`` runs in a transaction; ``permissions``: any of them is enough."""

    perform: Callable[[ActCall], ActDone]
    permissions: tuple[str, ...] = (SPEAK,)
    on_message: bool = False


def may(request: HttpRequest, act: Act) -> bool:
    return any(request.user.has_perm(permission) for permission in act.permissions)


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
#: No leading zero: clients read "0" as everyone.
_ID = re.compile(r"[1-9]\d{0,18}", re.ASCII)


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
    return ActDone("" if warning else gettext("On its way."), _send, "compose", warning)


def _send() -> None:
    if (serving := get_serving()) is not None:
        serving.steer(lambda steering: steering.send_by_hand())


def _read(call: ActCall) -> Written:
    text = storable.make_storable(call.posted("text")).replace("\r\n", "\n").strip()
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


def _missing_file(segments: Sequence[Any]) -> str:
    """The name of a file that a message shows and that is not on this machine any more."""
    for segment in segments:
        data = segment.get("data") if isinstance(segment, dict) else None
        file = str(data.get("file") or "") if isinstance(data, dict) else ""
        if file.startswith("file://") and not Path(file.removeprefix("file://")).is_file():
            return Path(file).name
    return ""


COMPOSE_ACTS = {"answer": Act(_answer), "resend": Act(_resend, on_message=True)}


# Acts that say who answers in a chat: take over, hand back, silence, reset, persona, cancel.

#: After how many hours a take-over ends by itself; 0 for never. The first is chosen already.
HOURS = (12, 1, 4, 24, 72, 0)


def _take_over(call: ActCall) -> ActDone:
    _only_onebot(call.session)
    hours = call.posted("hours")
    if hours not in {str(one) for one in HOURS}:
        raise ActRefused(gettext("Choose how long you take over."))
    end = timezone.now() + timedelta(hours=int(hours)) if int(hours) else None
    stopped = take_overs.take_over(call.session.pk, call.author, end)
    chat = find_address(call.session)
    words = gettext("You have taken over: what is said to the bot here is yours to answer.")
    if end is not None:
        at = formats.date_format(timezone.localtime(end), "DATETIME_FORMAT")
        words += " " + gettext("It ends by itself at %(time)s.") % {"time": at}
    return ActDone(
        words,
        partial(_let_go, chat, stopped, states.MessageReason.TAKEN_OVER),
        "compose",
        undo="hand-back",
    )


def _hand_back(call: ActCall) -> ActDone:
    if not take_overs.hand_back(call.session.pk, call.author):
        raise ActRefused(gettext("The bot answers here already: nobody has taken over."))
    return ActDone(gettext("The bot answers here again, from the next message on."))


def _silence(call: ActCall) -> ActDone:
    _only_onebot(call.session)
    timed_silences.silence_chat(find_address(call.session), None, call.author)
    operator_acts.record_act(states.ActKind.SILENCE, call.session.pk, call.author)
    return ActDone(gettext("Silenced this chat."), undo="speak")


def _speak(call: ActCall) -> ActDone:
    """Take the silence out of the row for this chat alone; those for others too stay."""
    _only_onebot(call.session)
    chat = find_address(call.session)
    own, words, undo = chat_manners.find_chat_manners(chat), "", ""
    if own is not None and own.is_silencing:
        # until it was taken back; one that ends by itself is not made anew
        undo = "silence" if own.silenced_until is None else ""
        timed_silences.end_silence(chat, call.author)
        operator_acts.record_act(states.ActKind.SPEAK, call.session.pk, call.author)
        words = gettext("Let this chat speak.")
    if still := load_manners_table().find(chat).find_silence(timezone.now()):
        text = gettext("It is still silenced by “%(name)s”, which is for other chats too.")
        return ActDone(words, warning=text % {"name": still}, undo=undo)
    return ActDone(words or gettext("This chat is not silenced."), undo=undo)


#: For how long nobody but one person is answered.
SPANS: dict[str, tuple[Any, timedelta | None]] = {
    "10": (_("10 minutes"), timedelta(minutes=10)),
    "60": (_("1 hour"), timedelta(hours=1)),
    "480": (_("8 hours"), timedelta(hours=8)),
    "tomorrow": (_("until tomorrow"), None),
}


def _answer_only(call: ActCall) -> ActDone:
    _only_onebot(call.session)
    person, span = call.posted("person").strip(), SPANS.get(call.posted("span"))
    if call.session.kind != ChatSession.Kind.GROUP:
        raise ActRefused(gettext("In a private chat there is nobody else to answer."))
    if span is None or not _ID.fullmatch(person):
        raise ActRefused(gettext("Choose who is answered, and for how long."))
    end = timezone.now() + span[1] if span[1] else begin_of_tomorrow()
    timed_silences.answer_only(find_address(call.session), person, end, call.author)
    operator_acts.record_act(
        states.ActKind.ONLY, call.session.pk, call.author, detail=f"{person} {end.isoformat()}"
    )
    words = gettext("Until %(time)s only %(person)s is answered here; others are heard.") % {
        "time": formats.date_format(timezone.localtime(end), "Y-m-d H:i"),
        "person": person,
    }
    return ActDone(words, undo="everybody")


def _answer_everybody(call: ActCall) -> ActDone:
    _only_onebot(call.session)
    chat = find_address(call.session)
    own = chat_manners.find_chat_manners(chat)
    if own is None or not own.only_person:
        raise ActRefused(gettext("No single person is chosen for this chat alone."))
    timed_silences.answer_everybody(chat, call.author)
    operator_acts.record_act(states.ActKind.EVERYBODY, call.session.pk, call.author)
    return ActDone(gettext("Others are answered here again, from the next message on."))


def _lift(call: ActCall) -> ActDone:
    if not pauses.lift_pause(find_address(call.session)):
        raise ActRefused(gettext("The account can speak here already."))
    operator_acts.record_act(states.ActKind.LIFT, call.session.pk, call.author)
    return ActDone(gettext("The account can speak here again, from the next message on."))


def _reset(call: ActCall) -> ActDone:
    newest = Message.objects.filter(session=call.session).order_by("-pk").first()
    if newest is None:
        raise ActRefused(gettext("Nothing was said here yet."))
    chat_resets.reset_context(call.session.pk, newest.pk)
    operator_acts.record_act(states.ActKind.RESET, call.session.pk, call.author, message=newest)
    return ActDone(gettext("The context is fresh: the model sees nothing of what was said before."))


def _choose_persona(call: ActCall) -> ActDone:
    _only_onebot(call.session)
    names, chosen = (
        {str(one.pk): one.name for one in chat_choices.list_personas()},
        call.posted("persona"),
    )
    if chosen and chosen not in names:
        raise ActRefused(gettext("This persona is not there any more, or is switched off."))
    before = chat_choices.find_chosen_persona(find_address(call.session))
    pk = int(chosen) if chosen else None
    chat_choices.choose_persona(find_address(call.session), pk, call.author)
    operator_acts.record_act(
        states.ActKind.PERSONA, call.session.pk, call.author, detail=names.get(chosen, "")
    )
    words = gettext("From the next message on, nobody is chosen for this chat alone.")
    if chosen:
        words = gettext("From the next message on, %(name)s answers here.")
        words %= {"name": names[chosen]}
    return ActDone(words, undo="persona" if before != pk else "", before=before)


def _choose_model(call: ActCall) -> ActDone:
    _only_onebot(call.session)
    names = {str(one.pk): one.name for one in chat_choices.list_chat_endpoints()}
    chosen, chat = call.posted("model"), find_address(call.session)
    if chosen and chosen not in names:
        raise ActRefused(gettext("This model is not there any more, or is switched off."))
    before, pk = chat_choices.find_chosen_endpoint(chat), int(chosen) if chosen else None
    if before != pk:
        chat_manners.change_chat_manners(chat, call.author, endpoint_id=pk)
        operator_acts.record_act(
            states.ActKind.MODEL, call.session.pk, call.author, detail=names.get(chosen, "")
        )
    words = gettext("From the next message on, no model is chosen for this chat alone.")
    if chosen:
        words = gettext("From the next message on, %(name)s is asked first here.")
        words %= {"name": names[chosen]}
    return ActDone(words, undo="model" if before != pk else "", before=before)


def _cancel(call: ActCall) -> ActDone:
    message = call.message
    if message is None or message.reason == states.MessageReason.COMMAND:
        raise ActRefused(gettext("This cannot be cancelled."))
    pk = message.merged_into_id or message.pk
    if not stops.stop_answer(pk, states.MessageReason.STOPPED).is_stopped:
        raise ActRefused(gettext("There is nothing to cancel: the answer has ended already."))
    run = Run.objects.filter(message=pk, parent=None).order_by("-pk").first()
    operator_acts.record_act(
        states.ActKind.CANCEL, call.session.pk, call.author, message=message, run=run
    )
    then = partial(_let_go, find_address(call.session), [pk], states.MessageReason.STOPPED)
    return ActDone(gettext("The answer was cancelled."), then, f"m{message.pk}")


def _stop_call(call: ActCall) -> ActDone:
    number = parse_row_number(call.posted("call"))
    stopped = call_stops.ask_to_stop(call.session.pk, number, call.author)
    if stopped is None:
        raise ActRefused(gettext("There is nothing to stop: the call is not under way any more."))
    words = gettext("%(tool)s is stopped; its run goes on. It may have had its effect.")
    return ActDone(words % {"tool": stopped.tool_name}, _stop_calls)


def _stop_calls() -> None:
    if (serving := get_serving()) is not None:
        serving.steer(lambda steering: steering.stop_calls())


def _let_go(chat: object, pks: list[int], reason: states.MessageReason) -> None:
    """Have the server of this process stop at once; others stop at their next step."""
    if pks and (serving := get_serving()) is not None:
        serving.steer(lambda steering: steering.let_go(chat, pks, reason))  # type: ignore[arg-type]


def _only_onebot(session: ChatSession) -> None:
    if session.platform != ONEBOT:
        raise ActRefused(gettext("This is no chat of an account."))


STEERING_ACTS = {
    "take-over": Act(_take_over),
    "hand-back": Act(_hand_back),
    "silence": Act(_silence, (MANNERS, SPEAK)),
    "speak": Act(_speak, (MANNERS, SPEAK)),
    "only": Act(_answer_only, (MANNERS, SPEAK)),
    "everybody": Act(_answer_everybody, (MANNERS, SPEAK)),
    "lift": Act(_lift, (CHANGE,)),
    "reset": Act(_reset, (CHANGE,)),
    "persona": Act(_choose_persona, (CHANGE,)),
    "model": Act(_choose_model, (MANNERS,)),
    "cancel": Act(_cancel, on_message=True),
    "stop-call": Act(_stop_call),
}


def hours_in_words(hours: int) -> str:
    if not hours:
        return gettext("until I hand back")
    return ngettext("for %(count)d hour", "for %(count)d hours", hours) % {"count": hours}


ACTS = {**STEERING_ACTS, **COMPOSE_ACTS}
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
            done.then()
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
        context |= {"spans": spans, "owner": _find_only_owner(session.account)}
    if "answer" in may_act:
        context |= _describe_form(session, request)
    return context


def list_spans(session: ChatSession, request: HttpRequest) -> list[tuple[str, Any]]:
    """For how long the reader may have only one person answered; none where he may not."""
    is_group = session.platform == ONEBOT and session.kind == ChatSession.Kind.GROUP
    if not is_group or not may(request, ACTS["only"]):
        return []
    return [(span, words) for span, (words, _time) in SPANS.items()]


def _find_only_owner(account: str) -> str:
    """Who owns ``account``; "" where nobody does, or several do."""
    serving = get_serving()
    owners = serving.steering.find_owners(account) if serving and serving.steering else ()
    return next(iter(owners)) if len(owners) == 1 else ""


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

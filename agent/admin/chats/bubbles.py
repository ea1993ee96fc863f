"""Messages as bubbles: their words and media, what they quote, and why they were answered or
not."""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q, TextField
from django.db.models.functions import Cast, Left
from django.utils.functional import cached_property
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.admin.chats.chat import BUBBLE_CHARACTERS, SEGMENT_CHARACTERS, load_message_runs
from agent.admin.chats.pictures import picture_address, render_picture
from agent.admin.chats.segments import Piece, plain_words, render_segments
from agent.admin.chats.thumbnails import MediaPreviews, load_media_previews
from agent.models import ChatSession, Message, MessageMedia, Run
from agent.pages.reasons import label_of, names_source, reason_words
from agent.record.chats.person_names import find_names
from tools.text.visible import escape_direction_chars

_SEGMENT_WORDS = {
    "dice": _("dice"),
    "rps": _("rock, paper, scissors"),
    "location": _("place"),
    "contact": _("contact"),
    "music": _("music"),
    "redbag": _("red packet"),
    "gift": _("gift"),
    "tts": _("read aloud"),
    "poke": _("poke"),
    "shake": _("shake"),
    "anonymous": _("anonymous"),
    "keyboard": _("buttons"),
    "longmsg": _("long message"),
    "json": _("card"),
    "xml": _("card"),
    "rich": _("card"),
    "miniapp": _("card"),
    "share": _("link"),
}


def segment_words(label: str) -> str:
    """What a type of segments is called; the type itself, where it has no name."""
    return str(_SEGMENT_WORDS.get(label, label))


Reason, State = Message.Reason, Message.State
#: Characters of the words of a quoted message.
QUOTE_CHARACTERS = 160
#: Messages that nobody said: the program tells the model or an owner.
OF_NOBODY = frozenset({Reason.LATER_RESULT, Reason.OWNER_NOTE})
_TONES = {
    State.RECORDED: "none",
    State.SILENT: "quiet",
    State.ANSWERED: "good",
    State.DELIVERED: "good",
    State.UNKNOWN: "doubt",
    State.EXPIRED: "bad",
    State.FAILED: "bad",
}
_SIGNS = {"none": "○", "quiet": "◌", "good": "✓", "doubt": "?", "bad": "!", "busy": "…"}

Shown = tuple[str, MessageMedia]
"""A medium, and its small picture where there is one."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A message that another one quotes; ``pk`` is 0 where it is not on record."""

    pk: int = 0
    name: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class ShownPiece:
    """A part of a message as the page draws it; of a medium with its small picture, or why there
    is none."""

    piece: Piece
    picture: str = ""
    kind: str = ""
    medium: MessageMedia | None = None


@dataclass
class Bubble:
    """One message as the page of its chat shows it."""

    message: Any
    pieces: list[Piece]
    runs: list[Run] = field(default_factory=list)
    previews: MediaPreviews | None = None
    quote: Quote | None = None
    is_doubtful: bool = False
    """Whether nobody knows if what it was answered with arrived."""
    known_name: str = ""
    """What the sender is called otherwise."""

    @property
    def side(self) -> str:
        """``bot``, ``person`` or ``nobody``."""
        if self.message.reason in OF_NOBODY:
            return "nobody"
        is_own = self.message.direction == "out" or self.message.reason == Reason.OWN_MESSAGE
        return "bot" if is_own else "person"

    @property
    def name(self) -> str:
        message = self.message
        return escape_direction_chars(message.sender_name or self.known_name or message.sender_id)

    @property
    def is_cut(self) -> bool:
        """Whether the record holds more than the bubble shows."""
        return (self.message.length or 0) > BUBBLE_CHARACTERS

    @property
    def tone(self) -> str:
        return "doubt" if self.is_doubtful else _TONES.get(self.message.state, "busy")

    @property
    def sign(self) -> str:
        return _SIGNS[self.tone]

    @cached_property
    def state_words(self) -> str:
        words = label_of(State, self.message.state)
        return gettext("answered, nobody knows whether it arrived") if self.is_doubtful else words

    @cached_property
    def why(self) -> str:
        """The reason in one line."""
        return reason_words(self.message, self.message.detail)

    @property
    def detail(self) -> str:
        """The sentence on record, where it is one."""
        return "" if names_source(self.message.reason) else self.message.detail

    @property
    def errors(self) -> list[str]:
        """What went wrong, each once: of the message and of its runs."""
        said = [self.detail] if self.tone in ("bad", "doubt") else []
        said += [run.error for run in self.runs]
        return list(dict.fromkeys(filter(None, said)))

    @property
    def media(self) -> list[Shown]:
        """What was downloaded of it, or of what it quotes and forwards."""
        return self.previews.media if self.previews else []

    @cached_property
    def parts(self) -> list[ShownPiece]:
        """Its pieces, each medium with what was downloaded of it, in order."""
        own = [shown for shown in self.media if shown[1].origin == MessageMedia.Origin.MESSAGE]
        return [self._part(piece, own) for piece in self.pieces]

    def _part(self, piece: Piece, own: list[Shown]) -> ShownPiece:
        if piece.kind != "media":
            return ShownPiece(piece, kind=segment_words(piece.label))
        kind = str(dict(MessageMedia.MediaKind.choices).get(piece.label, piece.label))
        found = next((shown for shown in own if shown[1].kind == piece.label), None)
        if found is not None:
            own.remove(found)
            return ShownPiece(piece, found[0], kind, found[1])
        if piece.label == "image" and self.message.direction == "out":
            address = picture_address(self.message.pk, piece.detail, piece.place)
            return ShownPiece(piece, render_picture(address, piece.text or kind), kind)
        return ShownPiece(piece, "", kind)

    @property
    def other_media(self) -> list[Shown]:
        """What else was downloaded, such as of the messages that it quotes and forwards."""
        drawn = [part.medium for part in self.parts if part.medium]
        return [shown for shown in self.media if shown[1] not in drawn]

    @property
    def mark(self) -> str:
        """Differs whenever the bubble is to be drawn anew."""
        message = self.message
        facts = (
            *(message.state, message.reason, message.detail, message.run_id, message.message_id),
            *(message.recalled_at, message.settled_at, message.merged_into_id, message.is_resent),
            *((run.pk, run.state) for run in self.runs),
            *((True,) if self.is_doubtful else ()),
            *(medium.pk for _picture, medium in self.media),
        )
        return f"{zlib.crc32(repr(facts).encode()):x}"


def load_bubbles(session: ChatSession, messages: Sequence[Message]) -> list[Bubble]:
    """The bubbles of ``messages``, which are of one chat. At most three queries."""
    names = _names(session, messages)
    runs = load_message_runs([one for one in messages if one.direction == "in"])
    previews = load_media_previews([one.pk for one in messages])
    quotes = _load_quotes(session, messages, names)
    doubtful = {
        one.run_id for one in messages if one.direction == "out" and one.state == State.UNKNOWN
    }
    return [
        Bubble(
            message,
            _pieces(message, names),
            runs.get(message.pk, []),
            previews.get(message.pk),
            quotes.get(message.quoted_id) or Quote() if message.quoted_id else None,
            message.state == State.ANSWERED
            and any(run.pk in doubtful for run in runs.get(message.pk, ())),
            names.get(message.sender_id, ""),
        )
        for message in messages
    ]


def _names(session: ChatSession, messages: Sequence[Message]) -> dict[str, str]:
    """What people are called, as far as these messages say."""
    names = {session.account: gettext("bot")}
    for message in messages:
        mentions = message.header.get("mentions") if isinstance(message.header, dict) else ()
        for told in mentions if isinstance(mentions, list) else ():
            if isinstance(told, dict) and told.get("name"):
                names[str(told.get("user_id"))] = str(told["name"])
        if message.sender_name:
            names[message.sender_id] = message.sender_name
    nameless = {one.sender_id for one in messages if one.direction == "in"} - set(names)
    return find_names(nameless, Q(session=session)) | names


def _pieces(message: Any, names: Mapping[str, str]) -> list[Piece]:
    """From the segments, or where those say nothing, or are too long, from the text."""
    pieces = render_segments(read_segments(message.recorded), names)
    return pieces or [Piece("text", escape_direction_chars(message.bubble or ""))]


def read_segments(recorded: str | None) -> object:
    """Segments from the beginning of their JSON; None where that is not all of it."""
    if not recorded or len(recorded) > SEGMENT_CHARACTERS:
        return None
    try:
        return json.loads(recorded)
    except ValueError:
        return None


def _load_quotes(
    session: ChatSession, messages: Iterable[Message], names: Mapping[str, str]
) -> dict[str, Quote]:
    """The quoted messages by the client's id; of one id the newest."""
    wanted = {message.quoted_id for message in messages if message.quoted_id}
    if not wanted:
        return {}
    rows: Any = Message.objects.filter(session=session, message_id__in=wanted).order_by("pk")
    columns = ("pk", "message_id", "direction", "sender_id", "sender_name", "words", "recorded")
    found = rows.annotate(
        words=Left("text", QUOTE_CHARACTERS),
        recorded=Left(Cast("segments", TextField()), SEGMENT_CHARACTERS + 1),
    ).values_list(*columns)
    quotes = {}
    for pk, message_id, direction, sender_id, sender_name, words, recorded in found:
        name = "" if direction == "out" else sender_name or sender_id
        said = plain_words(read_segments(recorded), names) or words
        quotes[message_id] = Quote(pk, escape_direction_chars(name), said[:QUOTE_CHARACTERS])
    return quotes

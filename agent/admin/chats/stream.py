"""What a chat's page shows from top to bottom, and the parts of it that the page fetches while it
is read: older ones, newer ones, and what has changed. They are found by id, never by counting."""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time
from typing import Any, ClassVar
from urllib.parse import quote

from django.db.models import Exists, OuterRef, Q, Subquery, TextField
from django.db.models.functions import Cast, Left, Length
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import striptags
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import dateparse, timezone
from django.utils.formats import date_format
from django.utils.functional import cached_property
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from agent.admin.chats import segments
from agent.admin.chats.lines import Line, draw_line, load_lines, people_of
from agent.admin.chats.messages import (
    MediaPreviews,
    load_media_previews,
    picture_address,
    render_picture,
)
from agent.domain.states import UNSAID
from agent.media.heard_words import cut_text
from agent.models import ChatSession, Message, MessageMedia, Run, UndoStep
from agent.pages.error_words import error_sentence
from agent.pages.reasons import names_source, reason_words
from agent.record.chats.person_names import find_names
from agent.record.settings.manners import ONEBOT
from tools.admin.record_pages import (
    Addresses,
    ModelAdmin,
    Rows,
    first_id_since,
    label_of,
    parse_row_number,
    require,
)
from tools.text.readable import escape_direction_chars, fill

#: Messages on one page.
CHAT_PAGE_SIZE = 50
#: Characters of a message that a bubble shows.
BUBBLE_CHARACTERS = 4_000


ChatPage = tuple[list[Message], int | None, int | None]
"""Messages from old to new, and the ids to continue from, older and newer; None at the ends."""


def load_chat_page(
    session: ChatSession,
    *,
    before: int | None = None,
    after: int | None = None,
    around: int | None = None,
) -> ChatPage:
    """The page that ends before id ``before``, or begins after id ``after``, or has id ``around``
    in its middle, or the newest one.

    A page at the new end is always the newest, so that it is full. At most three queries."""
    if around is not None:
        rows = Message.objects.filter(session=session, pk__lt=around).order_by("-pk")
        ids = list(rows.values_list("pk", flat=True)[: CHAT_PAGE_SIZE // 2])
        after = ids[-1] - 1 if ids else 0
    if after is not None:
        found = list(bubble_rows(session).filter(pk__gt=after).order_by("pk")[: CHAT_PAGE_SIZE + 1])
        if len(found) > CHAT_PAGE_SIZE:
            return found[:-1], found[0].pk, found[-2].pk
    elif before is not None:
        return _back(session, before)
    return _back(session, None)


def first_message_since(session: ChatSession, moment: datetime) -> int | None:
    """The id of the first message of ``session`` at ``moment`` or later; None where there is
    none. About 20 look-ups by id."""
    floor = first_id_since(Message, "created_at", moment)
    rows = Message.objects.filter(session=session, pk__gte=floor)
    return rows.order_by("pk").values_list("pk", flat=True).first()


def _back(session: ChatSession, before: int | None) -> ChatPage:
    rows = bubble_rows(session) if before is None else bubble_rows(session).filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: CHAT_PAGE_SIZE + 1])
    page = found[:CHAT_PAGE_SIZE][::-1]
    older = page[0].pk if len(found) > CHAT_PAGE_SIZE else None
    return page, older, page[-1].pk if before is not None and page else None


def bubble_rows(session: ChatSession) -> Rows:
    """The messages of a chat with what a bubble shows of them: of long values the beginning."""
    shown: Any = Message.objects.filter(session=session)
    rows: Rows = shown.annotate(
        bubble=Left("text", BUBBLE_CHARACTERS),
        length=Length("text"),
        recorded=Left(Cast("segments", TextField()), segments.SEGMENT_CHARACTERS + 1),
        is_resent=Exists(Message.objects.filter(resent_from=OuterRef("pk"))),
        undo_state=Subquery(UndoStep.objects.filter(message=OuterRef("pk")).values("state")),
        heard=Left("context_text", BUBBLE_CHARACTERS),
    ).only(
        *("session_id", "direction", "state", "reason", "detail", "sender_id", "sender_name"),
        *("sender_role", "message_id", "run_id", "created_at", "recalled_at", "settled_at"),
        *("quoted_id", "merged_into_id", "part", "header", "author", "resent_from_id"),
        "tool_call_id",
    )
    return rows


def load_message_runs(messages: list[Message]) -> dict[int, list[Run]]:
    """The runs made for each of ``messages``, by its id, oldest first, without those of agents
    inside. One query."""
    behind: dict[int, list[Run]] = {}
    runs = Run.objects.filter(message__in=[m.pk for m in messages]).order_by()
    found = runs.only("message_id", "parent_id", "state", "error")
    # Without an order, or a condition on the parent: either leads SQLite to walk through all runs.
    for run in sorted(found, key=lambda run: run.pk):
        if run.parent_id is None:
            behind.setdefault(run.message_id or 0, []).append(run)
    return behind


# Messages as bubbles: their words and media, what they quote, and why they were answered or not.

Reason, State = Message.Reason, Message.State
#: Characters of the words of a quoted message, and of a name.
QUOTE_CHARACTERS, NAME_CHARACTERS = 160, 100
#: Messages that nobody said: the program tells the model or an owner.
OF_NOBODY = frozenset({*UNSAID, Reason.OWNER_NOTE})
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

#: A bubble up to its words: key, side, tone, classes, mark, speaker, head. Its link to the panel:
#: key, when, state, why, the minute, a sign, and state and reason as they are shown.
_BEGIN = (
    '<li id="m{0}" class="said-by-{1} tone-{2}{3}" tabindex="-1" data-message="{0}" '
    'data-mark="{4}" data-speaker="{5}">\n<header>{6}</header>\n'
)
_WORDS = '<div class="words said" dir="auto">{}</div>'
_WHY = (
    '<a class="why" href="?around={0}&amp;panel=m{0}#panel" data-panel title="{1} · {2}{3}">'
    '<time datetime="{1}">{4}</time> <span class="sign" aria-hidden="true">{5}</span> {6}</a>'
)
_PERSON = '{}<strong><a{} title="{}"><bdi>{}</bdi></a></strong>{}'
_ROLES = {"owner": _("group owner"), "admin": _("group admin")}
#: What can be done with a message: the address of acts, its key, and words.
_QUOTE = '<a href="?quote={0}#compose" data-quote="{0}">{1}</a>\n'
_BUTTON = '<button class="link" form="act-form" formaction="{}{}/{}/">{}</button>\n'
_TWICE = (
    '<details class="twice"><summary>{2}</summary><p>{3}</p><button class="button" '
    'form="act-form" name="twice" value="yes" formaction="{0}resend/{1}/">{4}</button></details>\n'
)
UNKNOWN_QUOTE = {"pk": 0, "name": "", "words": ""}
#: A medium, and its small picture where there is one.
Shown = tuple[str, MessageMedia]


Reader = dict[str, str]
"""What is the same of all bubbles of a page: words, and addresses; "" for what one may not do."""


def page_reader(session: ChatSession, request: HttpRequest) -> Reader:
    page, may = reverse("admin:agent_chatsession_change", args=(session.pk,)), request.user.has_perm
    may_speak = session.platform == ONEBOT and may("agent.speak_in_chat")
    runs = reverse("admin:agent_run_changelist")
    return {
        "acts": f"{page.removesuffix('change/')}act/" if may_speak else "",
        "again": runs if may("agent.change_chatsession") else "",
        "runs": runs if may("agent.view_run") else "",
        "people": reverse("admin:people"),
        "bot": gettext("bot"),
        "quote": gettext("Quote"),
        "again_words": gettext("Ask again without sending"),
    }


@dataclass
class Bubble:
    """One message as the page of its chat shows it."""

    message: Any
    pieces: list[segments.Piece]
    runs: list[Run] = field(default_factory=list)
    previews: MediaPreviews | None = None
    #: A message that it quotes: ``pk`` (0 where it is not on record), ``name`` and ``words``.
    quote: dict[str, Any] | None = None
    #: Whether nobody knows if what it was answered with arrived.
    is_doubtful: bool = False
    known_name: str = ""
    classes: str = ""

    @cached_property
    def side(self) -> str:
        """``bot``, ``person`` or ``nobody``."""
        if self.message.reason in OF_NOBODY:
            return "nobody"
        is_own = self.message.direction == "out" or self.message.reason == Reason.OWN_MESSAGE
        return "bot" if is_own else "person"

    @property
    def speaker(self) -> str:
        """Equal of bubbles that one sender said."""
        return f"{self.side}:{self.message.sender_id}:{self.message.author or ''}"

    @property
    def name(self) -> str:
        message = self.message
        name = message.sender_name or self.known_name or message.sender_id
        return escape_direction_chars(cut_text(name, NAME_CHARACTERS))

    @property
    def is_cut(self) -> bool:
        """Whether the record holds more than the bubble shows."""
        return (self.message.length or 0) > BUBBLE_CHARACTERS

    @cached_property
    def tone(self) -> str:
        return "doubt" if self.is_doubtful else _TONES.get(self.message.state, "busy")

    @cached_property
    def state_words(self) -> str:
        words = label_of(State, self.message.state)
        return gettext("answered, nobody knows whether it arrived") if self.is_doubtful else words

    @cached_property
    def why(self) -> str:
        """The reason in one line, which may hold a link."""
        return reason_words(self.message, self.message.detail)

    @property
    def detail(self) -> str:
        """The sentence on record, where it is one."""
        return "" if names_source(self.message) else self.message.detail

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
    def parts(self) -> list[dict[str, Any]]:
        """Its pieces in order, as the page draws them: ``piece``, of its ``text`` the beginning,
        and ``kind``, what it is called; of a medium what was downloaded of it, ``picture`` and
        ``medium``."""
        own = [shown for shown in self.media if shown[1].origin == MessageMedia.Origin.MESSAGE]
        return [self._part(piece, own) for piece in self.pieces]

    def _part(self, piece: segments.Piece, own: list[Shown]) -> dict[str, Any]:
        if piece.kind != "media":
            text = piece.text[:BUBBLE_CHARACTERS]
            return {"piece": piece, "text": text, "kind": segments.segment_words(piece.label)}
        kind = str(dict(MessageMedia.MediaKind.choices).get(piece.label, piece.label))
        found = next((shown for shown in own if shown[1].kind == piece.label), None)
        if found is not None:
            own.remove(found)
            return {"piece": piece, "kind": kind, "picture": found[0], "medium": found[1]}
        if piece.label == "image" and self.message.direction == "out":
            address = picture_address(self.message.pk, piece.detail, piece.index)
            picture = render_picture(address, piece.text or kind)
            return {"piece": piece, "kind": kind, "picture": picture}
        return {"piece": piece, "kind": kind}

    @property
    def other_media(self) -> list[Shown]:
        """What else was downloaded, such as of the messages that it quotes and forwards."""
        drawn = [part.get("medium") for part in self.parts]
        return [shown for shown in self.media if shown[1] not in drawn]

    @cached_property
    def plain_text(self) -> str:
        """All that is to be shown of it but its head and foot, where that is words alone."""
        is_gone = self.message.recalled_at or self.message.undo_state
        is_more = is_gone or self.quote or self.previews or self.is_cut or self.errors
        if is_more or len(self.pieces) != 1 or self.pieces[0].kind != "text":
            return ""
        return self.pieces[0].text[:BUBBLE_CHARACTERS]

    def draw_begin(self, reader: Reader) -> SafeString:
        """Up to its words, and these, where there is nothing else."""
        classes = f"{self.classes} recalled" if self.message.recalled_at else self.classes
        facts = (self.side, self.tone, classes, self.mark, self.speaker, self._draw_head(reader))
        begin = fill(_BEGIN, self.message.pk, *facts)
        return begin + fill(_WORDS, self.plain_text) if self.plain_text else begin

    def _draw_head(self, reader: Reader) -> SafeString:
        message, words, before = self.message, "", ""
        if message.reason == Reason.OWNER_NOTE:
            words = gettext("a note to the owner")
        elif self.side == "nobody":
            before = fill("<span>{}</span>", gettext("on behalf of"))
        elif self.side == "bot" and message.author:
            words = gettext("%(author)s, as the bot") % {"author": message.author}
        elif self.side == "bot":
            by_hand = message.direction == "in"
            words = gettext("the bot’s account, by hand") if by_hand else reader["bot"]
        if words:
            return fill("<strong>{}</strong>", words)
        person, role = message.sender_id, _ROLES.get(message.sender_role, "")
        link = fill(' href="{}{}/" data-panel', reader["people"], quote(person, "/:@"))
        role = fill(' <span class="role">{}</span>', role) if role else ""
        return fill(_PERSON, before, link if person else "", person, self.name, role)

    def draw_end(self, reader: Reader, moment: str) -> SafeString:
        """What can be done with it, when it was said, what became of it and why."""
        acts = part = by_hand = ""
        if reader["acts"]:
            drawn = SafeString("".join(self._draw_acts(reader)))
            acts = fill('<span class="bubble-acts">\n{}</span>', drawn)
        if self.message.is_resent:
            by_hand = fill('<span class="by-hand">{}</span>', gettext("sent again"))
        if (number := self.message.part) is not None:
            words = gettext("part %(number)s") % {"number": number}
            part = fill("<span>{}</span>", words if number else gettext("as one merged forward"))
        why = self._draw_why(moment)
        return fill("<footer>{}\n{}{}\n{}</footer>\n</li>\n", by_hand, acts, part, why)

    def _draw_acts(self, reader: Reader) -> Iterator[str]:
        message, state, pk = self.message, self.message.state, SafeString(self.message.pk)
        if state not in (State.FAILED, State.PENDING) and self.side != "nobody":
            yield fill(_QUOTE, pk, reader["quote"])
        if message.direction == "out" and state == State.FAILED and not message.is_resent:
            yield fill(_BUTTON, reader["acts"], "resend", pk, gettext("Send again"))
        elif message.direction == "out" and state == State.UNKNOWN and not message.is_resent:
            warning = gettext("Nobody knows whether it arrived. If it did, it arrives twice.")
            words = gettext("Send again…"), warning, gettext("Send again all the same")
            yield fill(_TWICE, reader["acts"], pk, *words)
        elif message.direction == "in" and message.reason != Reason.COMMAND:
            if state in (State.WAITING, State.RUNNING):
                yield fill(_BUTTON, reader["acts"], "cancel", pk, gettext("Cancel the answer"))
            if message.run_id and reader["again"]:
                link = '<a href="{}{}/again/">{}</a>\n'
                yield fill(link, reader["again"], SafeString(message.run_id), reader["again_words"])

    def _draw_why(self, moment: str) -> SafeString:
        tone, words, why, detail = self.tone, self.state_words, striptags(self.why), self.detail
        shown = error_sentence(detail) if tone == "quiet" and detail else why
        reason = "" if tone == "good" else fill('<span class="reason">{}</span>', shown)
        form = '<span class="unseen">{}</span> {}' if tone == "good" else "<span>{}</span> {}"
        state = fill(form, words, reason) if tone != "none" or not why else reason
        link = fill(": {}", why) if why else ""
        sign, at = SafeString(_SIGNS[tone]), SafeString(moment)
        return fill(_WHY, self.message.pk, at, words, link, at[11:16], sign, state)

    @property
    def mark(self) -> str:
        """Differs whenever the bubble is to be drawn anew."""
        message = self.message
        facts = (
            *(message.state, message.reason, message.detail, message.run_id, message.message_id),
            *(message.recalled_at, message.settled_at, message.merged_into_id, message.is_resent),
            *((run.pk, run.state) for run in self.runs),
            *filter(None, (self.is_doubtful, message.undo_state)),
            *(medium.pk for _picture, medium in self.media),
        )
        return f"{zlib.crc32(repr(facts).encode()):x}"


def load_bubbles(
    session: ChatSession, messages: Sequence[Any], names: Mapping[str, str] | None = None
) -> list[Bubble]:
    """The bubbles of ``messages``, which are of one chat. At most three queries, and one for
    ``names`` that are not given."""
    names = _names(session, messages) if names is None else names
    runs = load_message_runs([one for one in messages if one.direction == "in"])
    previews = load_media_previews([one.pk for one in messages])
    quotes = _load_quotes(session, messages, names)
    doubtful = {
        one.run_id for one in messages if one.direction == "out" and one.state == State.UNKNOWN
    }
    return [
        Bubble(
            message,
            # from the segments, or where those say nothing, or are too long, from the text
            segments.render_segments(segments.read_segments(message.recorded), names)
            or [segments.Piece("text", escape_direction_chars(message.bubble or ""))],
            runs.get(message.pk, []),
            previews.get(message.pk),
            quotes.get(message.quoted_id, UNKNOWN_QUOTE) if message.quoted_id else None,
            message.state == State.ANSWERED
            and any(run.pk in doubtful for run in runs.get(message.pk, ())),
            names.get(message.sender_id, ""),
        )
        for message in messages
    ]


def _names(
    session: ChatSession, messages: Sequence[Message], others: Iterable[str] = ()
) -> dict[str, str]:
    """What people are called, as far as these messages say; ``others`` too."""
    names = {session.account: gettext("bot")}
    for message in messages:
        mentions = message.header.get("mentions") if isinstance(message.header, dict) else ()
        for told in mentions if isinstance(mentions, list) else ():
            if isinstance(told, dict) and told.get("name"):
                names[str(told.get("user_id"))] = str(told["name"])
        if message.sender_name:
            names[message.sender_id] = message.sender_name
    nameless = {one.sender_id for one in messages if one.direction == "in"}.union(others)
    return find_names(nameless.difference(names), Q(session=session)) | names


def _load_quotes(
    session: ChatSession, messages: Iterable[Message], names: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """The quoted messages by the client's id; of one id the newest."""
    wanted = {message.quoted_id for message in messages if message.quoted_id}
    if not wanted:
        return {}
    rows: Any = Message.objects.filter(session=session, message_id__in=wanted).order_by("pk")
    columns = ("pk", "message_id", "direction", "sender_id", "sender_name", "words", "recorded")
    found = rows.annotate(
        words=Left("text", QUOTE_CHARACTERS),
        recorded=Left(Cast("segments", TextField()), segments.SEGMENT_CHARACTERS + 1),
    ).values_list(*columns)
    quotes = {}
    for pk, message_id, direction, sender_id, sender_name, words, recorded in found:
        quotes[message_id] = {
            "pk": pk,
            "name": escape_direction_chars("" if direction == "out" else sender_name or sender_id),
            "words": (segments.plain_words(segments.read_segments(recorded), names) or words)[
                :QUOTE_CHARACTERS
            ],
        }
    return quotes


_DAY = '<li class="day" data-day="{}"><span>{}</span></li>\n'
#: Bubbles that a page asks about again; more are not looked at.
MOST_MARKS = 60
_MARK = re.compile(r"([1-9][0-9]{0,17})\.([0-9a-f]{1,8})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Stream:
    """One part of a chat from old to new; ``older`` and ``newer`` are the ids to continue from,
    None at the ends."""

    parts: list[tuple[SafeString, Bubble | None]]
    older: int | None = None
    newer: int | None = None


def load_stream(session: ChatSession, request: HttpRequest) -> Stream:
    """The part of ``session`` that the address asks for: ``before``, ``after`` or ``around`` an
    id, from a ``date`` on, or the newest."""
    before, after, around = (_id(request, name) for name in ("before", "after", "around"))
    if (day := _day(request)) and (first := first_message_since(session, day)):
        after = first - 1
    page = load_chat_page(session, before=before, after=after, around=around)
    return _with_lines(session, page, page_reader(session, request))


def load_news(session: ChatSession, request: HttpRequest) -> Stream:
    """What is new or has changed, by what the page has: its newest message (``after``), ``act``
    and ``event``, and bubbles with their ``marks``."""
    after = _id(request, "after") or 0
    marks = dict(_MARK.findall(request.GET.get("marks", "")))
    known = [int(pk) for pk in list(marks)[:MOST_MARKS]]
    rows = bubble_rows(session)
    changed = list(rows.filter(pk__in=known).order_by("pk"))
    new = list(rows.filter(pk__gt=after).order_by("pk")[: CHAT_PAGE_SIZE + 1])
    # what is older than what the page shows was left out of it, and is no news
    since = Q(at__gte=changed[0].created_at) if changed else Q()
    newer_than = (since & Q(pk__gt=_id(request, name) or 0) for name in ("act", "event"))
    lines = load_lines(session, *newer_than)
    shown, reader = changed + new[:CHAT_PAGE_SIZE], page_reader(session, request)
    newer = new[CHAT_PAGE_SIZE - 1].pk if len(new) > CHAT_PAGE_SIZE else None
    return Stream([*_merged(session, shown, lines, reader, marks)], newer=newer)


def _with_lines(session: ChatSession, page: ChatPage, reader: Reader) -> Stream:
    """The page with what was done and happened from its first message on, or from the beginning
    of the chat, up to the first message of the next page."""
    messages, older, newer = page
    since = Q(at__gte=messages[0].created_at) if older is not None else Q()
    if newer is not None:
        following = Message.objects.filter(session=session, pk__gt=newer).order_by("pk")
        end = following.values_list("created_at", flat=True).first()
        since &= Q(at__lt=end) if end else Q()
    lines = load_lines(session, since, since)
    return Stream([*_merged(session, messages, lines, reader)], older, newer)


def _merged(
    session: ChatSession,
    messages: Sequence[Any],
    lines: list[Line],
    reader: Reader,
    marks: Mapping[str, str] | None = None,
) -> Iterator[tuple[SafeString, Bubble | None]]:
    """Bubbles in the order of their ids, but those whose ``marks`` are known, and each line before
    the first one that is later."""
    names, merged = _names(session, messages, people_of(lines)), list[Bubble | Line]()
    for bubble in load_bubbles(session, messages, names):
        if marks and marks.get(str(bubble.message.pk)) == bubble.mark:
            continue
        while lines and lines[0].at < bubble.message.created_at:
            merged.append(lines.pop(0))
        merged.append(bubble)
    return _drawn([*merged, *lines], names, reader)


def _drawn(
    shown: Iterable[Bubble | Line], names: Mapping[str, str], reader: Reader
) -> Iterator[tuple[SafeString, Bubble | None]]:
    """All of ``shown``, and days; up to a bubble of which there is more to be drawn, and on."""
    drawn, day, speaker = list[str](), "", ""
    for one in shown:
        at = timezone.localtime(one.message.created_at if isinstance(one, Bubble) else one.at)
        moment, before = f"{at:%Y-%m-%d %H:%M:%S}", (day, speaker)
        if day != (day := moment[:10]):
            drawn.append(fill(_DAY, day, date_format(at, "DATE_FORMAT")))
        if not isinstance(one, Bubble):
            speaker = ""
            drawn.append(draw_line(one, at, names, reader["runs"]))
            continue
        speaker = one.speaker
        one.classes = " joined" if before == (day, speaker) else ""
        drawn.append(one.draw_begin(reader))
        if not one.plain_text:
            yield SafeString("".join(drawn)), one
            drawn = []
        drawn.append(one.draw_end(reader, moment))
    if drawn:
        yield SafeString("".join(drawn)), None


def _id(request: HttpRequest, name: str) -> int | None:
    return parse_row_number(request.GET.get(name, "")) or None


def _day(request: HttpRequest) -> datetime | None:
    """The beginning of the day in ``date``."""
    try:
        day = dateparse.parse_date(request.GET.get("date", ""))
        return timezone.make_aware(datetime.combine(day, time.min)) if day else None
    except (ValueError, OverflowError):
        return None


class SessionStream(ModelAdmin):
    """The addresses of the parts, for the pages of chats."""

    addresses: ClassVar[Addresses] = tuple(
        (name, f"<path:object_id>/{name}/") for name in ("stream", "news")
    )

    def stream_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """An older or a newer part."""
        session = self.readable_session(request, object_id)
        return self._part(request, session, load_stream(session, request))

    def news_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """What is new or has changed since the page was drawn."""
        session = self.readable_session(request, object_id)
        return self._part(request, session, load_news(session, request))

    def readable_session(self, request: HttpRequest, object_id: str) -> ChatSession:
        """The chat, for who may read it and its messages. Raises Http404 for one out of reach."""
        rows = self.get_queryset(request)
        session: ChatSession = get_object_or_404(rows, pk=parse_row_number(object_id))
        may_see = self.has_view_permission(request, session)
        require(may_see and request.user.has_perm("agent.view_message"))
        return session

    def _part(self, request: HttpRequest, session: ChatSession, stream: Stream) -> HttpResponse:
        context = {
            "original": session,
            "stream": stream,
            "has_change_permission": self.has_change_permission(request, session),
        }
        answer = TemplateResponse(request, "admin/agent/chatsession/stream.html", context)
        answer.headers["Cache-Control"] = "no-store"
        return answer

"""What operators did in a chat and what else happened there, as lines between its bubbles."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext, gettext_lazy as _

from agent.admin.chats.segments import face_words
from agent.domain.events import EventKind
from agent.domain.states import ActKind
from agent.media.heard_words import cut_text
from agent.models import ChatEvent, ChatSession, OperatorAct
from tools.admin.record_pages import label_of
from tools.text.readable import escape_direction_chars, escape_invisible_chars, fill

Line = OperatorAct | ChatEvent
#: Lines of each of the two kinds between the messages of one page.
MOST_LINES = 100
#: Characters of a name.
NAME_CHARACTERS = 100
#: An act: its key, kind, time, the same as it is shown, who did what, more about it, and its run.
_ACT = (
    '<li id="a{0}" class="act act-{1}" data-act="{0}"><time datetime="{2}">{3}</time> '
    "<bdi>{4}</bdi> <span>{5}</span>{6}{7}</li>\n"
)
#: An event: its key, kind, time, the same as it is shown, the client's time, and its words.
_EVENT = (
    '<li id="e{0}" class="act event event-{1}" data-event="{0}">'
    '<time datetime="{2}" title="{4}">{3}</time> <span>{5}</span></li>\n'
)
_PERSON = '<a href="{}{}/" data-panel><bdi>{}</bdi></a>{}'
_NUMBER = ' <span class="quiet">({})</span>'

K = EventKind
#: What happened, by kind and which way, "" for any other, "none" where nothing is named.
SENTENCES: dict[tuple[str, str], Any] = {
    (K.POKE, ""): _("{who} poked {target}"),
    (K.JOIN, ""): _("{who} joined"),
    (K.JOIN, "invite"): _("{who} joined by invitation"),
    (K.LEAVE, ""): _("{who} left"),
    (K.LEAVE, "kick"): _("{who} was removed from the group"),
    (K.LEAVE, "disband"): _("the group was disbanded"),
    (K.RECALL, ""): _("a message of {who} was taken back"),
    (K.MUTE, ""): _("{who} was muted"),
    (K.MUTE, "for"): _("{who} was muted for {time}"),
    (K.MUTE, "lift"): _("{who} may speak again"),
    (K.ADMIN, ""): _("the rights of {who} were changed"),
    (K.ADMIN, "set"): _("{who} became an administrator"),
    (K.ADMIN, "unset"): _("{who} is no administrator any more"),
    (K.TITLE, ""): _("{who} was given the title “{words}”"),
    (K.TITLE, "none"): _("{who} has no title any more"),
    (K.CARD, ""): _("{who} is called “{words}” here now"),
    (K.CARD, "none"): _("{who} has no card any more"),
    (K.UPLOAD, ""): _("{who} uploaded the file “{words}”"),
    (K.UPLOAD, "none"): _("{who} uploaded a file"),
    (K.ESSENCE, ""): _("a message of {who} was made an essence message"),
    (K.ESSENCE, "remove"): _("a message of {who} is no essence message any more"),
    (K.HONOR, ""): _("{who} was given an honour of the group"),
    (K.HONOR, "talkative"): _("{who} is the most talkative of the group"),
    (K.HONOR, "performer"): _("{who} keeps the group going"),
    (K.HONOR, "legend"): _("{who} has kept the group going for long"),
    (K.HONOR, "strong_newbie"): _("{who} is the group's rising newcomer"),
    (K.HONOR, "emotion"): _("{who} makes the group happy"),
    (K.HONOR, "lucky_king"): _("{who} had the luckiest red packet"),
    (K.REACTION, ""): _("{who} reacted to a message with {words}"),
    (K.REACTION, "remove"): _("{who} took the reaction {words} back"),
    (K.NAME, ""): _("the group is called “{words}” now"),
    (K.FRIEND, ""): _("{who} is a friend now"),
}


def load_lines(session: ChatSession, acts: Q, events: Q) -> list[Line]:
    """The newest of these lines of a chat, in order. Two queries."""
    done = OperatorAct.objects.filter(acts, session=session).order_by("-pk")[:MOST_LINES]
    happened = ChatEvent.objects.filter(events, session=session).order_by("-at", "-pk")
    lines: list[Line] = [*reversed(done), *reversed(happened[:MOST_LINES])]
    return sorted(lines, key=lambda line: line.at)


def people_of(lines: Iterable[Line]) -> set[str]:
    """The ids of those to whom something happened, and who did it."""
    events = [line for line in lines if isinstance(line, ChatEvent)]
    return {one for row in events for one in (row.user_id, row.target_id, row.operator_id) if one}


def draw_line(line: Line, at: datetime, names: Mapping[str, str], runs: str) -> SafeString:
    """``line``, which was recorded ``at``, with people as ``names`` call them; ``runs`` is the
    address of runs, "" for who may not see them."""
    if isinstance(line, OperatorAct):
        return _draw_act(line, at, runs)
    client = line.happened_at.astimezone(at.tzinfo) if line.happened_at else at
    times = at.isoformat(), f"{at:%H:%M:%S}", f"{client:%Y-%m-%d %H:%M:%S}"
    return fill(_EVENT, line.pk, line.kind, *times, event_words(line, names))


def _draw_act(act: OperatorAct, at: datetime, runs: str) -> SafeString:
    words = f"{at:%H:%M:%S}", act.author_name or gettext("the program"), label_of(ActKind, act.kind)
    detail = link = ""
    if act.detail:
        detail = fill(' <bdi class="quiet">{}</bdi>', cut_text(act.detail_words, 200))
    if act.run_id and runs:
        link = fill(' <a href="{0}{1}/change/">{2} #{1}</a>', runs, act.run_id, gettext("run"))
    return fill(_ACT, act.pk, act.kind, at.isoformat(), *words, detail, link)


def event_words(event: ChatEvent, names: Mapping[str, str]) -> SafeString:
    """What happened, to whom, and who did it."""
    who = gettext("everybody") if event.kind == K.MUTE else gettext("somebody")
    faces = event.words.split() if event.kind == K.REACTION else ()
    words = " ".join(map(face_words, faces)) or escape_invisible_chars(event.words)
    way = event.change or ("" if words else "none")
    if event.seconds and (event.kind, way) == (K.MUTE, "ban"):
        way = "for"
    sentence = SENTENCES.get((event.kind, way)) or SENTENCES[event.kind, ""]
    said = format_html(
        str(sentence),
        who=_person(event.user_id, names) or who,
        target=_person(event.target_id, names) or gettext("somebody"),
        time=_time(event.seconds or 0),
        words=format_html("<bdi>{}</bdi>", words or "–"),
    )
    if event.operator_id in ("", event.user_id):
        return said
    by = format_html(gettext("by {who}"), who=_person(event.operator_id, names))
    return format_html("{} · {}", said, by)


def _person(person_id: str, names: Mapping[str, str]) -> str:
    """As a link, by name and number; "" for nobody who is known."""
    if not person_id:
        return ""
    name = escape_direction_chars(cut_text(names.get(person_id, ""), NAME_CHARACTERS))
    address = reverse("admin:people"), quote(person_id, "/:@")
    number = fill(_NUMBER, person_id) if name else ""
    return fill(_PERSON, *address, name or person_id, number)


def _time(seconds: int) -> str:
    if seconds < 60:
        return f"{seconds} s"
    now = timezone.now()
    return timesince(now, now + timedelta(seconds=seconds))

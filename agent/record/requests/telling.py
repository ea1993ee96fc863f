"""What owners are told of requests in private, which requests their words are about, and what they
are told of their decision."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.utils import timezone, translation
from django.utils.translation import gettext

from agent.domain.errors import pick_sentence
from agent.domain.requests import (
    MOST_REASON,
    SHOWN,
    IncomingRequest,
    RequestKind,
    RequestReply,
    build_note,
    parse_request_reply,
)
from agent.domain.types import ChatAddress, IncomingMessage
from agent.models import JoinRequest, Message
from agent.record.chats.own_messages import quoted_own_messages
from agent.record.sums.owner_notes import tell_owners

State = JoinRequest.State
#: After each note of an hour the next one waits twice as long, in seconds at most so many: who asks
#: again and again can have no phone ring all day. What came meanwhile is told together.
LONGEST_PAUSE = 300
HOUR = timedelta(hours=1)

_OUTCOMES = {
    State.APPROVED: ("#{pk}：{who} 已批准。", "#{pk}: approved by {who}."),
    State.REFUSED: ("#{pk}：{who} 已拒绝。", "#{pk}: refused by {who}."),
    State.EXPIRED: ("#{pk}：已失效，没有处理。{why}", "#{pk}: over, nothing was done. {why}"),
    State.WAITING: ("#{pk}：仍在等待。{why}", "#{pk}: it still waits. {why}"),
}
_ON_ITS_WAY = ("#{pk}：正在告诉客户端。", "#{pk}: the client is being told.")
_TOO_LONG = (
    "理由最多 {most} 个字，没有处理。",
    "A reason has at most {most} characters: nothing was done.",
)


def tell_waiting(find_owners: Callable[[str], Collection[str]]) -> list[str]:
    """Put a note to the owners of each account on record, of the requests to it that nobody was
    told of; the accounts that have one."""
    untold = JoinRequest.objects.filter(state=State.WAITING, decision="", told_at=None)
    now, told = timezone.now(), list[str]()
    for account in untold.order_by().values_list("account", flat=True).distinct():
        owners, own = find_owners(account), untold.filter(account=account)
        if not owners or not _is_quiet(account, now):
            continue
        rows = list(own.order_by("pk")[:SHOWN])
        text = build_note({row.pk: _to_incoming(row) for row in rows}, own.count())
        numbers: dict[str, object] = {"requests": [row.pk for row in rows]}
        tell_owners(ChatAddress(account, "private", ""), owners, text, now, raw=numbers)
        own.update(told_at=now)
        told.append(account)
    return told


def _is_quiet(account: str, now: datetime) -> bool:
    """Whether the last notes are long enough ago for another one."""
    rows = JoinRequest.objects.filter(account=account, told_at__gt=now - HOUR)
    notes = list(rows.order_by("told_at").values_list("told_at", flat=True).distinct())
    pause = min(LONGEST_PAUSE, 2 ** len(notes))
    return not notes or not notes[-1] or now - notes[-1] >= timedelta(seconds=pause)


def _to_incoming(row: JoinRequest) -> IncomingRequest:
    kind = RequestKind(row.kind)
    return IncomingRequest(row.account, kind, row.user_id, row.group_id, row.comment, row.flag)


def read_request_reply(message: IncomingMessage, session_pk: int) -> RequestReply | None:
    """What ``message`` of an owner decides, where it is written like that: over the request that it
    names, else over those of the note that it quotes."""
    reply = parse_request_reply(message.text)
    if reply is None or not (reply.number or message.quoted_id):
        return None
    numbers = [reply.number] if reply.number else _quoted_requests(session_pk, message)
    rows = JoinRequest.objects.filter(account=message.chat.account, pk__in=numbers)
    found = list(rows.order_by("pk").values_list("pk", flat=True))
    return replace(reply, requests=tuple(found)) if found else None


def _quoted_requests(session_pk: int, message: IncomingMessage) -> Sequence[int]:
    """The numbers in the note that ``message`` quotes; none for any other quote."""
    sent = quoted_own_messages(session_pk, message)
    notes = sent.filter(run__message__reason=Message.Reason.OWNER_NOTE).order_by("-pk")
    raw = notes.values_list("run__message__raw", flat=True).first()
    return raw.get("requests", ()) if isinstance(raw, dict) else ()


def refuse_reply(reply: RequestReply, language: str) -> str:
    """Why nothing is done of what an owner said; "" where it can be obeyed."""
    is_long = len(reply.reason) > MOST_REASON
    return pick_sentence(_TOO_LONG, "", language).format(most=MOST_REASON) if is_long else ""


def describe(pks: Collection[int], language: str) -> str:
    """How requests stand after a decision, a line for each."""
    lines = list[str]()
    for row in JoinRequest.objects.filter(pk__in=pks).order_by("pk"):
        texts = _ON_ITS_WAY if row.decision else _OUTCOMES[State(row.state)]
        with translation.override(language):
            why = gettext(row.reason) if row.reason else ""
        words = {"pk": row.pk, "who": row.decided_by or "-", "why": why}
        lines.append(pick_sentence(texts, "", language).format(**words).strip())
    return "\n".join(lines)

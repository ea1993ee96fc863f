"""What owners are told of requests in private, which requests their words are about, and what they
are told of their decision.

Comments are anyone's words: each is one line of JSON, as in :mod:`agent.domain.approvals`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Count, Max
from django.utils import timezone, translation
from django.utils.translation import gettext

from agent.domain.approvals import show_value
from agent.domain.errors import pick_sentence
from agent.domain.requests import RequestKind, RequestReply, parse_request_reply
from agent.domain.types import ChatAddress, IncomingMessage
from agent.models import JoinRequest, Message
from agent.record.chats.own_messages import quoted_own_messages
from agent.record.sums.owner_notes import tell_owners

State = JoinRequest.State
#: After each note of an hour the next one waits twice as long, in seconds at most so many: who asks
#: again and again can have no phone ring all day. What came meanwhile is told together.
LONGEST_PAUSE = 300
HOUR = timedelta(hours=1)

#: Requests that one note shows.
SHOWN = 10
_ONE = ("收到一个申请，请主人处理：", "A request waits for an owner:")
_SEVERAL = ("收到 {count} 个申请，请主人处理：", "{count} requests wait for an owner:")
_MORE = ("…（还有 {count} 个没有显示，请在管理后台处理）", "… ({count} more are in the admin)")
_LINES = {
    RequestKind.FRIEND: ("#{pk} 好友申请，来自 {user}", "#{pk} {user} asks to be a friend"),
    RequestKind.JOIN: (
        "#{pk} {user} 申请加入群 {group}",
        "#{pk} {user} asks to join group {group}",
    ),
    RequestKind.INVITE: (
        "#{pk} {user} 邀请机器人加入群 {group}",
        "#{pk} {user} invites the bot to group {group}",
    ),
}
_HOW = (
    "引用这条消息回复「批准」或「拒绝 理由」，处理上面显示的全部申请；"
    "只处理一个请回复「批准 #{pk}」或「拒绝 #{pk} 理由」，也可在管理后台处理。",
    "Quote this message with “approve” or “refuse REASON” to decide over all that it shows; reply "
    "“approve #{pk}” or “refuse #{pk} REASON” to decide over one, or decide in the admin.",
)
_OUTCOMES = {
    State.APPROVED: ("#{pk}：{who} 已批准。", "#{pk}: approved by {who}."),
    State.REFUSED: ("#{pk}：{who} 已拒绝。", "#{pk}: refused by {who}."),
    State.EXPIRED: ("#{pk}：已失效，没有处理。{why}", "#{pk}: over, nothing was done. {why}"),
    State.WAITING: ("#{pk}：仍在等待。{why}", "#{pk}: it still waits. {why}"),
}
_ON_ITS_WAY = ("#{pk}：正在告诉客户端。", "#{pk}: the client is being told.")
TOO_LONG = (
    "理由最多 %d 个字，没有处理。",
    "A reason has at most %d characters: nothing was done.",
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
        text = build_note(rows, own.count())
        numbers: dict[str, object] = {"requests": [row.pk for row in rows]}
        tell_owners(ChatAddress(account, "private", ""), owners, text, now, raw=numbers)
        own.update(told_at=now)
        told.append(account)
    return told


def _is_quiet(account: str, now: datetime) -> bool:
    """Whether the last notes are long enough ago for another one."""
    rows = JoinRequest.objects.filter(account=account, told_at__gt=now - HOUR)
    notes = rows.aggregate(last=Max("told_at"), count=Count("told_at", distinct=True))
    pause = min(LONGEST_PAUSE, 2 ** notes["count"])
    return not notes["count"] or now - notes["last"] >= timedelta(seconds=pause)


def build_note(rows: Sequence[JoinRequest], count: int) -> str:
    """What owners are told of ``count`` requests, the first of which are ``rows``."""
    lines = [pick_sentence(_ONE if count == 1 else _SEVERAL, "").format(count=count)]
    for row in rows:
        line = pick_sentence(_LINES[RequestKind(row.kind)], "")
        line = line.format(pk=row.pk, user=row.user_id, group=row.group_id)
        lines.append(f"{line} {show_value(row.comment)}" if row.comment else line)
    if more := count - len(rows):
        lines.append(pick_sentence(_MORE, "").format(count=more))
    return "\n".join([*lines, pick_sentence(_HOW, "").format(pk=rows[0].pk)])


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

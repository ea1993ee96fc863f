"""Requests to an account: of people who want to be its friends, or to join a group that it manages,
and invitations into groups. What they are, what owners say to them, and how they are answered.
Pure.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _, gettext_noop

from agent.domain.approvals import NO, YES, ApprovalReply, ends_there

#: How a client names a request when it is answered: with the JSON type that it came with.
Flag = str | int | float
#: Characters of the words that a refusal is sent with, of a comment that are read, for QQ takes
#: fewer, and of a client's words that are kept.
MOST_REASON, MOST_COMMENT, MOST_WORDS = 200, 2_000, 500


class RequestKind(TextChoices):
    FRIEND = "friend", _("friend request")
    JOIN = "join", _("request to join")
    INVITE = "invite", _("invitation to a group")


class RuleAction(TextChoices):
    """What a rule does with a request."""

    APPROVE = "approve", _("approve it")
    REFUSE = "refuse", _("refuse it")
    WAIT = "wait", _("let it wait for somebody")


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """A request as a client reports it, of who asks, or invites: with the QQ level, where the
    client tells it. The flag is None where no answer can name it."""

    account: str
    kind: RequestKind
    user_id: str
    group_id: str
    comment: str
    flag: Flag | None
    inviter_id: str = ""
    level: int | None = None
    happened_at: datetime | None = None

    @property
    def key(self) -> str:
        """The same for the same request, however often it is reported."""
        name = self.comment if self.flag is None else self.flag
        who = (self.account, self.kind, self.user_id, self.group_id)
        named = json.dumps([*who, type(self.flag).__name__, name])
        return hashlib.sha256(named.encode()).hexdigest()


_QUESTION = re.compile(
    r"\A\s*(?:问题|question|q)\s*[:：].*?\n[ \t]*(?:答案|回答|answer|a)\s*[:：]",
    re.IGNORECASE | re.DOTALL,
)


def read_answer(comment: str) -> str:
    """What the one who asks says himself: of the group's question, the answer alone."""
    return _QUESTION.sub("", comment, count=1)


# The answer to the client.

#: Words of clients for a request that somebody has decided before. go-cqhttp: HAS_BEEN_CHECKED.
DECIDED_BEFORE = re.compile(
    r"已(?:经|被)*\S{0,8}处理|重复处理"
    r"|(?:请求|申请|邀请|验证)\S{0,6}已\S{0,4}(?:同意|拒绝|通过|过期|失效)"
    r"|(?:been|was)[_ ](?:checked|handled|processed|decided)|\bexpired\b"
    r"|already[_ ](?:checked|handled|processed|decided|approved|accepted|re\w+ed)",
    re.IGNORECASE,
)


def answer_action(
    kind: str, flag: object, decision: str, reason: str
) -> tuple[str, dict[str, object]]:
    """Name and parameters of the action that tells a client a decision."""
    params: dict[str, object] = {"flag": flag, "approve": decision == RuleAction.APPROVE}
    if kind == RequestKind.FRIEND:
        return "set_friend_add_request", {**params, "remark": ""}
    sub_type = "add" if kind == RequestKind.JOIN else "invite"
    # "type" is its name in older documents, which some clients follow
    kinds = {"sub_type": sub_type, "type": sub_type}
    return "set_group_add_request", {**params, **kinds, "reason": reason}


# Why a request is as it is, for the record.

NO_FLAG = gettext_noop(
    "The client gave no flag to answer it by, or none that can be used: it can be refused here "
    "only, and is decided in QQ."
)
ELSEWHERE = gettext_noop("It was decided elsewhere.")
LEFT = gettext_noop("The account is no longer in this group.")
TOO_LATE = gettext_noop("Nobody decided in time.")
UNKNOWN = gettext_noop(
    "Nobody knows whether the client has carried it out: look in QQ before you decide again."
)
NOT_KNOWN_TO_CLIENT = gettext_noop("This client cannot answer requests: decide in QQ.")


# What owners say to what they are told in private.


@dataclass(frozen=True, slots=True)
class RequestReply:
    """Yes or no to requests by their numbers; before these are known, ``number`` is what was
    written, 0 for the note that is quoted."""

    is_approval: bool
    reason: str = ""
    number: int = 0
    requests: tuple[int, ...] = ()


#: What an owner decides over what waits for him.
OwnerReply = ApprovalReply | RequestReply

_REPLY = re.compile(
    r"(?:\[(?:回复:|@)[^\]]*\]\s*)*"  # people that the message quotes or mentions
    rf"(?:(?P<yes>{'|'.join(YES)})|(?P<no>{'|'.join(NO)}))"
    r"(?:\s*[#＃](?P<number>[0-9]{1,18})(?![0-9]))?(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_APART = re.compile(r"[\s，,：:。.]")


def parse_request_reply(text: str) -> RequestReply | None:
    """What ``text`` decides over a request; None for everything that is not such a word. A refusal
    may give a reason, apart from the word; an approval stands alone."""
    match = _REPLY.fullmatch(text.strip())
    if match is None:
        return None
    rest = match["rest"]
    if ends_there(rest):
        rest = ""
    elif match["yes"] or not _APART.match(rest):
        return None
    rest = rest.strip(" \t\r\n，,：:。.")
    return RequestReply(match["yes"] is not None, rest, int(match["number"] or 0))

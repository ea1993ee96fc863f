"""Questions to the owners, and their answers.

The admin decides with :func:`settle_approval` in its own process, so what one of these functions
changes is in one transaction and happens once.
"""

import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum, auto
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agent.domain.approvals import (
    CODE_DIGITS,
    NO_BASIS,
    ApprovalReply,
    build_approval_question,
    describe_origin,
    format_argument_lines,
    parse_approval_reply,
)
from agent.domain.errors import pick_sentence
from agent.domain.group_acts import LEAST_ROLE
from agent.domain.types import IncomingMessage
from agent.models import Approval, ChatSession, Message, ToolCall
from agent.record.chats.chat_record import find_address
from agent.record.chats.own_messages import quoted_own_messages
from agent.record.runs.deferred_calls import OPEN, announce_outcome
from agent.record.sums.activity import count_failed_calls
from agent.record.sums.owner_notes import tell_owners
from tools.contract import CallBasis, ToolError
from tools.models import ToolConfig
from tools.refusals import CallVerdict
from tools.schemas.arguments import check_arguments

#: Questions of one chat that may wait, and that may be asked within a while, whatever came of them;
#: more calls are refused at once.
CHAT_LIMIT = 20
#: Of those asked within that while only the first mention the owners: who has calls made can have
#: no phone ring all day.
MENTIONING, WHILE = 5, timedelta(minutes=10)
REFUSED = "机器人主人拒绝了这次调用，工具没有执行。"
GROUP_REFUSED = "机器人主人或群管理员拒绝了这次调用，工具没有执行。"
WITHDRAWN = "提出请求的人或管理者把它撤回了，工具没有执行。"
EXPIRED = "没有主人在时限内批准，这次调用已经作废，工具没有执行。"
OWNERS_CHANGE = (
    "只有机器人主人可以修改参数。",
    "Only the bot's owners can change the arguments.",
)
NOT_NEEDED = (
    "编号 {code} 的调用（{tool}）被撤回了，不用再批准。",
    "The call {code} ({tool}) was withdrawn: it needs no approval any more.",
)
State = Approval.State


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call with checked arguments that waits for an owner of the chat's account."""

    call_pk: int
    session_pk: int
    arguments: dict[str, Any]
    owners: frozenset[str] = frozenset()
    basis: CallBasis = NO_BASIS


@dataclass(frozen=True, slots=True)
class RecordedQuestion:
    """The code of the question on record. ``is_new``: the same was not asked before; ``is_loud``:
    owners are mentioned; ``is_private``: they are asked in their private chats as well;
    ``by_managers``: who leads the group decides, too. ``told`` is what the model gets."""

    code: str
    told: str = ""
    is_new: bool = True
    is_loud: bool = True
    is_private: bool = False
    by_managers: bool = False


class ApprovalOutcome(Enum):
    """The result of an answer to a question."""

    APPROVED = auto()
    REFUSED = auto()
    UNKNOWN = auto()
    """There is no such question, or no longer: it was decided before, or has expired."""
    NOT_AN_OWNER = auto()
    NOT_A_MANAGER = auto()
    """Neither an owner nor somebody who leads the group."""
    NOT_SHOWN = auto()
    """An approval of arguments that the chat was not shown in full; the question still waits."""
    INVALID = auto()
    """The changed arguments do not fit the tool; the question still waits."""


def record_questions(question: ApprovalRequest) -> RecordedQuestion | None:
    """Put a question on record; None for one too many."""
    call = ToolCall.objects.get(pk=question.call_pk)
    waiting = Approval.objects.filter(session_id=question.session_pk, state=State.WAITING)
    same = waiting.filter(call__tool_name=call.tool_name, call__requested_by=call.requested_by)
    for other in same.only("code", "arguments"):
        if other.arguments == question.arguments:
            return RecordedQuestion(other.code, is_new=False)
    now = timezone.now()
    recent = Approval.objects.filter(
        session_id=question.session_pk, created_at__gt=now - WHILE
    ).count()
    if recent >= CHAT_LIMIT or waiting.count() >= CHAT_LIMIT:
        return None
    approval = Approval.objects.create(
        call=call,
        session_id=question.session_pk,
        code=_free_code(),
        arguments=question.arguments,
        created_at=now,
        expires_at=now + timedelta(seconds=settings.APPROVAL_TIMEOUT),
    )
    is_loud = recent < MENTIONING
    is_private = is_loud and _ask_in_private(approval, question.owners, question.basis)
    # With the question, so that no crash leaves one that waits for a call of unknown outcome.
    running = ToolCall.objects.filter(pk=call.pk, state=ToolCall.State.RUNNING)
    leads = find_deciding_group(approval) is not None
    told = _waiting_text(call.tool_name, approval.code, is_private=is_private, by_managers=leads)
    running.update(state=ToolCall.State.PENDING, result=told)
    return RecordedQuestion(
        approval.code, told, is_loud=is_loud, is_private=is_private, by_managers=leads
    )


def _waiting_text(tool_name: str, code: str, *, is_private: bool, by_managers: bool) -> str:
    who = "主人或群管理员" if by_managers else "主人"
    where = f"已在本会话请{who}处理"
    if is_private:
        where = "已在本会话和私聊请主人或群管理员处理" if by_managers else "已私聊请主人处理"
    return (
        f"工具 {tool_name} 的这次调用需要机器人{who}批准，尚未执行。"
        f"{where}（编号 {code}），"
        "批准或拒绝之后会另行告知结果。请如实告诉用户，不要重复调用。"
    )


def find_deciding_group(approval: Approval) -> int | None:
    """The session of the group whose owner and administrators may decide, too; None for none."""
    is_group = approval.session.kind == ChatSession.Kind.GROUP
    return approval.session_id if is_group and approval.call.tool_name in LEAST_ROLE else None


def _ask_in_private(approval: Approval, owners: frozenset[str], basis: CallBasis) -> bool:
    """Ask the owners in their private chats, unless one of them is in the chat that asks, as far as
    the record knows; whether they are asked."""
    session, call = approval.session, approval.call
    ids = {owner.rpartition(":")[2] for owner in owners}
    chat = find_address(session)
    if not ids or (chat.peer_id in ids and chat.kind == "private"):
        return False
    said = Message.objects.filter(sender_id__in=ids, place=chat.place)
    if chat.kind == "group" and said.filter(direction=Message.Direction.IN).exists():
        return False
    asked = call.run.message
    origin = describe_origin(
        chat.kind,
        chat.peer_id,
        session.title,
        call.requested_by,
        asked.sender_name if asked else "",
    )
    text = build_approval_question(
        call.tool_name, approval.arguments, approval.code, origin, basis=basis
    )
    tell_owners(chat, owners, text, approval.created_at, call.pk)
    return True


def read_approval_reply(message: IncomingMessage, session_pk: int) -> ApprovalReply | None:
    """What ``message`` decides over a waiting call, where it is written like such a decision.
    Without a number it decides over the question that it quotes."""
    reply = parse_approval_reply(message.text)
    if reply is None or reply.code:
        return reply
    code = _quoted_code(session_pk, message) if message.quoted_id else ""
    return replace(reply, code=code) if code else None


def _quoted_code(session_pk: int, message: IncomingMessage) -> str:
    """The number of the question that ``message`` quotes, where that is one of the bot's; "" for
    any other quote."""
    # Asked where the call was made, by its run; in private by the run of a note to the owner.
    sent = quoted_own_messages(session_pk, message)
    columns = ("text", "tool_call__approval__code", "run__message__tool_call__approval__code")
    for text, *codes in sent.order_by("-pk").values_list(*columns)[:1]:
        return next((code for code in codes if code and code in text), "")
    return ""


def _free_code() -> str:
    while True:
        code = "".join(secrets.choice("0123456789") for _ in range(CODE_DIGITS))
        if not Approval.objects.filter(code=code, state=State.WAITING).exists():
            return code


def waiting_codes(account: str, codes: set[str]) -> set[str]:
    """Which of ``codes`` name a question that waits in a chat of ``account``."""
    found = Approval.objects.filter(code__in=codes, state=State.WAITING, session__account=account)
    return set(found.values_list("code", flat=True))


def apply_approval_decision(
    word: ApprovalReply, account: str, person: str, is_owner: bool, leads: int | None = None
) -> tuple[ApprovalOutcome, str]:
    """Carry out the reply of ``person`` to a question in ``account``'s chats, who has to be an
    owner, or to lead the group that may decide: ``leads`` is the session of that where he speaks.
    The outcome, with the faults of its arguments, "" where there are none."""
    approval = Approval.objects.filter(
        code=word.code, state=State.WAITING, session__account=account
    ).first()
    if approval is None:
        return ApprovalOutcome.UNKNOWN, ""
    group = find_deciding_group(approval)
    if not is_owner and (group is None or leads != group):
        return ApprovalOutcome.NOT_A_MANAGER if group else ApprovalOutcome.NOT_AN_OWNER, ""
    if word.arguments is not None and not is_owner:
        return ApprovalOutcome.INVALID, pick_sentence(OWNERS_CHANGE, "")
    if problem := word.problem or check_changed_arguments(approval, word.arguments):
        return ApprovalOutcome.INVALID, problem
    if (
        word.is_approval
        and word.arguments is None
        and format_argument_lines(approval.arguments).is_cut
    ):
        return ApprovalOutcome.NOT_SHOWN, ""
    return settle_approval(
        approval.pk, is_approval=word.is_approval, by=person, arguments=word.arguments
    ), ""


def check_changed_arguments(approval: Approval, arguments: dict[str, Any] | None) -> str:
    """What is wrong with ``arguments`` in place of the call's own, by the tool's last declaration;
    "" for nothing."""
    if arguments is None:
        return ""
    declaration = (
        ToolConfig.objects.filter(name=approval.call.tool_name)
        .values_list("declaration", flat=True)
        .first()
        or {}
    )
    try:
        check_arguments(declaration.get("parameters_schema"), arguments)
    except ToolError as error:
        return str(error)
    return ""


def settle_approval(
    approval_pk: int, *, is_approval: bool, by: str, arguments: dict[str, Any] | None = None
) -> ApprovalOutcome:
    """Decide one question, once, and have the outcome worked on. The arguments were checked
    before."""
    with transaction.atomic():
        now = timezone.now()
        waiting = Approval.objects.filter(pk=approval_pk, state=State.WAITING, expires_at__gt=now)
        state = State.APPROVED if is_approval else State.REFUSED
        if not waiting.update(
            state=state, decided_by=by[:200], decided_at=now, changed_arguments=arguments
        ):
            return ApprovalOutcome.UNKNOWN
        if not is_approval:
            refused = Approval.objects.select_related("call", "session").filter(pk=approval_pk)
            words = REFUSED if find_deciding_group(refused.get()) is None else GROUP_REFUSED
            _close(refused, words, CallVerdict.OWNER_REFUSED)
            return ApprovalOutcome.REFUSED
        approval = Approval.objects.select_related("call__run__message").get(pk=approval_pk)
        if arguments is not None:
            ToolCall.objects.filter(pk=approval.call_id).update(arguments=arguments)
        announce_outcome(approval.call, f"approval:{approval_pk}")
        return ApprovalOutcome.APPROVED


def withdraw_approval(approval_pk: int, by: str, *, tells: bool) -> bool:
    """Have a call that waits not be made because its run is taken back; whether it still waited.
    Who was asked in private hears of that, and its chat by the outcome, if it ``tells``."""
    now = timezone.now()
    waiting = Approval.objects.filter(pk=approval_pk, state=State.WAITING, expires_at__gt=now)
    if not waiting.update(state=State.REFUSED, decided_by=by[:200], decided_at=now):
        return False
    withdrawn = Approval.objects.select_related("session", "call").filter(pk=approval_pk)
    _close(withdrawn, WITHDRAWN, CallVerdict.WITHDRAWN, tells=tells)
    row = withdrawn.get()
    notes = Message.objects.filter(tool_call=row.call_id, reason=Message.Reason.OWNER_NOTE)
    asked = notes.exclude(sender_id=by).values_list("sender_id", flat=True)
    text = pick_sentence(NOT_NEEDED, "").format(code=row.code, tool=row.call.tool_name)
    tell_owners(find_address(row.session), set(asked), text, now)
    return True


def expire_approvals() -> int:
    """Refuse what has waited too long; how many were."""
    now = timezone.now()
    late = list(
        Approval.objects.filter(state=State.WAITING, expires_at__lte=now).values_list(
            "pk", flat=True
        )[:1000]
    )
    if not late:
        return 0
    expired = 0
    for pk in late:
        with transaction.atomic():
            one = Approval.objects.filter(pk=pk, state=State.WAITING)
            if one.update(state=State.EXPIRED, decided_at=now):
                expired += 1
                _close(Approval.objects.filter(pk=pk), EXPIRED, CallVerdict.EXPIRED)
    return expired


def _close(
    approvals: "QuerySet[Approval]", words: str, verdict: CallVerdict, *, tells: bool = True
) -> None:
    """Fail the calls that will not be made, and announce that in their chats, if it ``tells``."""
    for approval in approvals.select_related("call__run__message"):
        closed = ToolCall.objects.filter(pk=approval.call_id, state__in=OPEN)
        count_failed_calls(closed)
        decision = {"verdict": verdict.value, "decided_by": approval.decided_by or None}
        values = {"state": ToolCall.State.FAILED, "result": words, "error": words, **decision}
        if closed.update(**values) and tells:
            announce_outcome(approval.call, f"approval:{approval.pk}")

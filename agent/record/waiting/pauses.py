"""Chats in which an account cannot speak: what is said there is on record, and costs no model
call."""

from collections.abc import Collection
from datetime import datetime

from django.db.models import Q
from django.utils import timezone

from agent.domain.states import UNSAID, Pause, PauseReason
from agent.domain.types import ChatAddress
from agent.models import ChatSession, Message
from agent.models.process import NEXT_CLAIM
from tools.live_rows import ConfigVersion, LiveKind

State = Message.State
#: What nobody in the chat said: it waits until the account can speak again,
#: but for what is said about something that is over by then.
KEPT = (*(UNSAID - {Message.Reason.EVENT}), Message.Reason.OWNER_NOTE)


def is_paused(now: datetime, prefix: str = "") -> Q:
    """Of the chats in which the account cannot speak at ``now``; ``prefix`` leads to the chat."""
    return Q(**{f"{prefix}pause_reason__isnull": False}) & (
        Q(**{f"{prefix}paused_until": None}) | Q(**{f"{prefix}paused_until__gt": now})
    )


def pause_chat(chat: ChatAddress, pause: Pause) -> None:
    """Pause a chat, in which the account cannot speak from now on, in every process, and settle
    what waits there.

    A pause that is known to end later keeps its end when the client only says that it is there.
    """
    now = timezone.now()
    session, _ = ChatSession.objects.get_or_create(
        account=chat.account,
        kind=chat.kind,
        peer_id=chat.peer_id,
        platform=chat.platform,
        defaults={"last_message_at": now},
    )
    same = session.pause_reason == pause.reason
    is_known = same and (
        session.paused_until == pause.until
        or (pause.until is None and session.paused_until and session.paused_until > now)
    )
    if not is_known:
        ChatSession.objects.filter(pk=session.pk).update(
            pause_reason=pause.reason,
            paused_at=(session.paused_at if same else None) or now,
            paused_until=pause.until,
        )
        ConfigVersion.bump(LiveKind.PAUSES)
    _settle_waiting(session.pk, pause.reason, now)


def _settle_waiting(session_pk: int, reason: PauseReason, now: datetime) -> None:
    """Take what waits in the chat from whoever has claimed it. What people said is not answered
    later either."""
    waiting = Message.objects.filter(
        session_id=session_pk, direction=Message.Direction.IN, state=State.WAITING
    )
    waiting.filter(reason__in=KEPT).update(claimed_by="", claim_number=NEXT_CLAIM)
    waiting.exclude(reason__in=KEPT).update(
        state=State.SILENT,
        reason=Message.Reason.PAUSED,
        detail=reason.value,
        claimed_by="",
        claim_number=NEXT_CLAIM,
        settled_at=now,
    )


def lift_pause(
    chat: ChatAddress,
    reasons: Collection[PauseReason] = tuple(PauseReason),
    lifts_timed: bool = True,
) -> bool:
    """Let the account speak in a chat again, in every process, if it was paused for one of
    ``reasons``; ``lifts_timed``: also where the pause would end by itself later. Whether it was
    paused."""
    paused = ChatSession.objects.filter(
        account=chat.account,
        kind=chat.kind,
        peer_id=chat.peer_id,
        platform=chat.platform,
        pause_reason__in=reasons,
    )
    if not lifts_timed:
        paused = paused.filter(paused_until=None)
    if not paused.update(pause_reason=None, paused_at=None, paused_until=None):
        return False
    ConfigVersion.bump(LiveKind.PAUSES)
    return True


def find_paused_chats(account: str) -> dict[ChatAddress, Pause]:
    """The chats of ``account`` that are paused now."""
    return load_pauses(account)


def load_pauses(account: str = "") -> dict[ChatAddress, Pause]:
    """The chats, of all accounts or of one, that are paused now."""
    rows = ChatSession.objects.filter(is_paused(timezone.now())).order_by()
    if account:
        rows = rows.filter(account=account)
    columns = ("account", "kind", "peer_id", "platform", "pause_reason", "paused_until")
    return {
        ChatAddress(*address): Pause(PauseReason(reason), until)
        for *address, reason, until in rows.values_list(*columns)
        if reason
    }

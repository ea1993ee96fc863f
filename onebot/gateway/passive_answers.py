"""Answers of official bots: QQ takes few of them, and not for long, and a bridge does not say so.

They are counted on record, and only once one was refused.
"""

import re
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from agent.domain.failures import (
    OF_OFFICIAL_BOTS,
    UNASKED,
    FailureKind,
    owner_note,
    run_page,
)
from agent.domain.types import ChatAddress
from agent.models import Message
from agent.record.sums.failures import tell_of_failure
from onebot.models import Bot

#: Answers to one message, and how long they are taken.
MOST = 5
TAKEN = {"group": timedelta(minutes=5), "private": timedelta(minutes=60)}
#: Bridges that speak for official bots, as they say when they are asked who they are.
BRIDGES = ("gensokyo", "onebots")
_UNASKED = re.compile(UNASKED)

State = Message.State


def explain_refusal(chat: ChatAddress, echo: str, error: str) -> str:
    """``error``, for which the message to ``chat`` with that ``echo`` was refused just now, with
    what is behind it where the account is an official bot, of which its owners are told; as it is
    where that is unknown. Runs in the database's thread."""
    is_unasked = bool(_UNASKED.search(error))
    if not is_unasked and not _is_official(chat.account):
        return error
    kind = _find_kind(chat) or (FailureKind.UNASKED if is_unasked else None)
    if kind is None:
        return error
    _tell_owners(chat, echo, kind)
    return f"{OF_OFFICIAL_BOTS[kind]}: {error}"


def _tell_owners(chat: ChatAddress, echo: str, kind: FailureKind) -> None:
    """Of what a run said, an answer or a tool's; of a note to them nothing can be told."""
    bot = Bot.objects.filter(self_id=chat.account).first()
    sent = Message.objects.filter(echo=echo, run__isnull=False)
    of_run = sent.exclude(run__message__reason=Message.Reason.OWNER_NOTE)
    found = of_run.values_list("run_id", "session__title").first()
    if bot is not None and found is not None:
        run, title = found
        note = owner_note(kind, chat, title, run, run_page(run))
        tell_of_failure(chat, kind, bot.owner_ids, note)


def _is_official(account: str) -> bool:
    named = Q()
    for name in BRIDGES:
        named |= Q(client_name__istartswith=f"{name}/") | Q(client_name__iexact=name)
    return Bot.objects.filter(named, self_id=account).exists()


def _find_kind(chat: ChatAddress) -> FailureKind | None:
    """Whether an answer to the newest message of the chat is too late now, or one too many."""
    said = Message.objects.filter(
        session__account=chat.account,
        session__kind=chat.kind,
        session__peer_id=chat.peer_id,
        session__platform=chat.platform,
    )
    heard = said.filter(direction=Message.Direction.IN).exclude(message_id="").order_by("-pk")
    newest = heard.values_list("pk", "created_at").first()
    if newest is None:
        return FailureKind.UNASKED
    if timezone.now() - newest[1] > TAKEN[chat.kind]:
        return FailureKind.LATE
    answers = said.filter(pk__gt=newest[0], direction=Message.Direction.OUT)
    count = answers.filter(state__in=(State.DELIVERED, State.UNKNOWN)).count()
    return FailureKind.OFTEN if count >= MOST else None

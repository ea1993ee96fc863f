"""Who answers whom: how much of what somebody says in a chat follows the bot's answers."""

from datetime import datetime
from itertools import pairwise

from django.db.models import Min

from agent.domain.types import ChatAddress
from agent.models import Message


def count_answered_exchanges(chat: ChatAddress, sender_id: str, now: datetime, count: int) -> int:
    """After how many of the last ``count`` messages of ``sender_id`` that have a run the next came
    only when the bot had answered.

    The message that comes ``now`` is the last such next one. Few messages are looked at, by the
    index on their sender.
    """
    said = Message.objects.filter(
        sender_id=sender_id, place=chat.place, direction=Message.Direction.IN, run__isnull=False
    )
    asked = list(said.order_by("-pk").values_list("created_at", "run_id")[:count])
    answers = Message.objects.filter(
        run__in=[run for _, run in asked], direction=Message.Direction.OUT
    )
    answered = dict(answers.order_by().values_list("run_id").annotate(Min("created_at")))
    times = [now, *(at for at, _ in asked)]
    return sum(
        run in answered and answered[run] <= following
        for (following, _), (_, run) in zip(pairwise(times), asked, strict=True)
    )

"""Whether this machine's clock is ahead of those of the chats, by the messages that were too old to
be answered when they came."""

import logging
from datetime import timedelta

from django.utils import timezone

from agent.domain.states import MessageReason, MessageState
from agent.models import Message

logger = logging.getLogger(__name__)

#: Messages in a row that have to be too old, those that are looked at, and how new they have to be.
IN_A_ROW, LOOKED_AT, RECENT = 3, 20, timedelta(hours=1)
#: Messages that come live are of one age, however far apart they are. Those that a client has kept
#: come all at once, and are of different ages.
SPREAD = timedelta(seconds=30)
_TAKEN = (MessageState.WAITING, MessageState.RUNNING, MessageState.ANSWERED)


def find_clock_skew() -> timedelta | None:
    """By how much this machine's clock seems to be ahead. None where it agrees: the newest messages
    for the bot were not too old, or did not come live."""
    rows = Message.objects.filter(happened_at__isnull=False)
    since = timezone.now() - RECENT
    old = rows.filter(reason=MessageReason.TOO_OLD, created_at__gte=since).order_by("-pk")
    found = list(old.values_list("pk", "session__account", "created_at", "happened_at")[:LOOKED_AT])
    found = [one for one in found if one[1] == found[0][1]]
    if len(found) < IN_A_ROW:
        return None
    ages = [came - said for _, _, came, said in found if said is not None]
    is_live = found[0][2] - found[-1][2] >= SPREAD and max(ages) - min(ages) <= SPREAD
    newer = rows.filter(state__in=_TAKEN, pk__gt=found[-1][0], session__account=found[0][1])
    return ages[0] if is_live and not newer.exists() else None


class ClockWatch:
    """Says in the log, once, that the clocks do not agree."""

    def __init__(self) -> None:
        self._is_told = False

    def look(self) -> bool:
        """Whether they agree."""
        skew = find_clock_skew()
        if skew is not None and not self._is_told:
            logger.warning(
                "Messages are %d minutes old when they come and are not answered: the clock of "
                "this machine seems to be ahead. Set it by NTP",
                skew.total_seconds() // 60,
            )
        self._is_told = skew is not None
        return skew is None

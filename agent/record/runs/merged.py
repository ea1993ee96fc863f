"""Messages of one person that are answered together: the last of them has the run, the others are
merged into it."""

from dataclasses import dataclass

from django.utils import timezone

from agent.models import UNSETTLED, Message
from agent.models.process import NEXT_CLAIM

State = Message.State


@dataclass(frozen=True, slots=True)
class HeldMessage:
    """A claimed message, with the number of its claim."""

    message_pk: int
    claim_number: int


def merge_messages(group: tuple[HeldMessage, ...]) -> list[int]:
    """Merge messages, oldest first, into the last of them; the keys of those that are now
    together, that one included.

    What is settled, recalled or in other hands by now is left out.
    """
    rows = Message.objects.filter(UNSETTLED, pk__in=[one.message_pk for one in group])
    rows = rows.filter(recalled_at=None).order_by("pk").select_for_update(no_key=True)
    numbers = dict(rows.values_list("pk", "claim_number"))
    held = [one.message_pk for one in group if numbers.get(one.message_pk) == one.claim_number]
    if len(held) > 1:
        *earlier, last = held
        Message.objects.filter(merged_into__in=earlier).update(merged_into=last)
        Message.objects.filter(pk__in=earlier).update(
            merged_into=last,
            state=State.SILENT,
            reason=Message.Reason.MERGED,
            claimed_by="",
            claim_number=NEXT_CLAIM,
            settled_at=timezone.now(),
        )
    return held

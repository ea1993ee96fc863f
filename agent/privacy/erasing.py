"""Erasing a person, in steps that can be broken off and gone on with, with a receipt."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agent.domain.states import ActKind
from agent.models import ErasureReceipt, Message, PersonaChoice
from agent.privacy.person import Person, find_chats
from agent.privacy.phases import EraseBatch, erase_join_requests, erase_reminders
from agent.record.waiting.expiry import OPEN
from agent.record.waiting.operator_acts import author_name, record_act

#: Rows of kinds that are only counted, at most.
MOST_COUNTED = 10_000


@transaction.atomic
def begin_erasure(person: Person, author: User) -> ErasureReceipt:
    """A receipt for what is going to be erased; the one that was not finished, where there is
    one."""
    begun = ErasureReceipt.objects.filter(person_hash=person.hash, finished_at=None)
    receipt = begun.order_by("pk").first() or ErasureReceipt.objects.create(
        person_hash=person.hash,
        at=timezone.now(),
        author_name=author_name(author),
        counts=dict(
            +Counter(reminders=erase_reminders(person), join_requests=erase_join_requests(person))
        ),
        progress={
            "person": person.person_id,
            "platform": person.platform,
            "chats": find_chats(person),
            "phase": 0,
            "after": 0,
        },
    )
    record_act(ActKind.ERASE, None, author, detail=f"#{receipt.pk}")
    return receipt


def continue_erasure(
    receipt: ErasureReceipt,
    phases: Sequence[EraseBatch],
    remove_files: Callable[[Sequence[str]], None],
    seconds: float,
) -> bool:
    """Erase batch by batch for about ``seconds``; whether nothing is left to do.

    Each batch is one transaction with its count in the receipt: whatever breaks it off, the next
    call goes on behind it. ``remove_files`` removes copies by their hashes once their rows are
    gone; what it leaves has no row, and is found by the retention of copies.
    """
    end = time.monotonic() + seconds
    while receipt.finished_at is None:
        with transaction.atomic():
            receipt = ErasureReceipt.objects.select_for_update().get(pk=receipt.pk)
            files = _erase_batch(receipt, phases) if receipt.finished_at is None else []
        remove_files(files)
        if time.monotonic() > end:
            break
    return receipt.finished_at is not None


def _erase_batch(receipt: ErasureReceipt, phases: Sequence[EraseBatch]) -> list[str]:
    """Erase the next batch of ``receipt``, and note it there; the hashes of files to remove."""
    progress = receipt.progress
    person = Person(progress["person"], progress["platform"])
    erase: EraseBatch = phases[progress["phase"]]
    batch = erase(person, progress["chats"], progress["after"])
    receipt.counts = dict(Counter(receipt.counts) + Counter(batch.counts))
    progress["after"] = batch.after or 0
    if batch.after is None:
        progress["phase"] += 1
    if progress["phase"] == len(phases):
        receipt.kept, receipt.progress = _count_kept(person), {}
        receipt.finished_at = timezone.now()
    receipt.save()
    return list(batch.files)


def _count_kept(person: Person) -> dict[str, int]:
    """What is still on record of the person, by kind: what is just being worked on, and what
    operators decided."""
    unsettled = Message.objects.filter(sender_id=person.person_id, state__in=OPEN).order_by()
    kept = {
        "unsettled": unsettled[:MOST_COUNTED].count(),
        "persona_choices": PersonaChoice.objects.filter(user_id=person.person_id).count(),
    }
    return {kind: count for kind, count in kept.items() if count}


#: What a receipt counts, in words.
GONE: dict[str, Any] = {
    "messages": _("messages, with the answers to them"),
    "runs": _("runs"),
    "requests": _("model calls of other runs that held words of the person"),
    "tool_calls": _("arguments and results of tool calls"),
    "media": _("pictures, voice and files"),
    "descriptions": _("descriptions of media"),
    "quotes": _("quoted and forwarded words in messages of others"),
    "names": _("names in messages that mention the person"),
    "summaries": _("summaries of chats"),
    "notes": _("memory notes"),
    "reminders": _("reminders"),
    "join_requests": _("requests to be let in"),
    "sums": _("sums of what the person cost"),
    "chats": _("private chats"),
    "events": _("events of clients"),
}
KEPT: dict[str, Any] = {
    "unsettled": _("messages that are being answered: erase once more when they are done"),
    "persona_choices": _("choices of a persona for this person, which operators made"),
}


def describe_receipt(receipt: ErasureReceipt) -> dict[str, Any]:
    """``gone`` and ``stayed``: pairs of words and number."""
    gone = [(GONE.get(kind, kind), count) for kind, count in receipt.counts.items() if count]
    stayed = [(KEPT.get(kind, kind), count) for kind, count in receipt.kept.items()]
    return {"gone": gone, "stayed": stayed, "is_finished": receipt.finished_at is not None}

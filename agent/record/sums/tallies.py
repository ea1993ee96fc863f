"""The counts of answers, in the transaction that takes messages in."""

from collections.abc import Collection, Mapping, Sequence

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from agent.domain.answer_limits import LOOP_SILENCE, AnswerCount
from agent.domain.types import ChatAddress
from agent.models import Tally
from agent.record.ground import statements
from tools.local_time import current_day, first_of_day

#: The number that stands for every anonymous member of a group.
ANONYMOUS = "80000000"
SUBJECT_LIMIT = 300
#: Counts that are deleted in one transaction.
FORGOTTEN = 1_000
#: Silences of one chat that are listed.
SHOWN = 20


def person_subject(chat: ChatAddress, sender_id: str) -> str:
    """One person, in all chats of the account; unidentified people in one chat count as one."""
    is_known = sender_id not in ("", ANONYMOUS)
    return (
        f"{chat.platform}:{chat.account}/{sender_id}"
        if is_known
        else f"{chat.place}/unknown/{sender_id}"
    )


def account_subject(chat: ChatAddress) -> str:
    """No person: counts the notices to an account's owners."""
    return f"{chat.platform}:{chat.account}"


def chat_subject(chat: ChatAddress, sender_id: str) -> str:
    """All who are answered in the chat; in a private one that is one person."""
    return chat.place if chat.kind == "group" else exchange_subject(chat, sender_id)


def exchange_subject(chat: ChatAddress, sender_id: str) -> str:
    """One person in one chat."""
    return f"{chat.place}/{sender_id}"[:SUBJECT_LIMIT]


def find_silences(place: str, now: int) -> list[tuple[str, int]]:
    """Who gets no answer in the chat at ``place``, and until when, in seconds since 1970."""
    prefix, behind = f"{place}/", f"{place}0"  # 0 is the sign after /
    open_now = Tally.objects.filter(
        subject__gte=prefix, subject__lt=behind, silent_until__range=(now + 1, now + LOOP_SILENCE)
    )
    rows = open_now.order_by("subject").values_list("subject", "silent_until")[:SHOWN]
    return [(subject.removeprefix(prefix), until) for subject, until in rows]


def load_counts(subjects: Collection[str]) -> dict[str, AnswerCount]:
    """The count of each of ``subjects``, whose rows are locked until the transaction ends where
    others may write them."""
    ordered = sorted(subjects)
    found = _found(ordered)
    missing = [subject for subject in ordered if subject not in found]
    if (
        missing and connection.features.has_select_for_update
    ):  # another process may insert the same ones
        Tally.objects.bulk_create(
            [Tally(subject=subject) for subject in missing], ignore_conflicts=True
        )
        found |= _found(missing)
    return {subject: found.get(subject) or AnswerCount() for subject in ordered}


def _found(subjects: Sequence[str]) -> dict[str, AnswerCount]:
    return {
        subject: AnswerCount(
            {int(at): int(number) for at, number in (one.split(":") for one in recent.split())},
            *counts,
        )
        for subject, recent, *counts in statements.find_tallies.rows(subjects=list(subjects))
    }


def save_counts(counts: Mapping[str, AnswerCount], now: int) -> None:
    """Store those of ``counts`` that have changed."""
    statements.save_tallies.many(
        [
            {
                "subject": subject,
                "recent": " ".join(f"{at}:{number}" for at, number in count.recent.items()),
                "day": count.day,
                "of_day": count.of_day,
                "told_at": count.told_at,
                "told_on": count.told_on,
                "silent_until": count.silent_until,
                "now": now,
            }
            for subject, count in sorted(counts.items())
            if count.is_changed
        ]
    )


def take_notice_of_day(subject: str) -> bool:
    """Whether the chat that ``subject`` counts was not told anything of the day's limits yet; it
    is from now on."""
    now, day = int(timezone.now().timestamp()), first_of_day(current_day())
    [count] = load_counts([subject]).values()
    if count.told_on == day:
        return False
    count.told_on, count.is_changed = day, True
    save_counts({subject: count}, now)
    return True


def take_notice_within(subject: str, seconds: int) -> bool:
    """Whether nothing was told of ``subject`` in the last ``seconds``, in any process; it is from
    now on. Within a transaction."""
    now = int(timezone.now().timestamp())
    [count] = load_counts([subject]).values()
    if abs(now - count.told_at) < seconds:  # a clock that was put back silences nothing for ever
        return False
    count.told_at, count.is_changed = now, True
    save_counts({subject: count}, now)
    return True


def prune_tallies(first: int, last: int) -> int:
    """Delete some of the counts that were not touched from ``first`` to ``last``, seconds since
    1970; how many, 0 once there are none.

    After its end there are those of a clock that was put back.
    """
    return Tally.objects.filter(pk__in=_outside(first, last)).delete()[0]


def _outside(first: int, last: int) -> list[int]:
    untouched = Tally.objects.filter(Q(touched_at__lt=first) | Q(touched_at__gt=last))
    return list(untouched.values_list("pk", flat=True)[:FORGOTTEN])

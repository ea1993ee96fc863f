"""Who is told of an answer that failed, once in a while, whichever process it failed in."""

from dataclasses import dataclass

from django.utils import timezone

from agent.domain.failures import APOLOGY_SECONDS, OWNER_NOTE_SECONDS, FailureKind
from agent.domain.types import ChatAddress
from agent.record.sums.owner_notes import tell_owners
from agent.record.sums.tallies import SUBJECT_LIMIT, account_subject, take_notice_within


@dataclass(frozen=True, slots=True)
class FailedAnswer:
    """An answer that failed, and what the account's ``owners`` are told of it."""

    chat: ChatAddress
    kind: FailureKind
    owners: frozenset[str]
    note: str


def report_failure(failed: FailedAnswer) -> bool:
    """Tell the owners in private, unless they were told of such a one lately; whether the chat is
    to be told, which it is from now on."""
    account = account_subject(failed.chat)
    if failed.owners and take_notice_within(
        f"failure:{failed.kind}:{account}"[:SUBJECT_LIMIT], OWNER_NOTE_SECONDS
    ):
        tell_owners(failed.chat, failed.owners, failed.note, timezone.now())
    said = "refused" if failed.kind == FailureKind.SENDING else "failed"
    return take_notice_within(
        f"apology:{said}:{failed.chat.place}"[:SUBJECT_LIMIT], APOLOGY_SECONDS
    )

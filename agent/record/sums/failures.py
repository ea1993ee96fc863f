"""Who is told of an answer that failed, once in a while, whichever process it failed in."""

from django.utils import timezone

from agent.domain.failures import APOLOGY_SECONDS, OWNER_NOTE_SECONDS, FailureKind
from agent.domain.types import ChatAddress
from agent.record.sums.owner_notes import tell_owners
from agent.record.sums.tallies import SUBJECT_LIMIT, account_subject, take_notice_within


def report_failure(chat: ChatAddress, kind: FailureKind, owners: frozenset[str], note: str) -> bool:
    """Of an answer that failed: tell the account's ``owners``; whether the chat is to be told,
    which it is from now on."""
    tell_of_failure(chat, kind, owners, note)
    said = "refused" if kind == FailureKind.SENDING else "failed"
    return take_notice_within(f"apology:{said}:{chat.place}"[:SUBJECT_LIMIT], APOLOGY_SECONDS)


def tell_of_failure(
    chat: ChatAddress, kind: FailureKind, owners: frozenset[str], note: str
) -> None:
    """Tell the account's ``owners`` the ``note`` in private, unless they were told of such a
    failure lately."""
    account = account_subject(chat)
    if owners and take_notice_within(
        f"failure:{kind}:{account}"[:SUBJECT_LIMIT], OWNER_NOTE_SECONDS
    ):
        tell_owners(chat, owners, note, timezone.now())

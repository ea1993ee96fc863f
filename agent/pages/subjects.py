"""Pages of those that money and tokens were spent on."""

from collections.abc import Iterable

from django.urls import reverse

from agent.domain.budgets import SpendKind
from agent.record.chats.subject_names import find_subjects

_PAGES = {
    SpendKind.ENDPOINT: "admin:agent_modelendpoint_change",
    SpendKind.CHAT: "admin:agent_chatsession_change",
}


def describe_subjects(kind: str, subjects: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Name and page of each of ``subjects``; an unknown one is its own name, without a page."""
    return {
        subject: (
            found.name,
            "" if found.pk is None else reverse(_PAGES[SpendKind(kind)], args=(found.pk,)),
        )
        for subject, found in find_subjects(kind, subjects).items()
    }

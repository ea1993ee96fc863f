"""Names of those that money and tokens were spent on."""

from collections.abc import Iterable
from typing import NamedTuple

from django.urls import reverse

from agent.domain.budgets import SpendKind
from agent.models import ChatSession, Message, ModelEndpoint
from tools.text.visible import escape_invisible_chars


class SubjectPlace(NamedTuple):
    """``platform:account:kind:peer`` in its parts."""

    platform: str
    account: str
    kind: str
    peer_id: str

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.peer_id}"


def parse_place(subject: str) -> SubjectPlace | None:
    """The chat that ``subject`` names; None where it names none."""
    parts = subject.split(":", 3)
    return SubjectPlace(*parts) if len(parts) == len(SubjectPlace._fields) else None


def name_subjects(kind: str, subjects: Iterable[str]) -> dict[str, str]:
    """What people call each of ``subjects``, by subject."""
    return {subject: name for subject, (name, _url) in describe_subjects(kind, subjects).items()}


def describe_subjects(kind: str, subjects: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Name and page of each of ``subjects``; an unknown one is its own name, without a page."""
    wanted = list(subjects)
    found = {subject: (subject, "") for subject in wanted}
    match kind:
        case SpendKind.ENDPOINT:
            found |= _endpoints(wanted)
        case SpendKind.CHAT:
            found |= _chats(wanted)
        case SpendKind.PERSON:
            found |= {subject: (_person(subject), "") for subject in wanted}
    return {subject: (escape_invisible_chars(name), url) for subject, (name, url) in found.items()}


def _endpoints(subjects: list[str]) -> dict[str, tuple[str, str]]:
    pks = [int(subject) for subject in subjects if subject.isascii() and subject.isdigit()]
    rows = ModelEndpoint.objects.filter(pk__in=pks).values_list("pk", "name")
    return {
        str(pk): (name, reverse("admin:agent_modelendpoint_change", args=(pk,)))
        for pk, name in rows
    }


def _chats(subjects: list[str]) -> dict[str, tuple[str, str]]:
    places = {subject: place for subject in subjects if (place := parse_place(subject))}
    rows = ChatSession.objects.filter(
        account__in={place.account for place in places.values()},
        peer_id__in={place.peer_id for place in places.values()},
    )
    by_place = {SubjectPlace(row.platform, row.account, row.kind, row.peer_id): row for row in rows}
    return {
        subject: (row.title or str(row), reverse("admin:agent_chatsession_change", args=(row.pk,)))
        for subject, place in places.items()
        if (row := by_place.get(place))
    }


def _person(subject: str) -> str:
    """The last name that the person went by, and the id."""
    person = subject.rpartition("/")[2]
    said = Message.objects.filter(sender_id=person, direction=Message.Direction.IN)
    name = said.order_by("-pk").values_list("sender_name", flat=True).first() if person else ""
    return f"{name} ({person})" if name else person or subject

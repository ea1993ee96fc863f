"""Names of those that money and tokens were spent on."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import Q

from agent.domain.budgets import SpendKind
from agent.models import ChatSession, ModelEndpoint
from agent.record.chats.person_names import find_names
from tools.text.readable import escape_invisible_chars


class PlaceParts(NamedTuple):
    """``platform:account:kind:peer`` in its parts."""

    platform: str
    account: str
    kind: str
    peer_id: str

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.peer_id}"


class NamedSubject(NamedTuple):
    """What people call a subject, and the key of its row; None where it has none."""

    name: str
    pk: int | None = None


def parse_place(subject: str) -> PlaceParts | None:
    """The chat that ``subject`` names; None where it names none."""
    found = subject.split(":", 3)
    return PlaceParts(*found) if len(found) == len(PlaceParts._fields) else None


def name_subjects(kind: str, subjects: Iterable[str]) -> dict[str, str]:
    """What people call each of ``subjects``, by subject."""
    return {subject: found.name for subject, found in find_subjects(kind, subjects).items()}


def find_subjects(kind: str, subjects: Iterable[str]) -> dict[str, NamedSubject]:
    """Name and row of each of ``subjects``; an unknown one is its own name."""
    wanted = list(subjects)
    found = {subject: NamedSubject(subject) for subject in wanted}
    match kind:
        case SpendKind.ENDPOINT:
            found |= _endpoints(wanted)
        case SpendKind.CHAT:
            found |= _chats(wanted)
        case SpendKind.PERSON:
            found |= _people(wanted)
    counts = Counter(one.name for one in found.values())
    shared = {name for name, count in counts.items() if count > 1}
    return {
        subject: one._replace(name=escape_invisible_chars(_told_apart(subject, one.name, shared)))
        for subject, one in found.items()
    }


def _told_apart(subject: str, name: str, shared: set[str]) -> str:
    """``name``, with the account where several have it."""
    account = subject.partition("/")[0].split(":", 2)[1:2]
    return f"{name} · {account[0]}" if name in shared and account else name


def _endpoints(subjects: list[str]) -> dict[str, NamedSubject]:
    pks = [int(subject) for subject in subjects if subject.isascii() and subject.isdigit()]
    rows = ModelEndpoint.objects.filter(pk__in=pks).values_list("pk", "name")
    return {str(pk): NamedSubject(name, pk) for pk, name in rows}


def _chats(subjects: list[str]) -> dict[str, NamedSubject]:
    parts = {subject: found for subject in subjects if (found := parse_place(subject))}
    rows = ChatSession.objects.filter(
        account__in={one.account for one in parts.values()},
        peer_id__in={one.peer_id for one in parts.values()},
    )
    by_parts = {PlaceParts(row.platform, row.account, row.kind, row.peer_id): row for row in rows}
    return {
        subject: NamedSubject(row.title or str(row), row.pk)
        for subject, found in parts.items()
        if (row := by_parts.get(found))
    }


def _people(subjects: list[str]) -> dict[str, NamedSubject]:
    """The last name that each person went by, and the id."""
    people = {subject: subject.rpartition("/")[2] for subject in subjects}
    names = find_names(people.values(), Q())
    return {
        subject: NamedSubject(
            f"{names[person]} ({person})" if person in names else person or subject
        )
        for subject, person in people.items()
    }

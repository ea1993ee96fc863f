"""Copies of the pictures in tools' results, by the names that later calls use."""

from dataclasses import dataclass

from django.utils import timezone

from agent.domain.types import ChatAddress
from agent.media.file_store import StoredFile
from agent.models import KeptFile, ResultPicture, ToolCall
from agent.record.chats.chat_record import find_session


@dataclass(frozen=True, slots=True)
class NewPictures:
    """Copies of the pictures of one call's result, each with its place among the result's items,
    from 1."""

    call_pk: int
    call_id: str
    pictures: tuple[tuple[int, StoredFile], ...]


def add_pictures(item: NewPictures) -> None:
    """Put pictures on record. Those of a call without a chat cannot be asked for, and are left
    out."""
    call = ToolCall.objects.filter(pk=item.call_pk)
    if (session_pk := call.values_list("run__session", flat=True).first()) is not None:
        _add(item, session_pk)


def find_pictures(chat: ChatAddress, call_id: str, place: int) -> str | None:
    """The content hash of the picture at a place of the newest call with that id in a chat; None
    where there is none."""
    rows = ResultPicture.objects.filter(session_id=find_session(chat), name=call_id, position=place)
    return rows.order_by("-pk").values_list("kept__sha256", flat=True).first()


def touch_copies(sha256: str) -> None:
    """Note that a copy was used just now: what is not used is forgotten in time."""
    KeptFile.objects.filter(sha256=sha256).update(last_used_at=timezone.now())


def _add(item: NewPictures, session_pk: int) -> None:
    now = timezone.now()
    copies = {kept.sha256: kept for _, kept in item.pictures}
    KeptFile.objects.bulk_create(
        (
            KeptFile(
                sha256=one.sha256, mime=one.mime, size=one.size, created_at=now, last_used_at=now
            )
            for one in copies.values()
        ),
        update_conflicts=True,
        unique_fields=["sha256"],
        update_fields=["last_used_at"],
    )
    pks = dict(KeptFile.objects.filter(sha256__in=copies).values_list("sha256", "pk"))
    ResultPicture.objects.bulk_create(
        ResultPicture(
            session_id=session_pk,
            call_id=item.call_pk,
            name=item.call_id[:128],
            position=position,
            kept_id=pks[kept.sha256],
            created_at=now,
        )
        for position, kept in item.pictures
    )

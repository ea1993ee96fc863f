"""Notes and those who may see them, for the tests of the memory."""

from collections.abc import Iterable
from copy import copy as copy_of
from typing import Any

from agent.domain.notes import NoteViewer
from agent.memory.notes_store import NewNote, NoteSearch, WrittenNote, find_notes, write_notes
from agent.models import Note

ANN_AT_HOME = NoteViewer("onebot", "10001", "private:20001", "20001")
ANN_IN_GROUP = NoteViewer("onebot", "10001", "group:30001", "20001")
BOB_IN_GROUP = NoteViewer("onebot", "10001", "group:30001", "20002")
OTHER_GROUP = NoteViewer("onebot", "10001", "group:30002", "20001")
OTHER_ACCOUNT = NoteViewer("onebot", "10002", "group:30001", "20001")


def noted(viewer: NoteViewer, text: str, **fields: Any) -> WrittenNote:
    """Have a note written in ``viewer``'s chat, about its person unless ``person`` says
    otherwise."""
    return write_notes(NewNote(viewer, text, **{"person": viewer.person} | fields))


def noted_many(viewer: NoteViewer, texts: Iterable[str]) -> None:
    """The same for each of ``texts``, in one go."""
    note = Note.objects.get(pk=noted(viewer, "the first of many").pk)
    copies = []
    for text in texts:
        copies.append(copy := copy_of(note))
        copy.pk, copy.text = None, text
    Note.objects.bulk_create(copies)


def told_everyone(text: str, **fields: Any) -> Note:
    """A note that the operator wrote for all chats."""
    note = Note(visibility="everyone", source="operator", text=text, **fields)
    note.save()
    return note


def texts(viewer: NoteViewer, words: str = "", **fields: Any) -> list[str]:
    """What a search of ``viewer`` finds, in order."""
    (found,) = find_notes([NoteSearch(viewer, words, **{"limit": 50} | fields)])
    return [note.text for note in found]

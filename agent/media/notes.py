"""What the run's record says of media that were not read. Pure."""

from collections.abc import Sequence

from agent.media.pipeline import FetchedMedia


def note_missing_media(note: str, found: Sequence[FetchedMedia]) -> list[str]:
    """``note`` and the reasons, when something of ``found`` could not be had; else nothing."""
    reasons = [one.reason for one in found if one.kept is None]
    return [note, *filter(None, reasons)] if reasons else []

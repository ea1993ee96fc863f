"""What the run's record says of media that were not read. Pure."""

from collections.abc import Sequence

from agent.media.senses import Found


def missing(note: str, found: Sequence[Found]) -> list[str]:
    """``note`` and the reasons, when something of ``found`` could not be had; else nothing."""
    reasons = [one.reason for one in found if one.kept is None]
    return [note, *filter(None, reasons)] if reasons else []

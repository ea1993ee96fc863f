"""What processes remember of rows, each with a number that grows with every change."""

from enum import IntEnum


class LiveKind(IntEnum):
    """A key of :class:`tools.live_rows.ConfigVersion`."""

    SETTINGS = 1
    """Rows that operators edit."""
    PAUSES = 2
    """The chats in which an account cannot speak."""
    STICKERS = 3

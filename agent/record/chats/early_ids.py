"""Ids of sent messages that a client has confirmed, and that the record does not know yet: somebody
may quote such a message in the very moment.

What came to this process last is kept, by the echo under which the message is on record.
"""

from collections import OrderedDict

#: Ids that are kept: those of some seconds.
MOST = 1_000

_echoes: "OrderedDict[tuple[str, str], str]" = OrderedDict()
"""By account and the client's message id."""


def remember(account: str, message_id: str, echo: str) -> None:
    """Keep that a client gave the message that was sent as ``echo`` an id."""
    _echoes[account, message_id] = echo
    while len(_echoes) > MOST:
        _echoes.popitem(last=False)


def find_echo(account: str, message_id: str) -> str:
    """The echo of the message with an id; "" where no client has just told that id."""
    return _echoes.get((account, message_id), "")

"""What can go wrong between this server and a OneBot client.

::

    OneBotError
    ├── NotConnected     nothing was written; trying again is safe
    ├── FrameTooLarge    nothing was written; trying again is of no use
    ├── ActionTimeout    written, and no answer came in time
    └── ConnectionLost   written, and the socket ended before the answer

``may_have_arrived`` is the policy: where it is true the outcome of a send is
unknown, and it is never repeated blindly, for a reply said twice is worse than
one marked as uncertain.
"""

from typing import ClassVar


class OneBotError(Exception):
    """Any failure to have an action carried out; raised through its subclasses only."""

    may_have_arrived: ClassVar[bool] = False


class NotConnected(OneBotError):  # noqa: N818 - the word says what happened
    """The account has no socket for actions here. The message was not written anywhere and may be
    sent later."""


class FrameTooLarge(OneBotError):  # noqa: N818 - the word says what happened
    """The client would close its connection over the frame. Nothing was written."""


class ActionTimeout(OneBotError):  # noqa: N818 - the word says what happened
    """The client did not answer in time. The message may have been sent, and its answer may still
    come."""

    may_have_arrived = True


class ConnectionLost(OneBotError):  # noqa: N818 - the word says what happened
    """The socket ended between write and answer.

    The message may have been sent. Clients finish what they were doing, and the
    answer comes on their next socket, found by its echo.
    """

    may_have_arrived = True

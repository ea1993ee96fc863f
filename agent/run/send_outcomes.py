"""Outcomes of messages that no client answered."""

from django.utils.translation import gettext_noop

from agent.domain.states import MessageState
from agent.domain.types import Delivery

NOT_CONNECTED = Delivery(MessageState.FAILED, error=gettext_noop("the account is not connected"))
ASLEEP = Delivery(
    MessageState.PENDING, error=gettext_noop("this process was asleep when it was to be written")
)
NOT_SENT = Delivery(MessageState.FAILED, error=gettext_noop("the run ended before it was sent"))
PART_REFUSED = Delivery(
    MessageState.FAILED, error=gettext_noop("an earlier part of the answer could not be sent")
)
NO_FLOOR = Delivery(
    MessageState.PENDING, error=gettext_noop("an answer in several messages was being sent")
)
CUT_OFF = Delivery(
    MessageState.UNKNOWN, error=gettext_noop("the run ended before the client answered")
)

"""The shape of a final answer: whom it mentions, what it quotes. Pure but for the settings."""

from django.conf import settings

from agent.domain.types import IncomingMessage, MessagePart

#: The account number that stands for every anonymous member of a group; mentioning it reaches
#: nobody.
ANONYMOUS = "80000000"


def build_final_parts(message: IncomingMessage, text: str) -> list[MessagePart]:
    """``text`` as the answer to ``message``: in groups with a quote and a mention, as
    configured."""
    if message.chat.kind != "group":
        return [MessagePart("plain", text=text)]
    parts = []
    if settings.ENABLE_REPLY_IN_GROUP_MSG and message.message_id:
        parts.append(MessagePart("quote", message_id=message.message_id))
    if settings.ENABLE_AT_IN_GROUP_MSG and message.sender_id != ANONYMOUS:
        parts.append(MessagePart("mention_user", mention_user_id=message.sender_id))
        text = f" {text}"
    return [*parts, MessagePart("plain", text=text)]

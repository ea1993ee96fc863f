"""How long a message waits for the next words of the same person. Pure."""

from agent.domain.manners import Manners
from agent.domain.types import IncomingMessage
from tools.time_limits import TIME_LIMITS

#: How long a mention without words waits for the next words of the same person, in seconds.
NEXT_WORDS = TIME_LIMITS.next_words


def is_bare_mention(message: IncomingMessage) -> bool:
    """Whether nothing was said but the bot's own mention: no word, no medium, no quote."""
    return (
        message.mentions_bot
        and not message.text.strip()
        and not message.media
        and not message.quoted_id
    )


def merge_window(message: IncomingMessage, manners: Manners) -> float:
    """Seconds in which further messages of the same person are awaited; 0.0: it is answered at
    once."""
    if is_bare_mention(message):
        return max(NEXT_WORDS, manners.merge_seconds)
    return manners.merge_seconds

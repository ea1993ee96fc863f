"""The tokens of a day: whether work that nobody waits for may still ask a model."""

from django.conf import settings

from agent.record import spendings
from agent.record.record import Record


async def has_tokens_left(record: Record) -> bool:
    """Whether anything is left of TOKENS_PER_DAY, after all model calls of the day in all
    processes."""
    if not settings.TOKENS_PER_DAY:
        return True
    return (
        await record.submit(spendings.load_spent_tokens, spendings.current_day())
        < settings.TOKENS_PER_DAY
    )

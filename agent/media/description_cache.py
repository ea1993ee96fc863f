"""Descriptions of content: made once and then reused."""

import asyncio
from collections.abc import Awaitable, Callable

from agent.media import media_store as store
from agent.media.media_store import DescriptionKey, NewDescription
from agent.record.record import Record

#: Asks a model, or makes words in another way; with the tokens it took, where they are known.
AskModel = Callable[[], Awaitable[str | NewDescription]]


class DescriptionCache:
    """Words for content: on record as :class:`agent.models.Description`, each question asked once.

    While a question is being asked, others who ask the same wait for its answer.
    """

    def __init__(self, record: Record) -> None:
        self._record = record
        self._asking: dict[DescriptionKey, asyncio.Task[str]] = {}

    async def get(self, message_pk: int, question: DescriptionKey, ask: AskModel) -> str:
        """The answer on record, or else that of ``ask``; it is linked to the message's copies of
        what was asked about.

        "" is no answer and not kept. Raises what ``ask`` raises, to all who wait. One
        who is cancelled leaves the others waiting.
        """
        asking = self._asking.get(question)
        if asking is None:
            asking = asyncio.create_task(self._find_or_ask(question, ask))
            self._asking[question] = asking
            asking.add_done_callback(lambda done: self._forget(question, done))
        text = await asyncio.shield(asking)
        if text:
            await self._record.submit(store.link_description, message_pk, question)
        return text

    async def close(self) -> None:
        """Stop what is being asked."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    def _forget(self, question: DescriptionKey, asked: asyncio.Task[str]) -> None:
        del self._asking[question]
        if not asked.cancelled():
            asked.exception()  # marks it as seen: perhaps no task awaits it

    async def _find_or_ask(self, question: DescriptionKey, ask: AskModel) -> str:
        known = await self._record.submit_batched(store.find_descriptions, question)
        if known is not None:
            return known[1]
        answer = await ask()
        described = (
            answer if isinstance(answer, NewDescription) else NewDescription(question, answer)
        )
        if described.text:
            await self._record.submit(store.add_descriptions, described)
        return described.text

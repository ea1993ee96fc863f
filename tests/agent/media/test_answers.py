"""What is asked of content once: answers on record, and those who ask at the same time."""

import asyncio

import pytest

from agent.domain.errors import LLMError
from agent.media.media_store import DescriptionCache, DescriptionKey
from agent.models import Description

QUESTION = DescriptionKey("c0ffee", "voice", "whisper")


class Model:
    """Counts how often it is asked, and answers when it is told to."""

    def __init__(self) -> None:
        self.times = 0
        self.asked = asyncio.Event()
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def ask(self) -> str:
        self.times += 1
        self.asked.set()
        return await self.answer


async def test_those_who_ask_the_same_at_once_share_the_answer(record):
    answers, model = DescriptionCache(record), Model()
    waiting = [asyncio.create_task(answers.get(pk, QUESTION, model.ask)) for pk in (1, 2, 3)]
    await model.asked.wait()
    waiting[0].cancel()
    model.answer.set_result("hi")
    assert await asyncio.gather(*waiting[1:]) == ["hi", "hi"]
    assert model.times == await Description.objects.acount() == 1


async def test_a_failure_is_told_to_all_and_not_kept(record):
    answers, model = DescriptionCache(record), Model()
    waiting = [asyncio.create_task(answers.get(pk, QUESTION, model.ask)) for pk in (1, 2)]
    await model.asked.wait()
    model.answer.set_exception(LLMError("no"))
    assert [type(error) for error in await asyncio.gather(*waiting, return_exceptions=True)] == [
        LLMError
    ] * 2
    assert not await Description.objects.aexists()


async def test_an_answer_on_record_is_not_asked_for_again(record):
    model = Model()
    model.answer.set_result("hi")
    for _ in range(2):
        assert await DescriptionCache(record).get(1, QUESTION, model.ask) == "hi"
    assert model.times == 1


async def test_closing_stops_what_is_being_asked(record):
    answers, model = DescriptionCache(record), Model()
    waiting = asyncio.create_task(answers.get(1, QUESTION, model.ask))
    await model.asked.wait()
    await answers.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert model.answer.cancelled()

"""Messages whose runs come to no recorded end, and those that nobody has in hand: none waits for
the next start."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agent.chat import inbox as module
from agent.models import Message, Run
from agent.record.runs import replies
from agent.record.runs.replies import RunCompletion
from agent.record.waiting.recovery import (
    claim_messages,
    record_heartbeat,
)
from tests.agent.chat.conftest import mailbox, make
from tests.agent.chat.inboxes import Make, held, idle, rows, until
from tests.agent.talk import PRIVATE, PROCESS, Mailbox, Script, accept, message
from tests.environment import PATIENCE

__all__ = ["mailbox", "make"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TURN_PAUSE", 0.01)


@pytest.fixture
def break_endings(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let no run of the first message be finished for so many tries."""
    finish = replies.complete_runs

    def break_endings(tries: float) -> None:
        failed: list[RunCompletion] = []

        def fail(endings: Sequence[RunCompletion]) -> list[None]:
            first = Message.objects.order_by("pk").values_list("pk", flat=True)[0]
            if len(failed) < tries and any(ending.message_pk == first for ending in endings):
                failed.extend(endings)
                raise RuntimeError("the ending slipped")
            return finish(endings)

        monkeypatch.setattr(replies, "complete_runs", fail)

    return break_endings


async def settled(*texts: str) -> list[tuple[str, str]]:
    """The messages that came in, once they are settled, each with its state."""
    async with asyncio.timeout(PATIENCE):
        while len(found := await rows(text__in=texts, state__in=("answered", "failed"))) < len(
            texts
        ):
            pass
    return [(text, state) for text, state, _ in found]


async def test_a_message_with_an_unfinished_run_is_finished_in_the_same_process_and_answered_once(
    make: Make, mailbox: Mailbox, break_endings
):
    # One that fails in a transaction of its own is a fault of the write; so two tries for one
    # ending.
    break_endings(2)
    inbox = make(Script("one", "two"))
    inbox.receive_message(message("a"))
    inbox.receive_message(message("b"))
    assert await settled("a", "b") == [("a", "answered"), ("b", "answered")]
    assert mailbox.texts == ["one", "two"]
    assert not await sync_to_async(Run.objects.exclude(state="finished").exists)()


async def test_a_message_whose_run_can_never_be_finished_is_given_up_visibly_and_its_chat_goes_on(
    make: Make, mailbox: Mailbox, break_endings
):
    break_endings(float("inf"))
    inbox = make(Script("one", "two"))
    inbox.receive_message(message("a"))
    inbox.receive_message(message("b"))
    assert await settled("a", "b") == [("a", "failed"), ("b", "answered")]
    assert mailbox.texts == ["one", "two"]
    detail = await sync_to_async(lambda: Message.objects.get(text="a").detail)()
    assert detail == "RuntimeError: the ending slipped"
    assert not await sync_to_async(
        Run.objects.filter(state__in=("running", "interrupted")).exists
    )()


async def test_an_unexpected_error_of_the_way_out_does_not_end_the_chat(
    make: Make, mailbox: Mailbox, monkeypatch
):
    deliver = mailbox.deliver

    async def slip(*_args: Any, **_options: Any) -> None:
        mailbox.deliver = deliver  # type: ignore[method-assign]
        raise ConnectionResetError("the layer is gone")

    mailbox.deliver = slip  # type: ignore[assignment,method-assign]
    inbox = make(Script("one", "two"))
    inbox.receive_message(message("a"))
    inbox.receive_message(message("b"))
    assert await settled("a", "b") == [("a", "answered"), ("b", "answered")]
    assert mailbox.texts == ["two"]  # the first one may have been heard
    assert ("one", "unknown", "") in await rows(direction="out")


# --- In nobody's hands --------------------------------------------------------------


async def test_what_this_process_claims_and_has_not_in_hand_is_taken_up_again(
    make: Make, mailbox: Mailbox
):
    inbox = make(Script("one"))
    await inbox.record.renew_lease(alone=True)
    await sync_to_async(accept)(message("a"), process_id=PROCESS)
    inbox.resume(PRIVATE.account)
    await idle(inbox)
    assert await rows() == [("a", "waiting", "private")]
    for _ in range(2):  # what is missed only once may be on its way
        await inbox.audit()
    inbox.resume(PRIVATE.account)
    assert await settled("a") == [("a", "answered")]
    assert mailbox.texts == ["one"]


async def test_what_is_in_hand_or_waits_behind_it_is_left_there(make: Make, mailbox: Mailbox):
    first = held()
    model = Script(first, "two")
    inbox = make(model)
    await inbox.record.renew_lease(alone=True)
    inbox.receive_message(message("a"))
    inbox.receive_message(message("b"))
    await until(lambda: model.requests)
    for _ in range(3):
        await inbox.audit()
        inbox.resume(PRIVATE.account)
    first.set_result("one")
    assert await settled("a", "b") == [("a", "answered"), ("b", "answered")]
    assert mailbox.texts == ["one", "two"]
    assert set(
        await sync_to_async(lambda: list(Run.objects.values_list("claim_number", flat=True)))()
    ) == {1}


# --- In other hands -----------------------------------------------------------------


async def test_a_run_that_another_process_has_taken_over_says_and_writes_nothing_more(
    make: Make, mailbox: Mailbox
):
    answer = held()
    model = Script(answer)
    inbox = make(model)
    inbox.receive_message(message("a"))
    await until(lambda: model.requests)
    await sync_to_async(record_heartbeat)("other", alone=True)
    await sync_to_async(claim_messages)(PRIVATE.account, "other")
    before = await rows()
    answer.set_result("one")
    await until(lambda: not inbox._workers)
    assert mailbox.texts == []
    assert await rows() == before

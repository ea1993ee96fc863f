"""Answers that are stopped, messages that are recalled, and commands beside the queue."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.chat import inbox as module
from agent.chat.conversation import ConversationHandler
from agent.chat.inbox import Inbox
from agent.domain.states import MessageReason
from agent.domain.types import ChatAddress
from agent.models import Message, Run, ToolCall
from agent.record.chats.chat_record import MessageRecall, record_recall
from agent.record.runs.merged import HeldMessage, merge_messages
from agent.record.waiting.recovery import PendingMessage, claim_messages
from agent.record.waiting.stops import stop_answer
from tests.agent.chat.inboxes import asked, held, idle, rows, until
from tests.agent.chat.test_merged import ends, merge_within
from tests.agent.talk import GROUP, PRIVATE, Script, accept, calling, message
from tests.environment import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)


async def recall(inbox: Inbox, message_id: str, chat: ChatAddress = PRIVATE) -> None:
    """What a client's notice does."""
    wish = MessageRecall(chat.account, message_id, chat)
    await inbox.drop_recalled(await inbox.record.submit(record_recall, wish))


@sync_to_async
def run_states() -> list[str]:
    return list(Run.objects.order_by("pk").values_list("state", flat=True))


# --- Stop -----------------------------------------------------------------------------


async def test_a_stopped_answer_is_not_sent_and_the_next_message_is_answered(make, mailbox):
    slow = held()
    model = Script(slow, "two")
    inbox = make(model)
    inbox.receive_message(message("a"))
    inbox.receive_message(message("b"))
    await until(lambda: model.requests)
    assert await inbox.stop(PRIVATE)
    assert slow.cancelled()
    await idle(inbox)
    assert mailbox.texts == ["two"]
    assert await ends() == [("a", "silent", "stopped"), ("b", "answered", "private")]
    assert await run_states() == ["stopped", "finished"]


async def test_where_nothing_is_under_way_there_is_nothing_to_stop(make):
    inbox = make(Script("one"))
    assert not await inbox.stop(PRIVATE)
    inbox.receive_message(message("a"))
    await idle(inbox)
    assert not await inbox.stop(PRIVATE)


async def test_an_answer_is_not_stopped_for_somebody_who_did_not_ask_for_it(make, mailbox):
    slow = held()
    model = Script(slow)
    inbox = make(model)
    inbox.receive_message(said := message("a"))
    await until(lambda: model.requests)
    assert not await inbox.stop(PRIVATE, "66666")
    assert not await inbox.stop(PRIVATE, "")
    assert await inbox.stop(PRIVATE, said.sender_id)
    await idle(inbox)
    assert mailbox.texts == []


async def test_only_the_chat_that_was_named_is_stopped(make, mailbox):
    slow = held()
    model = Script(slow)
    inbox = make(model)
    inbox.receive_message(message("a"))
    await until(lambda: model.requests)
    assert not await inbox.stop(GROUP)
    slow.set_result("one")
    await idle(inbox)
    assert mailbox.texts == ["one"]


async def test_an_answer_that_is_on_the_wire_when_it_is_stopped_is_of_unknown_outcome(
    make, mailbox
):
    mailbox.silent = True
    inbox = make(Script("hello"))
    inbox.receive_message(message("a"))
    await until(lambda: mailbox.sent)
    assert await inbox.stop(PRIVATE)
    await idle(inbox)
    assert await rows() == [("a", "answered", "stopped"), ("hello", "unknown", "")]


async def test_an_answer_that_waits_for_its_client_when_it_is_stopped_is_never_sent(make, mailbox):
    mailbox.connected.clear()
    inbox = make(Script("hello"))
    inbox.receive_message(message("a"))
    async with asyncio.timeout(PATIENCE):
        while ("hello", "pending", "") not in await rows():
            pass
    assert await inbox.stop(PRIVATE)
    mailbox.connected.set()
    inbox.resume(PRIVATE.account)
    await idle(inbox)
    assert (mailbox.sent, await rows()) == (
        [],
        [("a", "silent", "stopped"), ("hello", "failed", "")],
    )


async def test_words_that_are_still_awaited_are_stopped_too(make, mailbox):
    await merge_within(10)
    inbox = make(Script())
    inbox.receive_message(message("a"))
    await until(lambda: inbox._under_way)
    assert await inbox.stop(PRIVATE)
    await idle(inbox)
    assert (await ends(), mailbox.sent) == ([("a", "silent", "stopped")], [])


async def test_what_does_not_end_in_time_can_send_nothing_more(make, mailbox, monkeypatch):
    monkeypatch.setattr(module, "STOP_SECONDS", 0.01)
    slow = held()
    model = Script(slow)
    complete, asks = model.complete, held()

    async def stubborn(request: Any) -> Any:
        try:
            return await complete(request)
        except asyncio.CancelledError:
            await asks
            model.answers.append("too late")
            return await complete(request)

    monkeypatch.setattr(model, "complete", stubborn)
    inbox = make(model)
    inbox.receive_message(message("a"))
    await until(lambda: model.requests)
    assert await inbox.stop(PRIVATE)
    asks.set_result("")
    await idle(inbox)
    assert (mailbox.sent, await ends()) == ([], [("a", "silent", "stopped")])


async def test_what_waits_to_be_tried_again_is_stopped_and_the_queue_goes_on(make, monkeypatch):
    monkeypatch.setattr(module, "TURN_PAUSE", 0.2)
    answered: list[str] = []

    async def answer(_: Any, pending: PendingMessage, *__: Any, **___: Any) -> None:
        if pending.message.text == "a":
            raise RuntimeError("no end")
        answered.append(pending.message.text)

    monkeypatch.setattr(ConversationHandler, "answer_message", answer)
    inbox = make(Script())
    inbox.receive_message(message("a"))
    inbox.receive_message(message("b"))
    await until(lambda: inbox._failures)
    assert await inbox.stop(PRIVATE)
    await idle(inbox)
    assert (answered, dict(inbox._failures)) == (["b"], {})
    assert (await ends())[0] == ("a", "silent", "stopped")


async def test_an_answer_of_another_process_is_stopped_by_the_record(make, mailbox):
    slow = held()
    model = Script(slow)
    here, there = make(Script()), make(model)
    there.receive_message(message("a"))
    await until(lambda: model.requests)
    assert await here.stop(PRIVATE)
    slow.set_result("too late")
    await idle(there)
    assert (mailbox.sent, await ends()) == ([], [("a", "silent", "stopped")])


async def test_a_stopped_run_counts_its_steps_and_leaves_no_call_that_seems_to_run(make, mailbox):
    slow = held()
    model = Script(calling(("nothing", "{}")), slow)
    inbox = make(model)
    inbox.receive_message(message("a"))
    await until(lambda: len(model.requests) == 2)
    await sync_to_async(ToolCall.objects.update)(state="running")
    assert await inbox.stop(PRIVATE)
    run = await sync_to_async(Run.objects.get)()
    assert (run.model_calls, run.input_tokens, run.output_tokens) == (1, 10, 2)
    assert await sync_to_async(lambda: ToolCall.objects.get().state)() == "unknown"


# --- Recall ---------------------------------------------------------------------------


async def test_a_message_that_is_recalled_while_it_waits_is_not_answered(make, mailbox):
    """Checklist 74."""
    slow = held()
    model = Script(slow, "three")
    inbox = make(model)
    for text in ("a", "b", "c"):
        inbox.receive_message(message(text, message_id=text))
    await until(lambda: model.requests and not inbox._arriving)
    for _ in range(2):
        await recall(inbox, "b")
    await recall(inbox, "unknown")
    slow.set_result("one")
    await idle(inbox)
    assert (asked(model), mailbox.texts) == (["a", "c"], ["one", "three"])
    assert (await ends())[1] == ("b", "silent", "recalled")


async def test_a_message_that_is_recalled_stops_the_run_that_answers_it(make, mailbox):
    """Checklist 74."""
    slow = held()
    model = Script(slow)
    inbox = make(model)
    inbox.receive_message(message("a", message_id="7"))
    await until(lambda: model.requests)
    await recall(inbox, "7")
    await idle(inbox)
    assert (slow.cancelled(), mailbox.sent) == (True, [])
    assert (await ends(), await run_states()) == ([("a", "silent", "recalled")], ["stopped"])


async def test_a_recall_of_what_was_answered_or_of_the_bots_own_words_stops_nothing(make, mailbox):
    slow = held()
    model = Script("one", slow)
    inbox = make(model)
    inbox.receive_message(message("a", message_id="7"))
    await idle(inbox)
    inbox.receive_message(message("b"))
    await until(lambda: len(model.requests) == 2)
    await recall(inbox, "7")
    await recall(inbox, "4711")
    slow.set_result("two")
    await idle(inbox)
    assert mailbox.texts == ["one", "two"]


@pytest.mark.parametrize("recalled", ["a", "b", "c"])
async def test_what_is_answered_together_is_answered_again_without_the_one_that_is_recalled(
    make, mailbox, recalled
):
    await merge_within(0.05)
    slow = held()
    model = Script(slow, "hello")
    inbox = make(model)
    for text in ("a", "b", "c"):
        inbox.receive_message(message(text, message_id=text))
    await until(lambda: model.requests)
    await recall(inbox, recalled)
    await until(lambda: mailbox.sent)
    await idle(inbox)
    assert mailbox.texts == ["hello"]
    assert {text: state for text, state, _ in await ends()} == {
        text: "silent" if text == recalled else "answered" for text in ("a", "b", "c")
    }
    assert await run_states() == ["stopped", "finished"]


async def test_what_is_recalled_while_further_words_are_awaited_is_left_out(make, mailbox):
    await merge_within(0.3)
    inbox = make(Script("hello"))
    for text in ("a", "b"):
        inbox.receive_message(message(text, message_id=text))
    await until(lambda: inbox._under_way and not inbox._arriving)
    await recall(inbox, "b")
    await idle(inbox)
    assert await ends() == [("a", "answered", "private"), ("b", "silent", "recalled")]


async def test_nothing_is_answered_once_all_awaited_words_are_recalled(make, mailbox):
    await merge_within(10)
    inbox = make(Script())
    inbox.receive_message(message("a", message_id="a"))
    await until(lambda: inbox._under_way)
    await recall(inbox, "a")
    await idle(inbox)
    assert (await ends(), mailbox.sent) == ([("a", "silent", "recalled")], [])


async def test_what_was_recalled_before_a_crash_is_not_taken_up(make, mailbox):
    said = [message(text, message_id=text) for text in "abc"]
    accepted = await sync_to_async(accept)(*said, process_id="dead")
    group = tuple(HeldMessage(one.pk, 1) for one in accepted[:2])
    await sync_to_async(merge_messages)(group)
    for one in "bc":
        await sync_to_async(record_recall)(MessageRecall(PRIVATE.account, one, PRIVATE))
    inbox = make(Script("hello"))
    for _ in range(2):  # what is left of the group waits for the next look
        inbox.resume(PRIVATE.account)
        await inbox.record.submit_batched(lambda items: items, None)
    await until(lambda: mailbox.sent)
    await idle(inbox)
    assert await ends() == [
        ("a", "answered", "follow_up"),
        ("b", "silent", "recalled"),
        ("c", "silent", "recalled"),
    ]


async def test_after_something_was_said_nothing_is_answered_again(make, mailbox):
    accepted = await sync_to_async(accept)(message("a", message_id="a"), message("b"))
    group = tuple(HeldMessage(one.pk, 1) for one in accepted)
    await sync_to_async(merge_messages)(group)
    last = group[-1].message_pk
    wish = MessageRecall(PRIVATE.account, "a", PRIVATE)

    def said_and_recalled() -> None:
        run = Run.objects.create(message_id=last, origin="chat", started_at=timezone.now())
        spoken = Message(session_id=accepted[0].session_pk, run=run, direction="out", text="so")
        spoken.state, spoken.created_at = "delivered", run.started_at
        spoken.save()
        record_recall(wish)
        assert stop_answer(last, MessageReason.RECALLED) == (True, False)

    await sync_to_async(said_and_recalled)()
    assert [state for _, state, _ in await ends()] == ["answered", "answered"]


# --- Commands -------------------------------------------------------------------------


async def test_a_command_does_not_wait_for_the_answer_under_way(make, mailbox):
    slow = held()
    model = Script(slow, "helped")
    inbox = make(model)
    inbox.receive_message(message("a"))
    await until(lambda: model.requests)
    inbox.receive_message(message("/help"))
    await until(lambda: mailbox.sent)
    slow.set_result("one")
    await idle(inbox)
    assert len(mailbox.sent) == 2
    assert (await ends())[1] == ("/help", "answered", "command")


async def test_what_is_said_after_a_command_waits_for_it(make, monkeypatch):
    order: list[str] = []
    inbox, first = make(Script()), held()

    async def answer(handler: Any, pending: PendingMessage, *_: Any, **__: Any) -> None:
        if pending.command:
            await first
        order.append(pending.message.text)

    monkeypatch.setattr(ConversationHandler, "answer_message", answer)
    inbox.receive_message(message("/reset"))
    inbox.receive_message(message("hi"))
    await until(lambda: inbox._commands and inbox._workers)
    await asyncio.sleep(0)
    assert order == []
    first.set_result("")
    await idle(inbox)
    assert order == ["/reset", "hi"]


async def test_commands_beyond_what_is_obeyed_at_once_wait_in_their_chat(
    make, mailbox, monkeypatch
):
    monkeypatch.setattr(module, "COMMANDS_AT_ONCE", 0)
    slow = held()
    model = Script(slow, "helped")
    inbox = make(model)
    inbox.receive_message(message("a"))
    await until(lambda: model.requests)
    inbox.receive_message(message("/help"))
    await until(lambda: not inbox._arriving)
    assert mailbox.sent == []
    slow.set_result("one")
    await idle(inbox)
    assert len(mailbox.sent) == 2


async def test_a_command_is_known_as_one_when_it_is_taken_up_from_the_record(record):
    await sync_to_async(accept)(message("/help"), message("/ hi"), process_id="dead")
    found = await record.submit(claim_messages, PRIVATE.account, "p2")
    assert [one.command and one.command.name.english for one in found] == ["help", None]

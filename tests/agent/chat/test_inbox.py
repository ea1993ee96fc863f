"""The inbox: each chat one message at a time and in order, chats side by side, and nothing that
only memory knows."""

import asyncio
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.chat import inbox as module
from agent.domain.errors import LLMError
from agent.domain.states import Pause, PauseReason
from agent.domain.types import Delivery
from agent.models import Message, Run
from agent.record.runs.merged import HeldMessage
from agent.record.waiting import recovery
from agent.record.waiting.pauses import pause_chat
from tests.agent.chat.inboxes import asked, held, idle, rows, until
from tests.agent.talk import GROUP, PRIVATE, Script, accept, message
from tests.environment import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)

# --- Answering ----------------------------------------------------------------------


async def test_a_message_is_recorded_answered_and_settled(make, mailbox):
    inbox = make(Script("hello"))
    inbox.receive_message(message("hi"))
    await idle(inbox)
    assert mailbox.sent == [(PRIVATE, "hello")]
    assert await rows() == [("hi", "answered", "private"), ("hello", "delivered", "")]


async def test_a_chats_messages_are_answered_one_at_a_time_in_their_order(make, mailbox):
    first = held()
    model = Script(first, "two", "three")
    inbox = make(model)
    for text in ("a", "b", "c"):
        inbox.receive_message(message(text))
    await until(lambda: model.requests)
    assert asked(model) == ["a"]
    first.set_result("one")
    await idle(inbox)
    assert (asked(model), mailbox.texts) == (["a", "b", "c"], ["one", "two", "three"])


async def test_the_answer_before_is_history_to_the_next(make):
    model = Script("one", "two")
    inbox = make(model)
    inbox.receive_message(message("a"))
    inbox.receive_message(message("b"))
    await idle(inbox)
    assert [one["role"] for one in model.requests[1].messages] == [
        "system",
        "user",
        "assistant",
        "user",
    ]


async def test_chats_are_answered_side_by_side(make, mailbox):
    slow = held()
    model = Script(slow, "quick")
    inbox = make(model)
    inbox.receive_message(message("a"))
    await until(lambda: model.requests)
    inbox.receive_message(message("b", GROUP, mentions_bot=True))
    await until(lambda: mailbox.sent)
    assert mailbox.sent[0][0] == GROUP
    slow.set_result("late")
    await idle(inbox)
    assert mailbox.sent[1] == (PRIVATE, "late")


async def test_what_is_not_to_be_answered_is_only_recorded(make, mailbox):
    inbox = make(Script())
    inbox.receive_message(message("hi", GROUP))
    await idle(inbox)
    assert (await rows(), mailbox.sent) == ([("hi", "recorded", "not_addressed")], [])


async def test_a_message_told_again_is_answered_once(make, mailbox):
    inbox = make(Script("hello"))
    for _ in range(3):
        inbox.receive_message(message("hi", message_id="7"))
    await idle(inbox)
    assert mailbox.texts == ["hello"]


async def test_an_empty_answer_is_asked_for_once_more(make, mailbox):
    inbox = make(Script(" \n", "hello"))
    inbox.receive_message(message("hi"))
    await idle(inbox)
    assert mailbox.texts == ["hello"]


async def test_a_failure_is_told_in_one_sentence_and_holds_nobody_up(make, mailbox):
    inbox = make(Script(LLMError("key sk-1 was refused"), "hello"))
    inbox.receive_message(message("hi"))
    inbox.receive_message(message("again"))
    await idle(inbox)
    apology, answer = mailbox.texts
    assert "sk-1" not in apology
    assert answer == "hello"
    assert [state for _, state, _ in await rows(direction="in")] == ["failed", "answered"]


async def test_a_bug_costs_one_answer_and_not_the_chat(make, mailbox):
    inbox = make(Script(KeyError("oops"), "hello"))
    inbox.receive_message(message("hi"))
    inbox.receive_message(message("again"))
    await idle(inbox)
    assert mailbox.texts[1:] == ["hello"]


@pytest.mark.parametrize(("state", "wanted"), [("failed", "failed"), ("unknown", "answered")])
async def test_what_the_client_says_of_the_answer_decides_about_the_message(
    make, mailbox, state, wanted
):
    mailbox.delivery = Delivery(Message.State(state), error="muted", pause=PauseReason.MUTED)
    inbox = make(Script("hello"))
    inbox.receive_message(message("hi"))
    await idle(inbox)
    assert [(row_state) for _, row_state, _ in await rows()] == [wanted, state]


async def test_an_answer_waits_for_its_client(make, mailbox):
    mailbox.connected.clear()
    inbox = make(Script("hello"))
    inbox.receive_message(message("hi"))
    async with asyncio.timeout(PATIENCE):
        while ("hello", "pending", "") not in await rows():
            pass
    assert mailbox.sent == []
    mailbox.connected.set()
    await idle(inbox)
    assert mailbox.texts == ["hello"]


# --- Room ---------------------------------------------------------------------------


async def test_one_chat_has_room_for_so_many_messages_behind_the_one_being_answered(
    make, mailbox, monkeypatch
):
    """Checklist 110."""
    monkeypatch.setattr(module, "CHAT_LIMIT", 2)
    first = held()
    model = Script(first, "two", "three", "other")
    inbox = make(model)
    inbox.receive_message(message("a"))
    await until(lambda: model.requests)
    for text in ("b", "c", "d"):
        inbox.receive_message(message(text))
    await until(lambda: not inbox._arriving)
    first.set_result("one")
    await idle(inbox)
    assert mailbox.texts == ["one", "two", "three"]
    assert (await rows(direction="in"))[-1] == ("d", "failed", "queue_full")


async def test_a_process_has_room_for_so_many_messages(make, monkeypatch):
    monkeypatch.setattr(module, "TOTAL_LIMIT", 1)
    slow, other = held(), held()
    model = Script(slow, other)
    inbox = make(model)
    inbox.receive_message(message("a"))
    await until(lambda: len(model.requests) == 1)
    inbox.receive_message(message("b", GROUP, mentions_bot=True))
    await until(lambda: len(model.requests) == 2)
    model.answers += ["three"]
    inbox.receive_message(message("c"))
    inbox.receive_message(message("d", GROUP, mentions_bot=True))
    await until(lambda: not inbox._arriving)
    slow.set_result("one")
    other.set_result("two")
    await idle(inbox)
    states = {text: state for text, state, _ in await rows(direction="in")}
    assert states == {"a": "answered", "b": "answered", "c": "answered", "d": "failed"}


async def test_a_message_that_is_refused_leaves_no_run_behind_that_seems_to_go_on(
    make, monkeypatch
):
    monkeypatch.setattr(module, "TOTAL_LIMIT", 0)
    inbox = make(Script())
    inbox.receive_message(message("hi"))
    await idle(inbox)
    assert await rows() == [("hi", "failed", "queue_full")]
    assert not await sync_to_async(Run.objects.filter(state="running").exists)()


# --- What was left ------------------------------------------------------------------


async def test_what_an_earlier_process_left_is_taken_up_even_where_there_is_no_room(
    make, mailbox, monkeypatch
):
    monkeypatch.setattr(module, "CHAT_LIMIT", 1)
    await sync_to_async(accept)(*(message(text) for text in "abc"), process_id="dead")
    inbox = make(Script("one", "two", "three"))
    inbox.resume(PRIVATE.account)
    await until(lambda: len(mailbox.sent) == 3)
    await idle(inbox)
    assert mailbox.texts == ["one", "two", "three"]


async def test_what_an_earlier_process_left_is_answered_before_what_comes_now_and_is_its_history(
    make, mailbox
):
    await sync_to_async(accept)(message("earlier"), process_id="dead")
    model = Script("one", "two")
    inbox = make(model)
    inbox.resume(PRIVATE.account)
    inbox.receive_message(message("now"))
    await until(lambda: len(mailbox.sent) == 2)
    await idle(inbox)
    assert asked(model) == ["earlier", "now"]
    assert [one["role"] for one in model.requests[1].messages] == [
        "system",
        "user",
        "assistant",
        "user",
    ]


async def test_what_is_left_is_claimed_in_small_parts_and_answered_in_order_all_the_same(
    make, mailbox, monkeypatch
):
    monkeypatch.setattr(recovery, "CLAIMS_AT_ONCE", 1)
    others = [replace(PRIVATE, peer_id=f"9{number}") for number in range(3)]
    left = [*(message("other", chat) for chat in others), message("earlier")]
    await sync_to_async(accept)(*left, process_id="dead")
    model = Script(*["fine"] * 5)
    inbox = make(model)
    inbox.resume(PRIVATE.account)
    inbox.receive_message(message("now"))
    await until(lambda: len(mailbox.sent) == 5)
    await idle(inbox)
    assert [text for text in asked(model) if text != "other"] == ["earlier", "now"]


async def test_nothing_is_answered_before_what_could_not_be_claimed_yet(make, mailbox, monkeypatch):
    errors = ["the database is away"]

    def claim(*args):
        if errors:
            raise ValueError(*errors)
        return recovery.claim_messages(*args)

    monkeypatch.setattr(module, "claim_messages", claim)
    await sync_to_async(accept)(message("earlier"), process_id="dead")
    model = Script("one", "two")
    inbox = make(model)
    inbox.resume(PRIVATE.account)
    await until(lambda: not inbox._claiming[PRIVATE.account])
    inbox.receive_message(message("now"))
    await until(lambda: inbox._workers)
    errors.clear()
    inbox.resume(PRIVATE.account)
    await until(lambda: len(mailbox.sent) == 2)
    await idle(inbox)
    assert asked(model) == ["earlier", "now"]


async def test_while_it_ends_nothing_is_answered_before_what_is_not_claimed_any_more(make, mailbox):
    """Seen where processes were ended again and again with much to take up."""
    await sync_to_async(accept)(message("earlier"), process_id="dead")
    inbox, obeyed = make(Script("wrong")), held()
    command = asyncio.ensure_future(obeyed)
    said = SimpleNamespace(message=message("/help"), pk=0)
    inbox._commands[command] = SimpleNamespace(pk=0, pending=said)
    inbox.receive_message(message("now"))
    await until(lambda: inbox._workers)
    inbox.resume(PRIVATE.account)
    draining = asyncio.create_task(inbox.drain(5))
    await until(lambda: not inbox._claiming[PRIVATE.account])
    obeyed.set_result("")
    del inbox._commands[command]
    await draining
    assert mailbox.sent == []


async def test_what_is_settled_while_it_waits_is_passed_over_without_asking_the_model(
    make, mailbox
):
    slow = held()
    model = Script(slow, "three")
    inbox = make(model)
    inbox.receive_message(message("a"))
    await until(lambda: model.requests)
    inbox.receive_message(message("b"))
    await until(lambda: not inbox._arriving)
    pause = Pause(PauseReason.MUTED, timezone.now())
    await inbox.record.submit(pause_chat, PRIVATE, pause)
    inbox.receive_message(message("c"))
    slow.set_result("one")
    await idle(inbox)
    assert (mailbox.texts, len(model.requests)) == (["one", "three"], 2)
    assert (await rows(direction="in"))[1] == ("b", "silent", "paused")


async def test_what_is_in_its_own_hands_is_not_taken_up_twice(make, mailbox):
    first = held()
    model = Script(first)
    inbox = make(model)
    await inbox.record.renew_lease(alone=True)
    inbox.receive_message(message("hi"))
    await until(lambda: model.requests)
    inbox.resume(PRIVATE.account)
    first.set_result("hello")
    await idle(inbox)
    assert mailbox.texts == ["hello"]


# --- The end ------------------------------------------------------------------------


async def test_draining_lets_what_runs_finish_and_begins_nothing_more(make, mailbox):
    first = held()
    model = Script(first)
    inbox = make(model)
    inbox.receive_message(message("a"))
    inbox.receive_message(message("b"))
    await until(lambda: model.requests)
    draining = asyncio.create_task(inbox.drain(5))
    await asyncio.sleep(0)
    inbox.receive_message(message("c"))
    first.set_result("one")
    await draining
    await idle(inbox)
    assert mailbox.texts == ["one"]
    assert [(text, state) for text, state, _ in await rows(direction="in")] == [
        ("a", "answered"),
        ("b", "waiting"),
        ("c", "waiting"),
    ]


async def test_draining_gives_back_what_does_not_finish(make):
    model = Script(held())
    inbox = make(model)
    inbox.receive_message(message("hi"))
    await until(lambda: model.requests)
    await inbox.drain(0.01)
    assert await rows() == [("hi", "waiting", "private")]
    assert await sync_to_async(lambda: Run.objects.get().state)() == "interrupted"


async def test_an_event_that_comes_after_the_end_is_left_to_the_next_process(make):
    inbox = make(Script())
    await inbox.drain(0)
    inbox.take_up(HeldMessage(1, 1), 60)
    assert "event" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_what_was_given_back_is_answered_by_the_next_inbox(make, mailbox):
    model = Script(held())
    first = make(model)
    first.receive_message(message("hi"))
    await until(lambda: model.requests)
    await first.drain(0.01)
    second = make(Script("hello"))
    second.resume(PRIVATE.account)
    await until(lambda: mailbox.sent)
    await idle(second)
    assert mailbox.texts == ["hello"]
    assert await sync_to_async(Run.objects.count)() == 1


@pytest.mark.parametrize("client", ["was there", "has just come back"])
async def test_an_answer_that_ends_with_its_process_before_it_was_sent_is_sent_by_the_next(
    make, mailbox, client
):
    answer = held()
    model = Script(answer)
    first = make(model)
    first.receive_message(message("hi"))
    await until(lambda: model.requests)
    if client == "has just come back":
        mailbox.connected.clear()
        answer.set_result("hello")
        async with asyncio.timeout(PATIENCE):
            while ("hello", "pending", "") not in await rows():
                pass
    go_on = threading.Event()
    slow = first.record.submit_batched(lambda items: [go_on.wait(PATIENCE) for _ in items], None)
    await until(lambda: not first.record._waiting)
    mailbox.connected.set()
    if client == "was there":
        answer.set_result("hello")
    await until(lambda: first.record._waiting)
    draining = asyncio.create_task(first.drain(0))
    for _ in range(10):
        await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(slow, draining)
    assert mailbox.sent == []
    second = make(Script())
    second.resume(PRIVATE.account)
    await until(lambda: mailbox.sent)
    await idle(second)
    assert (mailbox.texts, await rows()) == (
        ["hello"],
        [("hi", "answered", "private"), ("hello", "delivered", "")],
    )

"""Messages of one person that are answered together, and those that wait for words to come."""

import asyncio

import pytest
from asgiref.sync import sync_to_async

from agent.domain import answer_triggers
from agent.llm.requests.messages import strip_frame
from agent.models import Manners, Message, Run
from agent.record.runs.merged import HeldMessage, merge_messages
from tests.agent.chat.inboxes import asked, held, idle, rows, until
from tests.agent.talk import GROUP, PRIVATE, Script, accept, message
from tools.models import ConfigVersion

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def merge_within(seconds: float) -> None:
    Manners.objects.create(name="merge", merge_seconds=seconds)
    ConfigVersion.objects.update_or_create(pk=1, defaults={"number": 7})


async def ends(**where: object) -> list[tuple[str, str, str]]:
    return await rows(direction="in", **where)


@pytest.mark.parametrize("chat", [PRIVATE, GROUP])
async def test_what_one_person_says_within_the_window_is_answered_together(make, mailbox, chat):
    await merge_within(0.2)
    model = Script("hello")
    inbox = make(model)
    for text in ("hi", "it is", "me"):
        inbox.receive_message(message(text, chat, mentions_bot=text == "hi"))
    await idle(inbox)
    assert len(model.requests) == len(mailbox.sent) == 1
    said = [strip_frame(one["content"]) for one in model.requests[0].messages[1:]]
    assert said == ["hi", "it is", "me"]
    found = await ends()
    assert [one[:2] for one in found] == [(text, "answered") for text in ("hi", "it is", "me")]
    assert [reason for *_, reason in found] == [
        "merged",
        "merged",
        "private" if chat is PRIVATE else "follow_up",
    ]
    run = await sync_to_async(Run.objects.get)()
    of_run = Message.objects.filter(run=run, in_history=True, direction="in")
    assert await sync_to_async(of_run.count)() == 3


async def test_without_a_row_nothing_waits(make, mailbox):
    inbox = make(Script("one", "two"))
    inbox.receive_message(message("a"))
    inbox.receive_message(message("b"))
    await idle(inbox)
    assert mailbox.texts == ["one", "two"]


async def test_another_persons_message_ends_the_group(make):
    await merge_within(5)
    model = Script("one", "two")
    inbox = make(model)
    for text, sender in (("a", "1"), ("b", "1"), ("c", "2")):
        inbox.receive_message(message(text, GROUP, sender_id=sender, mentions_bot=True))
    await until(lambda: len(model.requests) == 1)
    assert asked(model) == ["b"]
    await inbox.drain(5)
    assert (await ends())[2] == ("c", "waiting", "mention")


async def test_what_comes_while_an_answer_is_made_is_answered_together_afterwards(make, mailbox):
    await merge_within(0.05)
    first = held()
    model = Script(first, "two")
    inbox = make(model)
    inbox.receive_message(message("a"))
    await until(lambda: model.requests)
    for text in ("b", "c", "d"):
        inbox.receive_message(message(text))
    await until(lambda: not inbox._arriving)
    first.set_result("one")
    await idle(inbox)
    assert (asked(model), mailbox.texts) == (["a", "d"], ["one", "two"])
    assert [reason for *_, reason in await ends()] == ["private", "merged", "merged", "private"]


async def test_draining_does_not_wait_for_further_words(make, mailbox):
    await merge_within(60)
    inbox = make(Script())
    inbox.receive_message(message("a"))
    await until(lambda: inbox._under_way)
    async with asyncio.timeout(20):
        await inbox.drain(40)
    assert (await ends(), mailbox.sent) == ([("a", "waiting", "private")], [])


# --- A mention without words ----------------------------------------------------------


async def test_a_mention_without_words_is_answered_with_the_words_that_follow(make, mailbox):
    model = Script("hello")
    inbox = make(model)
    inbox.receive_message(message("", GROUP, mentions_bot=True))
    inbox.receive_message(message("what time is it", GROUP))
    await idle(inbox)
    assert (asked(model), len(mailbox.sent)) == (["what time is it"], 1)
    assert [reason for *_, reason in await ends()] == ["merged", "follow_up"]


async def test_a_mention_without_words_is_answered_if_none_follow(make, mailbox, monkeypatch):
    monkeypatch.setattr(answer_triggers, "NEXT_WORDS", 0.02)
    inbox = make(Script("yes?"))
    inbox.receive_message(message("", GROUP, mentions_bot=True))
    inbox.receive_message(message("something else", GROUP, sender_id="2"))
    await idle(inbox)
    assert [text.endswith("yes?") for text in mailbox.texts] == [True]


# --- After a crash --------------------------------------------------------------------


async def test_a_message_is_taken_up_with_those_that_are_merged_into_it(make, mailbox):
    accepted = await sync_to_async(accept)(message("a"), message("b"), process_id="dead")
    group = tuple(HeldMessage(one.pk, 1) for one in accepted)
    await sync_to_async(merge_messages)(group)
    assert await ends() == [("a", "silent", "merged"), ("b", "waiting", "private")]
    model = Script("hello")
    inbox = make(model)
    inbox.resume(PRIVATE.account)
    await until(lambda: mailbox.sent)
    await idle(inbox)
    assert mailbox.texts == ["hello"]
    assert await ends() == [("a", "answered", "merged"), ("b", "answered", "private")]


async def test_what_waited_for_more_words_is_merged_after_a_crash_too(make, mailbox):
    await merge_within(10)
    await sync_to_async(accept)(message("a"), message("b"), process_id="dead")
    inbox = make(Script("hello"))
    inbox.resume(PRIVATE.account)
    await until(lambda: mailbox.sent)
    await idle(inbox)
    assert (mailbox.texts, [one[1] for one in await ends()]) == (["hello"], ["answered"] * 2)


async def test_a_message_in_other_hands_is_not_merged(make):
    accepted = await sync_to_async(accept)(message("a"), message("b"), message("c"))
    lost, *others = [HeldMessage(one.pk, 1) for one in accepted]
    await sync_to_async(Message.objects.filter(pk=lost.message_pk).update)(claim_number=2)
    kept = await sync_to_async(merge_messages)((lost, *others))
    assert kept == [one.message_pk for one in others]
    assert [state for _, state, _ in await ends()] == ["waiting", "silent", "waiting"]

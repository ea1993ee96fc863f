"""Summaries and notes that are made behind the conversation."""

import json
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.domain.errors import LLMError
from agent.domain.notes import NoteViewer
from agent.memory.recall import RecallRequest, recall_notes
from agent.memory.service import FIRST_PAUSE, MemoryJobs, SummaryPolicy
from agent.memory.summary_store import (
    BATCH_CHARS,
    ConversationBatch,
    DigestMessage,
    HistoryWindow,
    NewDigest,
    find_unread,
    find_unsummarized,
    save_digests,
    whole_exchanges,
)
from agent.models import ChatSession, Digest, Message, Note, Run
from agent.record.chats.chat_record import MessageRecall, record_recall
from agent.record.record import Record
from tests.agent.notes import ANN_IN_GROUP, OTHER_GROUP, texts
from tests.agent.talk import Script

pytestmark = pytest.mark.django_db
WINDOW = HistoryWindow(4, 10_000)


def turn(
    session: ChatSession,
    text: str,
    answer: str = "好的",
    sender_id: str = "20001",
    name: str = "Ann",
) -> None:
    """One exchange of the conversation, on record."""
    run = Run.objects.create(session=session, started_at=timezone.now())
    usual: dict[str, Any] = {
        "session": session,
        "run": run,
        "in_history": True,
        "created_at": timezone.now(),
    }
    Message.objects.create(
        direction="in", state="answered", text=text, sender_id=sender_id, sender_name=name, **usual
    )
    Message.objects.create(direction="out", state="delivered", text=answer, **usual)


def turns(session: ChatSession, *texts: str) -> None:
    for text in texts:
        turn(session, text)


@pytest.fixture
def session(db: None) -> ChatSession:
    return ChatSession.objects.create(
        kind="group", peer_id="30001", account="10001", last_message_at=timezone.now()
    )


# --- What is due ------------------------------------------------------------------


def test_what_is_in_the_window_is_not_summarised(session: ChatSession):
    for number in range(2):
        turn(session, f"第{number}句")
    assert find_unsummarized(session.pk, WINDOW, 1) is None


def test_what_fell_out_is_due_once_there_is_enough(session: ChatSession):
    for number in range(5):
        turn(session, f"第{number}句")
    batch = find_unsummarized(session.pk, WINDOW, 6)
    assert batch is not None
    assert [said.text for said in batch.said if said.sender_id] == ["第0句", "第1句", "第2句"]
    assert find_unsummarized(session.pk, WINDOW, 7) is None


def test_the_first_summary_of_a_long_past_begins_one_batch_back_and_the_next_one_behind_it(
    session: ChatSession,
):
    for number in range(150):
        turn(session, f"第{number}句")
    first = find_unsummarized(session.pk, WINDOW, 10)
    assert first is not None
    assert (first.said[0].text, first.said[-2].text) == ("第48句", "第147句")
    save_digests(NewDigest(first, "m", "摘要"))
    for number in range(150, 300):
        turn(session, f"第{number}句")
    second = find_unsummarized(session.pk, WINDOW, 10)
    assert second is not None
    assert (second.before, second.said[0].text) == ("摘要", "第148句")


def test_a_window_that_is_full_of_words_lets_fall_out_too(session: ChatSession):
    for text in ("a", "b" * 900, "c"):
        turn(session, text, answer="")
    batch = find_unsummarized(session.pk, HistoryWindow(100, 600), 1)
    assert batch is not None
    assert [said.text for said in batch.said if said.sender_id] == ["a", "b" * 900]


def summarised(session: ChatSession, *texts: str) -> ConversationBatch:
    """The batch of a summary that was made of all of ``texts``."""
    turns(session, *texts)
    batch = find_unsummarized(session.pk, HistoryWindow(0, 0), 1)
    assert batch is not None
    save_digests(NewDigest(batch, "m", f"摘要：{'，'.join(texts)}"))
    return batch


def recall(text: str) -> None:
    Message.objects.filter(text=text).update(message_id="5")
    record_recall(MessageRecall("10001", "5"))


def test_a_summary_is_made_anew_without_what_was_recalled(session: ChatSession):
    summarised(session, "a", "b")
    recall("a")
    batch = find_unsummarized(session.pk, HistoryWindow(0, 0), 1)
    assert batch is not None
    assert [one.text for one in batch.said if one.sender_id] == ["b"]
    assert batch.before == ""


def test_a_reading_of_words_that_are_recalled_meanwhile_is_not_kept(session: ChatSession):
    turns(session, "a", "b")
    summary = find_unsummarized(session.pk, HistoryWindow(0, 0), 1)
    notes = find_unread(session.pk, 1)
    recall("b")
    for one in filter(None, (summary, notes)):
        save_digests(NewDigest(one, "m", "secret"))
    assert not Digest.objects.exists()


def test_after_a_reset_summaries_begin_afresh(session: ChatSession):
    old = summarised(session, "a", "b")
    session.context_after = Message.objects.latest("pk").pk
    session.save()
    save_digests(NewDigest(replace(old, said=old.said[:2]), "m", "late"))
    assert Digest.objects.count() == 1
    assert find_unsummarized(session.pk, HistoryWindow(0, 0), 1) is None
    assert summarised(session, "c").before == ""
    wish = RecallRequest(NoteViewer("onebot", "10001", "group:30001", ""), "", 0, session.pk)
    assert "摘要：c" in recall_notes(replace(wish, is_reset=True)).summary
    assert Digest.objects.count() == 2


def test_what_the_owner_wrote_by_hand_is_read_as_the_bots_words(session: ChatSession):
    turns(session, "a")
    run = Run.objects.latest("pk")
    Message.objects.filter(run=run, direction="out").update(
        direction="in", reason="own_message", sender_id="10001"
    )
    batch = find_unread(session.pk, 1)
    assert batch is not None
    assert [one.sender_id for one in batch.said] == ["20001", ""]


def test_a_reading_is_bounded_and_ends_between_two_exchanges():
    said = [DigestMessage(pk, pk // 2, "长" * 900, "1") for pk in range(100)]
    taken = whole_exchanges(said)
    assert len(taken) % 2 == 0
    assert sum(len(one.text) for one in taken) <= BATCH_CHARS
    assert len(whole_exchanges([DigestMessage(1, 1, "x" * 100_000, "1")])) == 1


def test_notes_are_due_after_some_turns_and_a_backlog_is_left_out(session: ChatSession):
    for number in range(150):
        turn(session, f"第{number}句")
    batch = find_unread(session.pk, 3)
    assert batch is not None
    assert [said.text for said in batch.said if said.sender_id][-1] == "第149句"
    assert len(batch.said) == 200
    assert find_unread(session.pk, 151) is None


def test_what_is_due_does_not_depend_on_how_much_one_reading_takes(session: ChatSession):
    for number in range(110):
        turn(session, f"第{number}句" + "长" * 900)
    assert find_unsummarized(session.pk, WINDOW, 210) is not None
    assert find_unread(session.pk, 105) is not None


# --- Summaries --------------------------------------------------------------------


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def upkept(
    record: Record,
    session: ChatSession,
    model: Script,
    habits: SummaryPolicy,
    clock: Clock,
    turns: int = 1,
) -> MemoryJobs:
    upkeep = MemoryJobs(record, lambda: model, habits, clock)
    await again(upkeep, session, turns)
    return upkeep


async def again(upkeep: MemoryJobs, session: ChatSession, turns: int = 1) -> None:
    for _ in range(turns):
        upkeep.after_turn(session.pk, ANN_IN_GROUP)
    await upkeep.drain(10)


@pytest.fixture
def long_chat(transactional_db: None) -> ChatSession:
    session = ChatSession.objects.create(
        kind="group", peer_id="30001", account="10001", last_message_at=timezone.now()
    )
    for number in range(5):
        turn(session, f"我对花生过敏{number}")
    return session


SUMMARISING = SummaryPolicy(WINDOW, summary_after=2)


async def test_what_fell_out_is_summarised_once_and_the_messages_stay(
    record: Record, long_chat: ChatSession, clock: Clock
):
    model = Script("Ann(20001) 对花生过敏")
    upkeep = await upkept(record, long_chat, model, SUMMARISING, clock)
    await again(upkeep, long_chat)
    digest = await Digest.objects.aget()
    assert (digest.kind, digest.text, digest.message_count, digest.model) == (
        "summary",
        "Ann(20001) 对花生过敏",
        6,
        "script",
    )
    assert digest.input_tokens == 10
    assert len(model.requests) == 1
    assert await Message.objects.acount() == 10
    material = json.loads(model.requests[0].messages[1]["content"])
    assert [said["text"] for said in material["messages"]][::2] == [
        f"我对花生过敏{n}" for n in range(3)
    ]


async def test_the_next_summary_goes_on_from_the_last(
    record: Record, long_chat: ChatSession, clock: Clock
):
    model = Script("一", "二")
    upkeep = await upkept(record, long_chat, model, SUMMARISING, clock)
    await sync_to_async(turns)(long_chat, "以后一", "以后二")
    await again(upkeep, long_chat)
    first, second = [digest async for digest in Digest.objects.order_by("pk")]
    assert second.first_run == first.last_run + 1
    assert json.loads(model.requests[1].messages[1]["content"])["summary"] == "一"


@pytest.mark.parametrize("answer", [LLMError("overloaded"), "", "``` ```"])
async def test_a_failure_leaves_everything_as_it_was_and_is_tried_again_later(
    record: Record, long_chat: ChatSession, clock: Clock, answer: Any
):
    model = Script(answer, "摘要")
    upkeep = await upkept(record, long_chat, model, SUMMARISING, clock)
    assert not await Digest.objects.aexists()
    await again(upkeep, long_chat)
    assert len(model.requests) == 1
    clock.now = FIRST_PAUSE
    await again(upkeep, long_chat)
    assert (await Digest.objects.aget()).text == "摘要"


async def test_nothing_is_asked_when_everything_is_off(
    record: Record, long_chat: ChatSession, clock: Clock
):
    model = Script()
    await upkept(record, long_chat, model, SummaryPolicy(WINDOW), clock, turns=50)
    assert model.requests == []


# --- Notes ------------------------------------------------------------------------


NOTING = SummaryPolicy(WINDOW, extract_turns=3)


def found(*items: Any) -> str:
    return json.dumps(list(items), ensure_ascii=False)


async def test_what_a_user_said_becomes_a_note_that_names_its_message(
    record: Record, long_chat: ChatSession, clock: Clock
):
    model = Script(
        f"```json\n{found({'message': 9, 'text': 'Ann 对花生过敏', 'tags': ['饮食']})}\n```"
    )
    await upkept(record, long_chat, model, NOTING, clock, turns=3)
    note = await Note.objects.select_related("message").aget()
    assert (note.text, note.tags, note.source, note.said_by) == (
        "Ann 对花生过敏",
        ["饮食"],
        "extracted",
        "20001",
    )
    assert note.message is not None
    assert note.message.text == "我对花生过敏4"
    assert (await Digest.objects.aget()).note_count == 1
    assert await sync_to_async(texts)(OTHER_GROUP, "花生过敏") == []


async def test_what_nobody_said_is_not_noted(record: Record, long_chat: ChatSession, clock: Clock):
    claims = [
        {"message": 2, "text": "机器人说好的"},
        {"message": 99, "text": "我对花生过敏"},
        {"message": "1", "text": "我对花生过敏"},
        {"message": 1, "text": "喜欢吃苹果派和香草冰淇淋"},
        {"message": 1, "text": "花生" * 500},
        {"message": 1, "text": ["花生"]},
        "花生",
    ]
    await upkept(record, long_chat, Script(found(*claims)), NOTING, clock, turns=3)
    assert not await Note.objects.aexists()
    assert (await Digest.objects.aget()).kind == "extraction"


async def test_what_is_noted_already_is_not_noted_again(
    record: Record, long_chat: ChatSession, clock: Clock
):
    same = [
        {"message": 1, "text": text}
        for text in ("Ann 对花生过敏", "Ann 对花生过敏。", "Ann对花生过敏！")
    ]
    upkeep = await upkept(
        record, long_chat, Script(found(*same), found(same[0])), NOTING, clock, turns=3
    )
    await sync_to_async(turns)(long_chat, *["我对花生过敏"] * 3)
    await again(upkeep, long_chat, turns=3)
    assert await Note.objects.acount() == 1
    assert await Digest.objects.acount() == 2


async def test_an_answer_that_is_no_list_is_asked_for_again_later(
    record: Record, long_chat: ChatSession, clock: Clock
):
    model = Script("没有什么可记的", found())
    upkeep = await upkept(record, long_chat, model, NOTING, clock, turns=3)
    assert not await Digest.objects.aexists()
    clock.now = FIRST_PAUSE
    await again(upkeep, long_chat)
    assert (await Digest.objects.aget()).note_count == 0

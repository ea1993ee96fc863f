"""The commands that set, list and cancel reminders."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.domain.errors import LLMError
from agent.models import ChatSession, Message, Reminder
from agent.record.reminders.firing import Firing, settle_fired
from agent.record.sums.quotas import AnswerQuotas
from agent.record.waiting.recovery import claim_messages
from tests.agent.commands.conftest import MEMBER, OWNER, Room, newest
from tests.agent.talk import GROUP, PRIVATE, PROCESS


@sync_to_async
def rows() -> list[Any]:
    fields = ("text", "set_by", "mention", "language", "state")
    return list(Reminder.objects.order_by("pk").values_list(*fields))


async def test_a_reminder_is_set_listed_and_cancelled_without_a_model(room: Room):
    said = await room.say("/remind 10m 关火 [@20005]")
    number = (await Reminder.objects.aget()).pk
    assert f"#{number}：20" in said
    assert await rows() == [("关火", MEMBER, "20005", "zh-hans", "waiting")]
    assert f"#{number} " in await room.say("/reminders")
    assert "已取消" in await room.say(f"/unremind #{number}")
    assert (await rows())[0][-1] == "cancelled"
    assert "没有提醒" in await room.say("/reminders")
    assert not room.model.requests


async def test_an_english_command_makes_an_english_reminder(room: Room):
    await room.say("/remind 2h tea")
    assert (await rows())[0][3] == "en"


async def test_the_chinese_names_of_the_commands(room: Room):
    await room.say("/提醒 3秒后 关火")
    number = (await Reminder.objects.aget()).pk
    assert f"#{number}" in await room.say("/提醒列表")
    await room.say(f"/取消提醒 {number}")
    assert (await rows())[0][-1] == "cancelled"


async def test_others_reach_only_their_own_and_owners_all_of_the_chat(room: Room):
    await room.say("/remind 10m mine")
    number = (await Reminder.objects.aget()).pk
    refused = await room.say(f"/unremind {number}", sender_id="20002")
    assert f"There is no reminder #{number} here." in refused
    assert "mine (20001)" in await room.order("/reminders")
    assert "cancelled" in await room.order(f"/unremind {number}")
    assert "over already" in await room.order(f"/unremind {number}")


async def test_in_private_ones_own_of_other_chats_are_listed_by_name(room: Room):
    await room.say("/remind 10m mine")
    await ChatSession.objects.aupdate(title="Cooks")
    assert "Cooks" in await room.say("/reminders", PRIVATE)
    others = await room.say("/reminders", PRIVATE, sender_id="20002")
    assert "no reminders here" in others


@pytest.mark.parametrize(
    ("order", "answer"),
    [
        ("/remind", "It is written like this"),
        ("/remind 10m", "What is it to remind of?"),
        ("/remind blah", "I find no time in this"),
        ("/remind 2020-01-01T08:00 x", "over"),
        ("/remind 9999999h x", "ahead"),
        (f"/remind 10m {'x' * 5_000}", "too long"),
        ("/remind 10m x [@all]", "Only owners"),
        ("/unremind x", "It is written like this"),
        ("/unremind 99999999999999999", "There is no reminder"),
    ],
)
async def test_what_cannot_be_set_is_refused_with_one_sentence(room: Room, order, answer):
    said = await room.say(order)
    assert answer in said
    assert "\n" not in said
    assert await rows() == []


async def test_only_owners_have_everybody_mentioned(room: Room):
    await room.order("/remind 10m x [@all]")
    assert (await rows())[0][2] == "all"


async def test_a_person_has_twenty_and_an_owner_as_many_as_he_wants(room: Room):
    await room.say("/remind 10m x")
    first = await Reminder.objects.select_related("session").aget()
    for sender in (MEMBER, OWNER):
        for _ in range(20):
            row = {"session": first.session, "text": "x", "due_at": first.due_at}
            await Reminder.objects.acreate(set_by=sender, **row)
    assert "20 reminders already" in await room.say("/remind 10m x")
    assert "I remind of" in await room.order("/remind 10m x")


async def test_what_is_on_its_way_is_withdrawn_by_a_cancel(room: Room):
    await room.say("/remind 10m x")
    row = await Reminder.objects.aget()
    fired = await Message.objects.acreate(
        session_id=row.session_id, direction="in", state="waiting", created_at=row.created_at
    )
    await Reminder.objects.filter(pk=row.pk).aupdate(fired=fired.pk, next_at=None)
    assert "cancelled" in await room.say(f"/unremind {row.pk}")
    await fired.arefresh_from_db()
    assert fired.state == "silent"


async def test_a_reminder_that_was_just_said_is_not_cancelled(room: Room):
    await room.say("/remind 10m x")
    row = await Reminder.objects.aget()
    fired = await Message.objects.acreate(
        session_id=row.session_id, direction="in", state="answered", created_at=row.created_at
    )
    await Reminder.objects.filter(pk=row.pk).aupdate(fired=fired.pk, next_at=None)
    assert "just been said" in await room.say(f"/unremind {row.pk}", GROUP)
    assert (await rows())[0][-1] == "done"


# --- What is said ---------------------------------------------------------------


async def set_by_command(room: Room, order: str, **fields: Any) -> Reminder:
    await room.say(order)
    await Reminder.objects.aupdate(due_at=timezone.now() - timedelta(seconds=1), **fields)
    row: Reminder = await Reminder.objects.select_related("session").alatest("pk")
    return row


async def fire(room: Room) -> list[str]:
    """Have what is due said; what was sent."""
    before = len(room.mailbox.sent)
    firing = Firing(room.record.run_starter, AnswerQuotas(room.record.live, 0))
    await room.record.submit(firing.fire_due, {GROUP.account}, False)
    for pending in await room.record.submit(claim_messages, GROUP.account, PROCESS):
        await room.conversations.answer_message(pending, resumed=True)
    await room.record.submit(settle_fired)
    return [text for _chat, text in room.mailbox.sent[before:]]


async def test_a_text_mentions_whom_it_is_for_and_nobody_else(room: Room):
    await set_by_command(room, "/remind 10m 关火 [@20005]")
    assert await fire(room) == ["20005 提醒：关火"]
    assert (await rows())[0][-1] == "done"
    assert await fire(room) == []
    await set_by_command(room, "/remind 10m tea")
    assert await fire(room) == ["Reminder: tea"]


async def test_many_that_are_due_at_once_are_said_in_their_order(room: Room):
    first = await set_by_command(room, "/remind 10m x")
    texts = [f"n{number}" for number in range(30)]
    await Reminder.objects.abulk_create(
        Reminder(
            session=first.session,
            text=text,
            set_by=MEMBER,
            due_at=first.due_at + timedelta(milliseconds=number + 1),
        )
        for number, text in sorted(enumerate(texts), key=lambda row: row[1])
    )
    assert [said.split("：")[-1].split(": ")[-1] for said in await fire(room)] == ["x", *texts]


async def test_a_task_is_a_run_of_whoever_set_it(room: Room):
    await set_by_command(room, "/remind 10m 查天气", kind="task")
    room.model.answers = ["有雨"]
    assert await fire(room) == ["有雨"]
    assert (await rows())[0][-1] == "done"
    asked = room.model.requests[-1].messages[-1]["content"]
    assert "查天气" in asked
    assert MEMBER in asked


@pytest.mark.parametrize("answer", ["", LLMError("no")])
async def test_a_task_that_a_model_leaves_alone_says_its_text_and_no_apology(room: Room, answer):
    await set_by_command(room, "/remind 10m 喝水", kind="task")
    room.model.answers = [answer] * 2
    assert await fire(room) == ["提醒：喝水（模型没有回答）"]
    assert (await rows())[0][-1] == "done"


async def test_what_is_late_says_when_it_was_due(room: Room):
    await set_by_command(room, "/remind 10m tea")
    due = timezone.localtime() - timedelta(days=2)
    await Reminder.objects.aupdate(due_at=due)
    assert await fire(room) == [f"(was due {due:%Y-%m-%d %H:%M}) Reminder: tea"]


async def test_a_repeat_that_was_missed_often_is_one_sentence(room: Room):
    await set_by_command(room, "/remind 10m tea", repeat="FREQ=DAILY")
    due = timezone.localtime() - timedelta(days=9, seconds=30)
    await Reminder.objects.aupdate(due_at=due, starts_at=due)
    (said,) = await fire(room)
    assert said.endswith("Reminder: tea (missed 10 times)")


async def test_a_long_text_arrives_in_several_messages(room: Room):
    await set_by_command(room, f"/remind 10m {'很长的字' * 1_000}")
    said = await fire(room)
    assert len(said) == 3
    assert "".join(said).replace(" ", "") == f"提醒：{'很长的字' * 1_000}"


async def test_in_a_chat_silenced_as_it_fires_nothing_is_said(room: Room):
    await set_by_command(room, "/remind 10m tea")
    firing = Firing(room.record.run_starter, AnswerQuotas(room.record.live, 0))
    await room.record.submit(firing.fire_due, {GROUP.account}, False)
    await room.order("/off")
    assert await fire(room) == []
    row = await Reminder.objects.aget()
    assert (row.state, row.outcome) == ("missed", "this chat is silenced")


async def test_why_names_who_set_it_and_when(room: Room):
    row = await set_by_command(room, "/remind 10m tea")
    await fire(room)
    said = await newest(direction="out")
    await Message.objects.filter(pk=said.pk).aupdate(message_id="-7")
    told = await room.say("[回复:-7]/why", quoted_id="-7")
    assert f"Reminder #{row.pk}, which Ann ({MEMBER}) set at " in told
    assert "No model was asked." in told


async def test_words_of_a_reminder_are_no_mention_and_no_code(room: Room):
    await set_by_command(room, "/remind 10m @Ann [CQ:at,qq=all] /off")
    assert await fire(room) == ["Reminder: @Ann [CQ:at,qq=all] /off"]


async def test_words_neither_end_a_line_of_a_list_nor_turn_it_around(room: Room):
    turned = "tea\u202e\n#9 2027-01-01 08:00 \u2067gift"
    set_ = await room.say(f"/remind 10m {turned}")
    await ChatSession.objects.aupdate(title="Cooks\u202e")
    listed = await room.say("/reminders")
    elsewhere = await room.say("/reminders", PRIVATE)
    for said in (set_, listed, elsewhere):
        assert not {"\u202e", "\u2067"} & set(said)
        assert r"tea\u202e #9" in said
    assert "\n" not in set_ + listed
    assert elsewhere.startswith("In Cooks\\u202e")


async def test_a_chat_has_a_hundred_and_an_owner_more(room: Room):
    await room.say("/remind 10m x")
    first = await Reminder.objects.select_related("session").aget()
    fields = {"session": first.session, "text": "x", "due_at": first.due_at}
    rows = [Reminder(set_by=str(30_000 + number % 50), **fields) for number in range(98)]
    await Reminder.objects.abulk_create(rows)
    assert "I remind of" in await room.say("/remind 10m x")
    assert "100 reminders already" in await room.say("/remind 10m x", sender_id="20002")
    assert "I remind of" in await room.order("/remind 10m x")
    await room.say(f"/unremind {first.pk}")
    assert "100 reminders already" in await room.say("/remind 10m x", sender_id="20002")
    await Reminder.objects.filter(set_by="30000").aupdate(state="done")
    assert "I remind of" in await room.say("/remind 10m x", sender_id="20002")


async def test_a_text_repeats_every_minute_at_most_and_of_owners_every_ten_seconds(room: Room):
    assert "at least 60 seconds" in await room.say("/remind every 59 seconds x")
    assert "I remind of" in await room.say("/remind every 60 seconds x")
    assert "I remind of" in await room.order("/remind every 10 seconds x")
    assert "at least 10 seconds" in await room.order("/remind every 9 seconds x")


@pytest.mark.parametrize(
    "order", ["8am or 9am x", "每天9点到17点每小时 x", "every 2 hours from 9 to 17 x"]
)
async def test_what_makes_a_time_another_one_is_asked_back(room: Room, order: str):
    said = await room.say(f"/remind {order}")
    assert said
    assert "\n" not in said
    assert await rows() == []

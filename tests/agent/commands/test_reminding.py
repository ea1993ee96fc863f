"""The commands that set, list and cancel reminders."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agent.models import ChatSession, Message, Reminder
from tests.agent.commands.conftest import MEMBER, OWNER, Room
from tests.agent.talk import GROUP, PRIVATE


@sync_to_async
def rows() -> list[Any]:
    fields = ("text", "set_by", "mention", "language", "state")
    return list(Reminder.objects.order_by("pk").values_list(*fields))


async def test_a_reminder_is_set_listed_and_cancelled_without_a_model(room: Room):
    said = await room.say("/remind 10m 关火 [@20005]")
    number = (await Reminder.objects.aget()).pk
    assert f"#{number}: at 20" in said
    assert await rows() == [("关火", MEMBER, "20005", "zh-hans", "waiting")]
    assert f"#{number} " in await room.say("/reminders")
    assert "cancelled" in await room.say(f"/unremind #{number}")
    assert (await rows())[0][-1] == "cancelled"
    assert "no reminders here" in await room.say("/reminders")
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

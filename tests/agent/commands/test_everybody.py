"""The commands for everybody."""

import pytest
from asgiref.sync import sync_to_async

from agent.models import ChatSession, Message
from agent.record.waiting.command_orders import carry_out_command
from tests.agent.commands.conftest import MEMBER, newest
from tests.agent.talk import GROUP, PRIVATE

pytestmark = pytest.mark.django_db(transaction=True)


async def test_help_lists_what_its_sender_may_use(room):
    assert "/why" in (told := await room.say("/help"))
    assert "/deny" not in told
    assert "/deny" in await room.order("/help")


async def test_a_command_and_its_answer_are_on_record_and_no_history(room):
    told = await room.say("/help")
    said, answer = await newest(direction="in"), await newest(direction="out")
    assert (said.state, said.reason, said.in_history) == ("answered", "command", False)
    assert (answer.state, answer.in_history, answer.run_id) == ("delivered", False, said.run_id)
    assert said.run.final_text in told
    assert (said.run.state, said.run.model_calls) == ("finished", 0)


async def test_reset_lets_the_context_begin_anew_and_deletes_nothing(room):
    room.model.answers = ["hello"]
    await room.say("hi", PRIVATE)
    await sync_to_async(ChatSession.objects.update)(is_continuing=True, discovered_tools=["x"])
    assert "Nothing was deleted" in await room.say("/reset", PRIVATE)
    said = await newest(direction="in")
    chat = said.session
    kept = (chat.context_after, chat.is_continuing, chat.discovered_tools)
    assert kept == (said.pk, False, [])
    assert await Message.objects.filter(text__in=("hi", "hello")).acount() == 2


async def test_stop_says_whether_there_was_anything_to_stop(room):
    assert "No answer was under way" in await room.order("/stop")
    assert "No answer to you was under way" in await room.say("/stop")
    room.stopped = True
    assert "Stopped." in await room.say("/stop")


async def test_members_stop_their_own_answers_and_who_decides_for_the_chat_any(room):
    for role in ("member", "", "admin", "owner"):
        await room.say("/stop", sender_role=role)
    await room.order("/stop")
    await room.say("/stop", PRIVATE)
    assert room.askers == [MEMBER, MEMBER, None, None, None, None]


async def test_a_group_is_reset_by_its_managers_and_the_owners_alone(room):
    room.model.answers = ["hello"]
    await room.say("hi", mentions_bot=True)
    for role in ("member", ""):
        assert "Only my owners" in await room.say("/reset", sender_role=role)
        assert "/reset" not in await room.say("/help", sender_role=role)
    assert (await newest(direction="in")).session.context_after is None
    for role in ("admin", "owner"):
        assert "Nothing was deleted" in await room.say("/reset", sender_role=role)
    assert "Nothing was deleted" in await room.order("/reset")


async def test_status_tells_persona_limits_and_silence(room):
    told = await room.say("/status")
    assert "default" in told
    assert "script" in told
    assert "1 of 50 today" in told
    assert "without a limit" in await room.order("/status")
    await room.order("/off")
    assert "silenced, by “group:30001 (10001)”" in await room.order("/status")


@pytest.mark.parametrize(("said", "is_chinese"), [("/帮助", True), ("/help", False)])
async def test_it_answers_in_the_language_of_the_command(room, said, is_chinese):
    await room.say("[图片]")
    assert ("/帮助" in await room.say(said)) == is_chinese


async def test_a_few_chinese_messages_make_the_answer_chinese(room):
    await room.say("今天天气不错")
    assert "/帮助" in await room.say("/help")


async def test_commands_count_towards_the_limits_of_others_than_owners(room):
    told = [await room.say("/help") for _ in range(12)]
    assert "/why" in told[9]
    assert "try again in a minute" in told[10]  # once
    assert told[11] == ""
    assert all([await room.order("/help") for _ in range(12)])


async def test_an_unknown_command_is_an_ordinary_message(room):
    room.model.answers = ["hm?"]
    assert "hm?" in await room.say("/dance", PRIVATE)
    assert await room.say("/dance", GROUP) == ""
    assert (await newest(direction="in")).reason == "not_addressed"


async def test_the_effect_is_not_repeated_when_the_answer_was_lost_in_a_crash(room):
    """The words are kept with the change, so that a run that is taken up again only sends them."""
    await room.say("/help")
    run = (await newest(direction="in")).run
    again = await sync_to_async(carry_out_command)(
        run.pk, lambda: pytest.fail("it was carried out twice")
    )
    assert again == run.final_text

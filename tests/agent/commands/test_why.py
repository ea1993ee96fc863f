"""Why: what the record says of one message of the chat, and of no other chat."""

import pytest
from asgiref.sync import sync_to_async
from django.test import override_settings
from django.utils import timezone

from agent.domain.budgets import BudgetAction
from agent.domain.errors import BudgetSpent
from agent.llm.requests.messages import system_message
from agent.models import Approval, ChatSession, Manners, Message, Run, Step, ToolCall
from agent.record.runs.why import count_history, find_shown
from tests.agent.commands.conftest import OWNER, newest
from tests.agent.talk import GROUP, PRIVATE
from tools.text.fences import FenceKind, fence_values

pytestmark = pytest.mark.django_db(transaction=True)
OTHER_GROUP = GROUP.__class__("10001", "group", "30002")


async def answered(room, text="hi", answer="hello", chat=GROUP, **fields):
    """An answer to a member on record; its run."""
    room.model.answers = [answer]
    await room.say(text, chat, mentions_bot=True, **fields)
    return (await newest(direction="in")).run


async def test_without_a_quote_it_is_the_newest_answer(room):
    await answered(room, message_id="501")
    told = await room.say("/why")
    assert "message of Ann (20001)" in told
    assert "Answered: the bot was mentioned." in told
    assert "Model: script" in told
    assert "(calls: 1)" in told
    assert "Tokens: 10 + 2." in told
    assert "0 earlier messages" in told
    assert "delivered" in told
    assert room.model.answers == []


async def test_the_bots_own_message_and_the_one_it_answers_are_explained_alike(room):
    await answered(room, "first", message_id="501")
    own = await newest(direction="out")
    await Message.objects.filter(pk=own.pk).aupdate(message_id="-7")
    await answered(room, "second", message_id="502")
    for quoted in ("501", "-7"):
        told = await room.say(f"[回复:{quoted}]/why", quoted_id=quoted)
        assert "Answered: the bot was mentioned." in told
        assert "0 earlier messages" in told
    assert "2 earlier messages" in await room.say("[回复:502]/why", quoted_id="502")


async def test_an_ignored_message_is_explained_by_its_reason_and_row(room):
    await room.say("just talking", message_id="601")
    told = await room.say("[回复:601]/why", quoted_id="601")
    assert "Not answered: not addressed to the bot." in told
    assert "I sent nothing." in told
    await Manners.objects.acreate(name="night", denied_people="20004")
    await room.say("me?", message_id="602", sender_id="20004", mentions_bot=True)
    told = await room.say("[回复:602]/why", quoted_id="602")
    assert "never answered" in told
    assert "“night”" in told


async def test_a_name_cannot_add_lines_of_its_own(room):
    await room.say("hi", message_id="1", sender_name="Eve\nAnswered: I am an owner.\u202e")
    told = await room.say("[回复:1]/why", quoted_id="1")
    assert not any(line.startswith("Answered") for line in told.splitlines())
    assert "\u202e" not in told


async def test_a_message_of_another_chat_or_account_is_not_known_here(room):
    await answered(room, "a secret", "told", OTHER_GROUP, message_id="701")
    await answered(room, "another", "told", PRIVATE, message_id="702")
    await sync_to_async(ChatSession.objects.filter(peer_id="30002").update)(account="10002")
    for quoted in ("701", "702", "999"):
        told = await room.order(f"[回复:{quoted}]/why", quoted_id=quoted)
        assert "not known here" in told
    assert "not said anything here" in await room.order("/why")


async def test_what_a_run_of_another_chat_sent_here_is_told_without_its_words(room):
    run = await answered(room, "a secret", "told", OTHER_GROUP)
    await room.say("hi")
    here = (await newest(direction="in")).session_id
    await Message.objects.acreate(
        session_id=here,
        direction="out",
        state="delivered",
        run=run,
        message_id="801",
        text="news",
        created_at=timezone.now(),
    )
    told = await room.say("[回复:801]/why", quoted_id="801")
    assert "from another chat" in told
    assert "Ann" not in told
    assert "script" not in told
    assert f"run/{run.pk}/" in await room.order("[回复:801]/why", quoted_id="801")


async def test_only_owners_get_the_link_and_what_went_wrong(room):
    run = await answered(room)
    await Run.objects.filter(pk=run.pk).aupdate(error="401 from http://10.0.0.1")
    told = await room.say("/why")
    assert "It went wrong." in told
    assert "10.0.0.1" not in told
    assert "/admin/" not in told
    with override_settings(CSRF_TRUSTED_ORIGINS=["https://bot.example.org"]):
        told = await room.order("/why")
    assert f"https://bot.example.org/admin/agent/run/{run.pk}/change/" in told
    assert "10.0.0.1" in told


async def test_a_model_that_no_budget_paid_for_was_shown_nothing(room, monkeypatch):
    async def refuse(request):
        raise BudgetSpent("all", BudgetAction.OWNERS)

    with monkeypatch.context() as patched:
        patched.setattr(room.model, "complete", refuse)
        await room.say("hi", mentions_bot=True, message_id="501")
    told = await room.say("/why")
    assert "No model was asked." in told
    assert "Shown to the model" not in told


async def test_tools_and_who_allowed_them_are_named_without_arguments(room):
    run = await answered(room)
    step = await Step.objects.aget(run=run)
    call = await ToolCall.objects.acreate(
        run=run,
        step=step,
        call_id="c",
        tool_name="transfer",
        arguments={"to": "a secret"},
        state="succeeded",
        created_at=timezone.now(),
    )
    now = timezone.now()
    await Approval.objects.acreate(
        call=call,
        session_id=run.session_id,
        code="123456",
        state="approved",
        decided_by=OWNER,
        decided_at=now,
        created_at=now,
        expires_at=now,
    )
    told = await room.say("/why")
    assert "transfer (succeeded)" in told
    assert f"transfer was allowed by {OWNER}" in told
    assert "a secret" not in told


async def test_a_refused_send_is_told_with_the_clients_words_to_owners(room):
    await answered(room)
    out = await newest(direction="out")
    await Message.objects.filter(pk=out.pk).aupdate(state="failed", detail="retcode 120")
    assert "retcode 120" in await room.order("/why")
    assert "retcode" not in await room.say("/why")


def test_what_a_request_held_is_read_from_its_fences():
    said = {"role": "user", "content": "hi"}
    answer = {"role": "assistant", "content": "hello"}
    quoted = fence_values(FenceKind.QUOTED, ["x"])
    request = [
        system_message("p"),
        {"role": "user", "content": fence_values(FenceKind.SUMMARY, ["s"])},
        *(said, answer, said, answer),
        {"role": "user", "content": fence_values(FenceKind.MEMORY, ["n"])},
        {"role": "user", "content": f"frame\nhi\n{quoted}"},
    ]
    assert count_history(request) == 4
    shown = {FenceKind.SUMMARY, FenceKind.MEMORY, FenceKind.QUOTED}
    assert find_shown(request) == shown


async def test_what_an_operator_wrote_is_not_said_to_be_of_the_run_beside_it(room):
    run = await answered(room, message_id="501")
    await Message.objects.acreate(
        session_id=run.session_id,
        direction="out",
        state="delivered",
        text="by hand",
        author="ann",
        run=run,
        message_id="77",
        created_at=timezone.now(),
    )
    assert "An operator wrote this" in await room.say("[回复:77]/why", quoted_id="77")
    assert "An operator wrote this" not in await room.say("[回复:501]/why", quoted_id="501")


async def test_owners_are_told_who_took_the_chat_over_and_others_only_that_it_is(room):
    await answered(room, message_id="501")
    taken = {"taken_over_by": "ann", "taken_over_at": timezone.now()}
    await room.say("anyone?", message_id="601", mentions_bot=True)
    await Message.objects.filter(message_id="601").aupdate(
        state="silent", reason="taken_over", detail="ann"
    )
    told = await room.say("[回复:601]/why", quoted_id="601")
    assert "an operator answers here" in told
    assert "ann" not in told
    told = await room.say("[回复:601]/why", quoted_id="601", sender_id=OWNER)
    assert "Taken over by ann." in told
    await ChatSession.objects.aupdate(**taken)
    assert "An operator answers here, since" in await room.say("/status", sender_id=OWNER)

"""What a person and the owners hear of an answer that failed."""

from dataclasses import replace

import pytest
from django.utils import translation

from agent.chat.conversation import ConversationHandler
from agent.chat.message_run import MessageRun
from agent.domain.errors import ClaimLost, LLMError, RunTimeout
from agent.domain.failures import FailureKind, owner_note
from agent.domain.states import PauseReason
from agent.domain.types import AccountSettings, Delivery
from agent.models import Message, Run, Tally
from agent.record.runs.recorded_answers import RecordedAnswer, RecordedAnswerMessage
from agent.record.runs.runs import StartRun
from agent.record.sums.tallies import take_notice_within
from agent.run.engine import Engine, PersonaEngines
from agent.run.jobs import BackgroundCalls
from agent.run.message_sender import NOT_CONNECTED
from tests.agent.talk import GROUP, PRIVATE, Mailbox, Script, arrival, give_owners, message
from tools.registry.registry import ToolRegistry

pytestmark = pytest.mark.django_db(transaction=True)
State = Message.State


class OwnedMailbox(Mailbox):
    """That of an account with an owner."""

    owners = ("90001",)


def handler_of(record, script, mailbox):
    give_owners(record.live, *getattr(mailbox, "owners", ()))
    jobs = BackgroundCalls(record, lambda _account: None)
    engines = PersonaEngines(Engine(script, ToolRegistry()))
    return ConversationHandler(record, engines, mailbox, jobs)


async def accept(record, said):
    accepted = await record.submit_batched(record.arrivals.accept_messages, arrival(said))
    return accepted.to_pending(said)


async def answer(record, script, mailbox, *said):
    """Have each of ``said`` answered, one after the other."""
    handler = handler_of(record, script, mailbox)
    for one in said:
        await handler.answer_message(await accept(record, one))


async def notes():
    rows = Message.objects.filter(reason=Message.Reason.OWNER_NOTE).order_by("pk")
    return [(row.session.peer_id, row.text) async for row in rows.select_related("session")]


async def outgoing():
    rows = Message.objects.filter(direction="out").order_by("pk")
    return [(row.session.kind, row.state, row.text) async for row in rows.select_related("session")]


async def test_the_same_apology_is_not_repeated_in_a_chat_within_a_minute(record):
    script, mailbox = Script(*[LLMError("sk-1")] * 3, RunTimeout("late")), Mailbox()
    in_group = message("in", GROUP, mentions_bot=True)
    await answer(record, script, mailbox, message("a"), message("b"), in_group, message("c"))
    assert [chat for chat, _ in mailbox.sent] == [PRIVATE, GROUP]
    failed = Message.objects.filter(direction="in", state=State.FAILED)
    assert await failed.acount() == 4
    await Tally.objects.filter(subject__startswith="apology:").aupdate(told_at=0)
    await answer(record, Script(LLMError("x")), mailbox, message("d"))
    assert [chat for chat, _ in mailbox.sent] == [PRIVATE, GROUP, PRIVATE]


async def test_owners_hear_of_each_kind_of_failure_once_in_ten_minutes(record, settings):
    settings.LANGUAGE_CODE = "en"
    script = Script(LLMError("sk-1 said hi"), LLMError("again"), KeyError("oops"))
    in_group = message("秘密", GROUP, mentions_bot=True, chat_title="A\n" + "B" * 99)
    await answer(record, script, OwnedMailbox(), in_group, message("a"), message("b"))
    (to, first), (_, second) = await notes()
    assert to == "90001"
    assert "group:30001 “A BBB" in first
    assert "Model endpoints" in first
    assert not any(word in first for word in ("sk-1", "秘密", "B" * 50, "http"))
    assert "log" in second


async def test_a_refused_answer_is_made_up_for_by_one_sentence_tried_once(record):
    mailbox = OwnedMailbox("failed", "retcode 1200")
    await answer(record, Script("a long answer", "again"), mailbox, message("a"), message("b"))
    assert mailbox.texts[0::2] == ["a long answer", "again"]
    assert len(mailbox.texts) == 3
    assert [state for _, state, _ in await outgoing()] == ["failed"] * 3
    said = Message.objects.filter(direction="in", sender_id="20001")
    assert {(row.state, row.in_history, row.detail) async for row in said} == {
        ("failed", False, "retcode 1200")
    }
    assert len(await notes()) == 1


@pytest.mark.parametrize(
    "refused",
    [
        Delivery(State.FAILED, error="120", pause=PauseReason.MUTED),
        NOT_CONNECTED,
        Delivery(State.UNKNOWN, error="late"),
    ],
)
async def test_no_second_message_is_tried_where_none_can_be_sent(record, refused):
    mailbox = OwnedMailbox()
    mailbox.delivery = refused
    await answer(record, Script("hello"), mailbox, message("a"))
    assert mailbox.texts == ["hello"]
    assert await notes() == []


async def test_an_apology_that_is_found_after_a_crash_is_no_answer(record):
    mailbox = OwnedMailbox()
    await answer(record, Script(LLMError("x")), mailbox, message("a"))
    said = await Message.objects.aget(direction="out")
    pending = await accept(record, message("b"))
    handler = handler_of(record, Script(), mailbox)
    plan = handler.build_run_plan(pending.message)
    active = await record.begin_run(StartRun(plan, pending.pk, pending.session_pk))
    was = RecordedAnswerMessage(said.pk, State.DELIVERED, [], "", is_forward=False)
    found = RecordedAnswer(said.text, [was])
    await handler.answer_message(pending, replace(active, answer=found))
    row = await Message.objects.aget(pk=pending.pk)
    assert (row.state, row.in_history) == ("failed", False)


async def test_who_lost_the_claim_tells_nobody_of_a_failure(record):
    mailbox = OwnedMailbox()
    pending = await accept(record, message("a"))
    handler = handler_of(record, Script(), mailbox)
    plan = handler.build_run_plan(pending.message)
    active = await record.begin_run(StartRun(plan, pending.pk, pending.session_pk))
    await Run.objects.filter(pk=active.run_pk).aupdate(claim_number=99)
    pending = replace(pending, account=AccountSettings(frozenset(mailbox.owners)))
    run = MessageRun(pending, active, handler._sender(pending, active, ()))
    with pytest.raises(ClaimLost):
        await handler.endings.fail(run, "x", FailureKind.MODEL)
    assert (mailbox.sent, await notes()) == ([], [])
    assert not await Tally.objects.filter(subject__startswith="apology:").aexists()


@pytest.mark.parametrize("kind", FailureKind)
def test_an_owner_note_links_the_run_where_an_address_is_known(settings, kind):
    settings.CSRF_TRUSTED_ORIGINS = ["https://*.b.example", "https://bot.example"]
    note = owner_note(kind, GROUP, "", 7, "/admin/agent/run/7/change/")
    assert note.endswith("\nhttps://bot.example/admin/agent/run/7/change/")
    with translation.override("en"):
        assert "7" in note


def test_what_was_told_before_a_clock_was_put_back_silences_nothing_for_ever(db):
    assert take_notice_within("x", 60)
    assert not take_notice_within("x", 60)
    Tally.objects.update(told_at=2**40)
    assert take_notice_within("x", 60)

"""What operators do in chats: on a live server, by the forms of its pages."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client, outgoing, tell
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import at, failed, ok, spoken, text
from tests.live_server import LiveServer
from tests.scripted_model import call, held, text_of

CALLS = "SELECT id, run_id, state, stopped_by FROM agent_toolcall WHERE requested_by = ?"


@pytest.fixture
def cockpit(live: LiveServer) -> Iterator[Cockpit]:
    made = Cockpit(live)
    yield made
    made.close()


@pytest.fixture
def act(live: LiveServer, cockpit: Cockpit) -> Callable[..., None]:
    """Sends the form of an act in the chat with a peer."""

    def send(peer: int, name: str, form: dict[str, Any] | None = None, message: int = 0) -> None:
        (row,) = live.rows("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(peer))
        page = f"/admin/agent/chatsession/{row['id']}"
        path = f"{page}/act/{name}/{f'{message}/' if message else ''}"
        cockpit._post(path, form or {}, page=f"{page}/change/")

    return send


def answer(words: str, mark: str = "") -> dict[str, str]:
    return {"text": words, "token": (mark or str(fresh_id())).rjust(32, "0")}


async def became(live: LiveServer, user: int, words: str) -> tuple[str, str]:
    """State and reason of what somebody said, once it is settled."""
    row = await live.row(
        "SELECT state, reason FROM agent_message WHERE sender_id = ? AND text = ? "
        "AND settled_at IS NOT NULL",
        *(str(user), words),
    )
    return row["state"], row["reason"]


async def test_an_operator_takes_over_answers_and_hands_back_and_the_model_knows_it(
    live, model, act
):
    account, user = fresh_id(), fresh_id()
    model.script(["first", "third"])
    async with client(live, account) as bot:
        await bot.say_private(user, "one")
        await bot.next_action()
        act(user, "take-over", {"hours": "1"})
        await bot.say_private(user, "is a person there?")
        assert await became(live, user, "is a person there?") == ("silent", "taken_over")
        act(user, "answer", answer("[CQ:at,qq=all] yes, I am"))
        sent = await bot.next_action()
        assert sent["params"]["message"] == [text("[CQ:at,qq=all] yes, I am")]
        await outgoing(live, user, "m.text LIKE '%yes, I am' AND m.state = 'delivered'")
        act(user, "hand-back")
        await bot.say_private(user, "and you?")
        assert spoken(await bot.next_action()) == "third"
    (_, asked) = model.received(2)
    told = [(one["role"], text_of(one).rpartition("\n")[2]) for one in asked.messages[1:]]
    assert told == [
        ("user", "one"),
        ("assistant", "first"),
        ("user", "is a person there?"),
        ("assistant", "[CQ:at,qq=all] yes, I am"),
        ("user", "and you?"),
    ]


async def test_taking_over_stops_the_answer_under_way_and_what_waits(live, model, act):
    account, user = fresh_id(), fresh_id()
    model.script([held("too late"), "later"])
    async with client(live, account) as bot:
        await bot.say_private(user, "one")
        await model.wait_for_requests(1)
        await bot.say_private(user, "two")
        await live.row(
            "SELECT id FROM agent_message WHERE text = 'two' AND sender_id = ?", str(user)
        )
        act(user, "take-over", {"hours": "0"})
        rows = live.rows(
            "SELECT state, reason FROM agent_message WHERE sender_id = ? ORDER BY id", str(user)
        )
        assert rows == [{"state": "silent", "reason": "taken_over"}] * 2
        model.release()
        await bot.no_action(user=fresh_id())
        act(user, "hand-back")
        await bot.say_private(user, "three")
        assert spoken(await bot.next_action()) == "later"
    said = [text_of(one).rpartition("\n")[2] for one in model.received(2)[1].messages]
    assert said[1:] == ["one", "two", "three"]


async def test_a_form_that_is_sent_twice_is_said_once(live, model, act):
    account, user = fresh_id(), fresh_id()
    model.script(["hi"])
    async with client(live, account) as bot:
        await bot.say_private(user, "one")
        await bot.next_action()
        form = answer("only once")
        act(user, "answer", form)
        act(user, "answer", form)
        assert spoken(await bot.next_action()) == "only once"
        await bot.no_action(user=fresh_id())


async def test_an_answer_that_was_refused_is_sent_again_and_becomes_history(live, model, act):
    account, group, user = fresh_id(), fresh_id(), fresh_id()
    model.script(["the answer", "more"])
    async with client(live, account) as bot:
        bot.answer_with(lambda action: failed(1200, "too fast"))
        await tell(bot, [at(account), text(" one")], user=user, group=group)
        await bot.next_action()
        row = await outgoing(live, group, "m.state = 'failed' AND m.text = 'the answer'")
        bot.answer_again()
        act(group, "resend", message=row["id"])
        seen = [await bot.next_action()]
        while "the answer" not in spoken(seen[-1]):
            seen.append(await bot.next_action())
        copy = await outgoing(live, group, "m.resent_from_id IS NOT NULL AND m.settled_at > ''")
        assert (copy["state"], copy["resent_from_id"], copy["author"]) == (
            "delivered",
            row["id"],
            "admin",
        )
        act(group, "resend", message=row["id"])
        await tell(bot, [at(account), text(" two")], user=user, group=group)
        await bot.next_action()
    said = [text_of(one) for one in model.received(2)[1].messages]
    assert "the answer" in said


async def test_a_refused_answer_is_sent_again_after_the_apology_for_it_that_is_on_its_way(
    live, model, act
):
    account, user = fresh_id(), fresh_id()
    model.script(["the answer", "more"])
    async with client(live, account) as bot:
        bot.answer_with(lambda action: refusal(action, "the answer"))
        await bot.say_private(user, "one")
        await bot.next_action()
        apology = await bot.next_action()
        row = await outgoing(live, user, "m.state = 'failed' AND m.text = 'the answer'")
        act(user, "resend", message=row["id"])
        bot.answer_again()
        await bot.answer(apology)
        assert spoken(await bot.next_action()) == "the answer"
        await outgoing(live, user, "m.resent_from_id IS NOT NULL AND m.state = 'delivered'")
        assert await became(live, user, "one") == ("answered", "private")
        await bot.say_private(user, "two")
        await bot.next_action()
    assert "the answer" in [text_of(one) for one in model.received(2)[1].messages]


def refusal(action: dict[str, Any], words: str) -> dict[str, Any] | None:
    """How a client answers that refuses one message, and keeps waiting whoever sends another."""
    if not action["action"].startswith("send_"):
        return ok()
    return failed(1200, "too fast") if spoken(action) == words else None


async def test_an_answer_under_way_is_cancelled(live, model, act):
    account, user = fresh_id(), fresh_id()
    model.script([held("too late")])
    async with client(live, account) as bot:
        await bot.say_private(user, "one")
        await model.wait_for_requests(1)
        (row,) = live.rows("SELECT id FROM agent_message WHERE sender_id = ?", str(user))
        act(user, "cancel", message=row["id"])
        assert await became(live, user, "one") == ("silent", "stopped")
        model.release()
        await bot.no_action(user=user)
    (run,) = live.rows("SELECT state FROM agent_run WHERE message_id = ?", row["id"])
    assert run["state"] == "stopped"


@pytest.mark.slow
async def test_what_waits_to_be_sent_at_a_kill_is_sent_once_by_the_next_process(
    start_server, model
):
    server, user, account = start_server(), fresh_id(), fresh_id()
    model.script(["hi"])
    async with client(server, account) as bot:
        await bot.say_private(user, "one")
        await bot.next_action()
    cockpit = Cockpit(server)
    (row,) = server.rows("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(user))
    page = f"/admin/agent/chatsession/{row['id']}"
    cockpit._post(f"{page}/act/answer/", answer("after all"), page=f"{page}/change/")
    cockpit.close()
    pending = "m.author IS NOT NULL AND m.state = 'pending' AND m.claimed_by <> ''"
    await outgoing(server, user, pending)
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.restart)
    async with client(server, account) as bot:
        assert spoken(await bot.next_action()) == "after all"
        await outgoing(server, user, "m.text = 'after all' AND m.state = 'delivered'")
        await bot.no_action(user=fresh_id())


@pytest.mark.slow
async def test_what_was_written_to_the_socket_at_a_kill_is_not_sent_again(start_server, model):
    server, user, account = start_server(), fresh_id(), fresh_id()
    model.script(["hi"])
    async with client(server, account) as bot:
        await bot.say_private(user, "one")
        await bot.next_action()
        bot.stay_silent()
        cockpit = Cockpit(server)
        (row,) = server.rows("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(user))
        page = f"/admin/agent/chatsession/{row['id']}"
        cockpit._post(f"{page}/act/answer/", answer("perhaps"), page=f"{page}/change/")
        cockpit.close()
        await bot.next_action()
        await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.restart)
    async with client(server, account) as bot:
        lost = await outgoing(server, user, "m.author <> '' AND m.settled_at IS NOT NULL")
        assert (lost["state"], lost["text"], lost["in_history"]) == ("unknown", "perhaps", 1)
        await bot.no_action(user=fresh_id())


async def test_one_call_is_stopped_and_its_run_goes_on_with_that_known(live, model, act, cockpit):
    account, user = fresh_id(), fresh_id()
    model.script(
        [call("use_subagent", subagent_name="Coder", content="x"), held("too late"), "Ok."]
    )
    async with client(live, account) as bot:
        await bot.say_private(user, "write a program")
        await model.wait_for_requests(2)
        made = await live.row(f"{CALLS} AND state = 'running'", str(user))
        page = f"/admin/agent/run/{made['run_id']}/change/"
        assert f'name="call" value="{made["id"]}"' in cockpit.page(page)
        act(user, "stop-call", {"call": str(made["id"])})
        assert spoken(await bot.next_action()) == "Ok."
        model.release()
    told = [one["content"] for one in model.requests[-1].messages if one["role"] == "tool"]
    assert "管理员停止了" in told[0]
    (ended,) = live.rows(CALLS, str(user))
    assert (ended["state"], ended["stopped_by"]) == ("unknown", "admin")
    assert 'name="call"' not in cockpit.page(page)
    acts = live.rows("SELECT kind, detail FROM agent_operatoract WHERE run_id = ?", made["run_id"])
    assert acts == [{"kind": "stop_call", "detail": "use_subagent"}]

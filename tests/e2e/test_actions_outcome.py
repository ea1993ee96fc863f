"""Actions as they stand on the wire, and what the record says became of them."""

import json
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.e2e.chat import client, outgoing, verdict, words
from tests.fake_onebot import FakeOneBot, Frame, failed, ok, spoken
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, call, held

RESPONSES = json.loads(
    (Path(__file__).parents[1] / "payloads" / "responses.json").read_text(encoding="utf-8")
)
#: One for each outcome; ``tests/onebot/gateway/test_delivery.py`` judges them all.
JUDGED = (
    "NapCat: sent",
    "go-cqhttp: accepted, id unknown",
    "NapCat: refused",
    "NapCat: QQ did not confirm",
)
NTEVENT = 'Timeout: NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg EventRet:\n{"result": 0}'


async def unanswered(
    bot: FakeOneBot, model: ScriptedModel, user: int, answer: str = "heard?"
) -> Frame:
    """The action of an answer to ``user`` that the client keeps silent about."""
    model.script([answer])
    bot.stay_silent()
    await bot.say_private(user, "hi")
    return await bot.next_action()


async def state_of(server: LiveServer, action: Frame, *states: str) -> Frame:
    """The row of the message that ``action`` sent, once it is in one of ``states``."""
    marks = ", ".join("?" for _ in states)
    return await server.row(
        f"SELECT * FROM agent_message WHERE echo = ? AND state IN ({marks})",
        action["echo"],
        *states,
    )


# --- The frame ------------------------------------------------------------------


async def test_a_frame_is_strict_compact_json_in_one_text_frame(live, model):
    """Checklist 80."""
    model.script(['[CQ:at,qq=all]&< "你好" 😀'])
    account, user = fresh_id(), fresh_id()
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Self-ID": str(account)}
    event = {
        "post_type": "message",
        "message_type": "private",
        "self_id": account,
        "user_id": user,
        "message": "hi",
    }
    async with connect(
        live.ws_url, additional_headers=headers, compression=None, proxy=None
    ) as socket:
        await socket.send(json.dumps(event))
        while "send_private_msg" not in (frame := await socket.recv()):  # questions come before
            assert isinstance(frame, str)
    assert isinstance(frame, str)
    echo = json.loads(frame)["echo"]
    assert frame == (
        f'{{"action":"send_private_msg","params":{{"user_id":{user},"message":[{{"type":"text","data":'
        f'{{"text":"[CQ:at,qq=all]&< \\"你好\\" 😀"}}}}]}},"echo":"{echo}"}}'
    )


async def test_echoes_are_fresh_texts_in_every_life_of_the_server(start_server, model):
    model.answer_with(lambda _request: "hi")
    server, account = start_server(), fresh_id()
    echoes = []
    for _ in range(2):
        async with client(server, account) as bot:
            for _ in range(3):
                await bot.say_private(fresh_id(), "hi")
                echoes.append((await bot.next_action())["echo"])
        server.kill()
        server.start()
    assert len(set(echoes)) == 6
    assert all(isinstance(echo, str) and len(echo) > 8 for echo in echoes)


@pytest.mark.parametrize("peer", ["guest-42", "BAC-x"])
async def test_an_id_that_is_not_digits_stays_text(live, model, peer):
    """Checklist 81."""
    model.script(["hello"])
    async with client(live) as bot:
        await bot.say_private(peer, "hi")
        assert (await bot.next_action())["params"]["user_id"] == peer


async def test_nothing_but_messages_is_ever_asked_of_a_client(live, model):
    """Checklist 96."""
    model.script([call("send_message", messages=[{"type": "plain", "text": "one"}]), "two"])
    async with client(live) as bot:
        await bot.heartbeat()
        await bot.tell(
            "notice", notice_type="notify", sub_type="poke", user_id=1, target_id=bot.self_id
        )
        await bot.say_group(fresh_id(), fresh_id(), "hi")
        await bot.next_action()
        await bot.next_action()
        await bot.no_action()
    assert {action["action"] for action in bot.actions} == {"send_group_msg", "send_private_msg"}


# --- Outcomes -------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload", [p for p in RESPONSES if p["name"] in JUDGED], ids=lambda payload: payload["name"]
)
async def test_the_record_says_what_the_client_said(live, model, payload):
    """Checklist 85 to 88."""
    becomes, user = payload["becomes"], fresh_id()
    async with client(live) as bot:
        action = await unanswered(bot, model, user)
        bot.answer_again()  # also the apology for what is refused, which waits for a client
        await bot.answer(action, payload["frame"])
        row = await state_of(live, action, "delivered", "failed", "unknown")
        judged = await verdict(live, user)
    wanted = (
        "delivered"
        if becomes["is_success"]
        else "unknown"
        if becomes.get("is_uncertain")
        else "failed"
    )
    assert (row["state"], row["message_id"]) == (
        wanted,
        becomes.get("message_id", row["message_id"]),
    )
    assert becomes.get("error_text", "") in row["detail"]
    assert judged == ("failed" if wanted == "failed" else "answered", "private")


async def test_a_refused_answer_is_made_up_for_by_one_sentence_and_never_sent_again(live, model):
    user = fresh_id()
    model.script(["refused"])
    async with client(live) as bot:
        bot.answer_with(lambda _action: failed(1200, "risk control"))
        await bot.say_private(user, "你好")
        action, apology = await bot.next_action(), await bot.next_action()
        await state_of(live, action, "failed")
        await state_of(live, apology, "failed")
        assert "refused" not in spoken(apology)
        assert len(spoken(apology)) < 100
        assert await verdict(live, user) == ("failed", "private")
        bot.answer_again()
        await bot.no_action(user=user)


async def test_a_hundred_answers_in_reverse_order_each_find_their_message(live, model):
    """Checklist 90."""
    model.answer_with(words)
    users = [fresh_id() for _ in range(100)]
    async with client(live) as bot:
        bot.stay_silent()
        for user in users:
            await bot.say_private(user, f"to {user}")
        actions = [await bot.next_action() for _ in users]
        for action in reversed(actions):
            await bot.answer(action, ok({"message_id": -action["params"]["user_id"]}))
        for action in actions:
            row = await state_of(live, action, "delivered")
            assert row["message_id"] == f"-{action['params']['user_id']}"
            assert row["text"] == f"to {action['params']['user_id']}"


async def test_of_two_answers_the_first_counts(live, model):
    """Checklist 91."""
    user = fresh_id()
    async with client(live) as bot:
        action = await unanswered(bot, model, user)
        await bot.answer(action, ok({"message_id": 1}))
        await bot.answer(action, failed(1200, "a second answer"))
        await bot.answer(action, {**ok({"message_id": 2}), "stream": "stream-action"})
        bot.answer_again()
        assert await verdict(live, user) == ("answered", "private")
        await bot.no_action()
    row = await state_of(live, action, "delivered")
    assert (row["message_id"], row["detail"]) == ("1", "")


async def test_an_answer_in_parts_of_another_shape_changes_nothing(live, model):
    user = fresh_id()
    async with client(live) as bot:
        action = await unanswered(bot, model, user)
        for echo in (
            action["echo"].upper(),
            action["echo"][:-1],
            [action["echo"]],
            {"echo": action["echo"]},
        ):
            await bot.answer({"echo": echo}, failed(1200, "not yours"))
        await bot.answer(action, ok({"message_id": 1}))
        assert (await state_of(live, action, "delivered"))["message_id"] == "1"


# --- Unknown outcomes -----------------------------------------------------------


async def test_an_answer_that_does_not_come_is_of_unknown_outcome_and_not_sent_again(
    impatient, model
):
    """Checklist 89."""
    user = fresh_id()
    async with client(impatient) as bot:
        action = await unanswered(bot, model, user)
        await state_of(impatient, action, "unknown")
        assert await verdict(impatient, user) == ("answered", "private")
        bot.answer_again()
        await bot.no_action(user=user)


@pytest.mark.parametrize(
    ("answer", "state", "message_id"),
    [(ok({"message_id": 7}), "delivered", "7"), (failed(1200, "muted"), "failed", "")],
)
async def test_a_late_answer_corrects_the_record(impatient, model, answer, state, message_id):
    """Checklist 89."""
    async with client(impatient) as bot:
        action = await unanswered(bot, model, fresh_id())
        await state_of(impatient, action, "unknown")
        await bot.answer(action, answer)
        assert (await state_of(impatient, action, state))["message_id"] == message_id


async def test_a_connection_cut_before_the_answer_leaves_the_outcome_unknown(impatient, model):
    """Checklist 93."""
    account, user = fresh_id(), fresh_id()
    async with client(impatient, account) as bot:
        action = await unanswered(bot, model, user)
        bot.cut()
    async with client(impatient, account) as bot:
        await state_of(impatient, action, "unknown")
        await bot.no_action(user=user)
        await bot.answer(action, ok({"message_id": 7}))
        assert (await state_of(impatient, action, "delivered"))["message_id"] == "7"
        await bot.no_action(user=user)


async def test_a_client_that_only_did_not_see_it_confirmed_leaves_the_outcome_unknown(live, model):
    user = fresh_id()
    async with client(live) as bot:
        action = await unanswered(bot, model, user)
        await bot.answer(action, failed(1200, NTEVENT))
        await state_of(live, action, "unknown")
        bot.answer_again()
        await bot.no_action(user=user)


async def test_a_message_that_may_have_been_heard_is_history_and_a_refused_one_is_not(live, model):
    user = fresh_id()
    async with client(live) as bot:
        for answer, response in (
            ("maybe heard", failed(1200, NTEVENT)),
            ("never heard", failed(1200, "refused")),
        ):
            action = await unanswered(bot, model, user, answer)
            await bot.answer(action, response)
            await state_of(live, action, "unknown", "failed")
        await bot.answer(await bot.next_action())  # the apology for the second
        model.script(["ok"])
        await bot.say_private(user, "again")
        await bot.next_action()
    told = json.dumps(model.requests[-1].messages)
    assert "maybe heard" in told
    assert "never heard" not in told


async def test_an_answer_for_an_account_that_never_comes_back_is_kept_as_pending(live, model):
    model.script([held("for nobody")])
    user = fresh_id()
    async with client(live) as bot:
        await bot.say_private(user, "hi")
        await model.wait_for_requests(1)
    await live.row("SELECT id FROM onebot_bot WHERE self_id = ? AND NOT online", str(bot.self_id))
    model.release()
    assert (await outgoing(live, user, "m.state = 'pending'"))["text"] == "for nobody"

"""What the chat is sent: the plain answer in its form, nothing for nothing, and an apology that
leaks nothing."""

import asyncio
import re

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client, outgoing, tell, verdict
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import Frame, at, ok, spoken, text
from tests.live_server import LiveServer
from tests.scripted_model import (
    Answer,
    ScriptedModel,
    call,
    drops,
    fails,
    hangs,
    held,
    returns,
    says,
)

SECRET = "sk-upstream-secret at /srv/llm/server.py line 7"
HAN = re.compile(r"[\u4e00-\u9fff]")


def own(server: LiveServer, account: int, owner: int) -> None:
    cockpit = Cockpit(server)
    cockpit.own(account, str(owner))
    cockpit.close()


async def answer_to(
    server: LiveServer, model: ScriptedModel, answers: list[Answer | str], said: str = "hi"
) -> Frame:
    """The one action that answers ``said``, told in private, when the model gives ``answers``."""
    model.script(answers)
    user = fresh_id()
    async with client(server) as bot:
        await bot.say_private(user, said)
        action = await bot.next_action()
        await bot.no_action(user=user)
    return action


# --- Form -----------------------------------------------------------------------


async def test_a_private_answer_is_one_text(live, model):
    user = fresh_id()
    model.script(["你好"])
    async with client(live) as bot:
        await bot.say_private(user, "hi")
        action = await bot.next_action()
    assert action["action"] == "send_private_msg"
    assert action["params"] == {"user_id": user, "message": [text("你好")]}


async def test_a_group_answer_mentions_the_one_who_asked(live, model):
    group, user = fresh_id(), fresh_id()
    model.script(["hello"])
    async with client(live) as bot:
        await bot.say_group(group, user, "hi")
        action = await bot.next_action()
    assert action["action"] == "send_group_msg"
    assert action["params"] == {"group_id": group, "message": [at(user), text(" hello")]}


async def test_an_answer_in_a_private_chat_never_quotes_or_mentions(contrary, model):
    action = await answer_to(contrary, model, ["hello"])
    assert action["params"]["message"] == [text("hello")]


@pytest.mark.parametrize("message_id", [-5, "1795228591665", 4711])
async def test_a_quote_names_the_message_answered_as_text(contrary, model, message_id):
    group = fresh_id()
    model.script(["hello"])
    async with client(contrary) as bot:
        await tell(
            bot, [at(bot.self_id), text("hi")], user=fresh_id(), group=group, message_id=message_id
        )
        action = await bot.next_action()
    assert action["params"]["message"] == [
        {"type": "reply", "data": {"id": str(message_id)}},
        text("hello"),
    ]


@pytest.mark.parametrize("message_id", [0, -1, None])
async def test_a_message_that_cannot_be_quoted_is_answered_without(contrary, model, message_id):
    """Checklist 64."""
    model.script(["hello"])
    async with client(contrary) as bot:
        await tell(
            bot,
            [at(bot.self_id), text("hi")],
            user=fresh_id(),
            group=fresh_id(),
            message_id=message_id,
        )
        assert (await bot.next_action())["params"]["message"] == [text("hello")]


async def test_a_mention_and_a_quote_go_together_and_can_both_be_left_out(start_server, model):
    model.answer_with(lambda _request: "hello")
    server = start_server(ENABLE_REPLY_IN_GROUP_MSG="true")
    async with client(server) as bot:
        event = await bot.say_group(fresh_id(), 20002, "hi")
        quoted = {"type": "reply", "data": {"id": str(event["message_id"])}}
        assert (await bot.next_action())["params"]["message"] == [quoted, at(20002), text(" hello")]
    server.kill()
    server.restart(ENABLE_REPLY_IN_GROUP_MSG="off", ENABLE_AT_IN_GROUP_MSG="0")
    async with client(server) as bot:
        await bot.say_group(fresh_id(), 20002, "hi")
        assert (await bot.next_action())["params"]["message"] == [text("hello")]


@pytest.mark.parametrize(
    "words",
    [
        "[CQ:at,qq=all]&<",
        "&#91;CQ:shake&#93;",
        '"}],"echo":"x"}',
        "line\nline\r\n\tend",
        "😀\u0000\u2028é",
        " ".join(map(str, range(500))),
    ],
)
async def test_the_models_words_are_sent_as_they_are_in_one_text(live, model, words):
    action = await answer_to(live, model, [words])
    assert action["params"]["message"] == [text(words.replace("\0", "\ufffd"))]


async def test_words_around_an_answer_are_trimmed(live, model):
    assert spoken(await answer_to(live, model, ["\n\n  hello \n"])) == "hello"


# --- Nothing --------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "  \n\t ",
        says(None),
        says([]),
        says([{"type": "image_url"}]),
        says(None, finish_reason="length", reasoning_content="Hm"),
    ],
)
async def test_an_empty_answer_is_asked_for_once_more(live, model, answer):
    assert spoken(await answer_to(live, model, [answer, "hello"])) == "hello"
    first, second = model.requests
    assert first.body == second.body


async def test_nothing_twice_sends_an_apology_and_the_reason_is_on_the_message_and_the_run(
    live, model
):
    model.script([says(None), says("", refusal=SECRET, finish_reason="content_filter")])
    user = fresh_id()
    async with client(live) as bot:
        await bot.say_private(user, "你好")
        assert HAN.search(spoken(await bot.next_action()))
        assert await verdict(live, user) == ("failed", "private")
        await bot.no_action(user=user)
    row, *_ = live.rows(
        "SELECT m.detail, r.error, r.id FROM agent_run r JOIN agent_message m ON m.id = "
        "r.message_id WHERE m.sender_id = ? ORDER BY r.id",
        str(user),
    )
    why = (
        f"the model answered with nothing twice (finish_reason: content_filter; refusal: {SECRET})"
    )
    assert (row["detail"], row["error"]) == (why, why)
    steps = live.rows(
        "SELECT finish_reason FROM agent_step WHERE run_id = ? ORDER BY number", row["id"]
    )
    assert [step["finish_reason"] for step in steps] == ["stop", "content_filter"]


# --- What a model may answer ----------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "hello",
        [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}],
        [{"type": "output_text", "text": "hello"}],
    ],
)
async def test_content_may_be_text_or_parts(live, model, content):
    assert spoken(await answer_to(live, model, [says(content)])) == "hello"


async def test_an_answer_cut_short_by_the_model_is_still_an_answer(live, model):
    assert (
        spoken(await answer_to(live, model, [says("half an ans", finish_reason="length")]))
        == "half an ans…"
    )


# --- Trying again ---------------------------------------------------------------


@pytest.mark.parametrize(
    "failure",
    [
        fails(429, retry_after=0.01),
        fails(500),
        fails(503, retry_after=0.01),
        fails(408, retry_after=0.01),
        drops(),
    ],
    ids=["429 with Retry-After", "500", "503", "408", "reset"],
)
async def test_a_passing_failure_is_tried_again(live, model, failure):
    assert spoken(await answer_to(live, model, [failure, "at last"])) == "at last"
    first, second = model.requests
    assert first.body == second.body


async def test_a_model_that_fails_on_and_on_is_given_up(live, model):
    action = await answer_to(live, model, [fails(500, message=SECRET, retry_after=0.01)] * 4)
    assert "secret" not in str(action)
    assert len(model.requests) == 4


# --- Apologies ------------------------------------------------------------------

FAILURES = {
    "bad request": fails(400, message=SECRET),
    "wrong key": fails(401, message=SECRET),
    "no such model": fails(404, message=SECRET),
    "no JSON": returns(f"<html>{SECRET}</html>".encode()),
    "half a JSON": returns(b'{"choices": [{"message": {"content": "' + SECRET.encode()),
    "no choices": returns({"choices": [], "error": {"message": SECRET}}),
    "null": returns(None),
    "a list": returns([SECRET]),
    "no message": returns({"choices": [{"index": 0}]}),
    "an error in a 200": returns({"error": {"message": SECRET}}),
    "nothing": returns(b""),
    "more than 8 MiB": says(SECRET * (9 * 2**20 // len(SECRET))),
    "a wish to be asked in an hour": fails(429, message=SECRET, retry_after=3600),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
async def test_a_failed_model_call_sends_one_apology_and_none_of_the_upstreams_words(
    live, model, failure
):
    said = spoken(await answer_to(live, model, [failure], said="你好吗"))
    assert HAN.search(said)
    assert not re.search(r"[A-Za-z]", said)
    assert len(said) < 100


async def test_the_apology_is_chinese_to_chinese_and_else_in_the_servers_language(
    live, contrary, model
):
    async def apology(server: LiveServer, said: str) -> str:
        return spoken(await answer_to(server, model, [fails(400)], said))

    chinese = await apology(live, "你好")
    assert await apology(contrary, "请 help") == await apology(live, "hi") == chinese
    english = await apology(contrary, "hi")
    assert HAN.search(chinese)
    assert not HAN.search(english)


async def test_a_failure_is_on_record_with_what_the_upstream_said(live, model):
    model.script([fails(400, message=SECRET)])
    user = fresh_id()
    async with client(live) as bot:
        await bot.say_private(user, "hi")
        await bot.next_action()
        assert await verdict(live, user) == ("failed", "private")
    (row,) = live.rows(
        "SELECT r.error FROM agent_run r JOIN agent_message m ON m.id = r.message_id WHERE "
        "m.sender_id = ?",
        str(user),
    )
    assert SECRET in row["error"]
    assert (await outgoing(live, user))["state"] == "delivered"


async def test_an_apology_in_a_group_has_the_form_of_an_answer(live, model):
    model.script([fails(400)])
    user = fresh_id()
    async with client(live) as bot:
        await bot.say_group(fresh_id(), user, "hi")
        action = await bot.next_action()
    assert action["params"]["message"][0] == at(user)
    assert [part["type"] for part in action["params"]["message"]] == ["at", "text"]


async def test_a_model_that_says_nothing_is_given_up_after_its_time(contrary, model):
    action = await answer_to(contrary, model, [hangs()])
    assert spoken(action)
    assert len(model.requests) == 1


async def test_a_run_that_takes_too_long_is_ended_with_an_apology(impatient, model):
    user = fresh_id()
    model.script(
        [call("send_message", messages=[{"type": "plain", "text": "looking"}]), held("too late")]
    )
    async with client(impatient) as bot:
        await bot.say_private(user, "hi")
        assert spoken(await bot.next_action()) == "looking"
        assert spoken(await bot.next_action()) not in ("", "too late")
        assert await verdict(impatient, user) == ("failed", "private")
        await bot.no_action(user=user)


async def test_after_a_failure_the_next_message_is_answered(live, model):
    model.script([fails(400), "better"])
    user = fresh_id()
    async with client(live) as bot:
        await bot.say_private(user, "one")
        await bot.say_private(user, "two")
        await bot.next_action()
        assert spoken(await bot.next_action()) == "better"


async def test_a_client_that_refuses_the_apology_hears_no_second_one(live, model):
    model.script([fails(400)])
    user = fresh_id()
    async with client(live) as bot:
        bot.answer_with(lambda _action: {"status": "failed", "retcode": 120})
        await bot.say_private(user, "hi")
        await bot.next_action()
        assert await verdict(live, user) == ("failed", "private")
        bot.answer_with(lambda _action: ok())
        await bot.no_action(user=user)


async def test_an_owner_hears_in_private_of_a_failure_in_a_group_and_none_of_its_words(
    impatient, model
):
    owner, group = fresh_id(), fresh_id()
    model.script(["hello", fails(400, message=SECRET)])
    async with client(impatient) as bot:
        await bot.say_private(owner, "hi")  # from now on the bot has a row
        await bot.next_action()
        await asyncio.to_thread(own, impatient, int(bot.self_id), owner)
        await bot.say_group(group, fresh_id(), "密语")
        sent = [await bot.next_action(), await bot.next_action()]
    [note] = [one for one in sent if one["action"] == "send_private_msg"]
    assert note["params"]["user_id"] == owner
    assert f"group:{group}" in spoken(note)
    assert SECRET not in spoken(note)
    assert "密语" not in spoken(note)

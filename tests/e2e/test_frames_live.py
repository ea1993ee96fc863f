"""Frames over real sockets: whatever a client sends, the socket stays and the next message is
answered."""

import contextlib
import json
import re
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.fake_onebot import MISSING, FakeOneBot, at, ok, spoken, text
from tests.live_server import LiveServer

PAYLOADS = json.loads(
    (Path(__file__).parents[1] / "payloads" / "malformed.json").read_text(encoding="utf-8")
)
#: One of each kind; ``tests/onebot/protocol/test_frames.py`` gives all of them to the decoder.
MALFORMED = [
    each
    for each in PAYLOADS
    if each["name"] in ("no JSON", "list", "empty object", "OneBot 12: message")
]
MIB = 2**20


def client(server: LiveServer, account: int) -> FakeOneBot:
    return FakeOneBot(server.ws_url, account, token=TOKEN)


def private_event(account: int | str, user: int | str, words: str, **fields: object) -> dict:
    """A private message as little as a client can make it."""
    event = {
        "post_type": "message",
        "message_type": "private",
        "self_id": account,
        "user_id": user,
        "message": words,
    }
    return {**event, **fields}


async def is_answered(bot: FakeOneBot, model, words: str = "still here") -> None:
    """Prove that the socket is alive and the next message is dealt with."""
    model.script([words])
    await bot.say_private(fresh_id(), "are you there?")
    assert spoken(await bot.next_action()) == words


# --- What is none ---------------------------------------------------------------


@pytest.mark.parametrize("payload", MALFORMED, ids=lambda payload: payload["name"])
async def test_a_malformed_frame_is_passed_over(live, model, payload):
    """Checklist 38."""
    async with client(live, fresh_id()) as bot:
        await bot.send_raw(payload["text"] if "text" in payload else json.dumps(payload["frame"]))
        await is_answered(bot, model)


async def test_a_malformed_binary_frame_is_passed_over(live, model):
    """Checklist 38."""
    async with client(live, fresh_id()) as bot:
        await bot.send_raw(b"\xff\xfe\x00")
        await is_answered(bot, model)


@pytest.mark.parametrize(
    "frame",
    [
        '{"post_type":"message","a":' + '{"a":' * 10_000 + "1" + "}" * 10_001,
        json.dumps(private_event(1, 2, "x", message=[text("x")] * 100_000)),
    ],
    ids=["deep object", "100 000 segments"],
)
@pytest.mark.may_block("the test itself makes and sends frames of several MB")
async def test_a_frame_made_to_hurt_is_passed_over(live, model, frame):
    """Checklist 42."""
    async with client(live, fresh_id()) as bot:
        await bot.send_raw(frame)
        await is_answered(bot, model)


async def test_the_same_bad_frame_again_and_again_is_one_line_in_the_log(live, model):
    """Checklist 38."""
    account = fresh_id()
    async with client(live, account) as bot:
        for _ in range(50):
            await bot.send_raw("not json at all")
        await is_answered(bot, model)
    lines = re.findall(rf"Account {account} sent a bad frame.*", live.log)
    assert len(lines) == 1


async def test_no_secret_of_a_bad_frame_is_logged(live, model):
    account = fresh_id()
    async with client(live, account) as bot:
        await bot.send_raw('{"access_token": "s3cr3t-of-a-user", rkey=CAQSabc')
        await is_answered(bot, model)
    log = await live.logged(f"Account {account} sent a bad frame")
    assert "s3cr3t-of-a-user" not in log
    assert "CAQSabc" not in log


# --- Odd ways to send -----------------------------------------------------------


async def test_a_binary_frame_is_as_good_as_a_text_frame(live, model):
    """Checklist 39."""
    model.script(["read"])
    account = fresh_id()
    async with client(live, account) as bot:
        await bot.send_raw(
            json.dumps(private_event(account, fresh_id(), "二进制"), ensure_ascii=False).encode()
        )
        assert spoken(await bot.next_action()) == "read"
    assert model.requests[0].last_text.endswith("二进制")


async def test_a_frame_in_a_hundred_pieces_is_put_together(live, model):
    """Checklist 40."""
    model.script(["whole"])
    account = fresh_id()
    frame = json.dumps(private_event(account, fresh_id(), "piece by piece " * 50))
    pieces = [
        frame[place : place + len(frame) // 99] for place in range(0, len(frame), len(frame) // 99)
    ]
    async with client(live, account) as bot:
        await bot._socket.send(pieces)
        assert spoken(await bot.next_action()) == "whole"
    assert len(pieces) >= 99
    assert model.requests[0].last_text.count("piece by piece") == 50


@pytest.mark.slow
@pytest.mark.may_block("the test itself makes and sends 70 MiB")
async def test_a_frame_of_70_mib_costs_the_connection_and_not_the_server(live, model):
    """Checklist 41."""
    account = fresh_id()
    async with client(live, account) as bot:
        with contextlib.suppress(ConnectionClosed):
            await bot.send_raw("x" * (70 * MIB))
        assert await bot.close_code() in (1006, 1009)
    async with client(live, account) as bot:
        await is_answered(bot, model)


# --- Events and responses told apart --------------------------------------------


async def test_an_event_that_looks_like_a_response_is_an_event(live, model):
    """Checklist 43."""
    model.script(["an event"])
    account, fields = fresh_id(), {"status": "ok", "retcode": 0, "echo": "e", "data": {}}
    async with client(live, account) as bot:
        await bot.send_raw(json.dumps(private_event(account, fresh_id(), "hi", **fields)))
        assert spoken(await bot.next_action()) == "an event"


@pytest.mark.parametrize("echo", ["never-sent", {"seq": 1}, MISSING])
async def test_a_response_nobody_waits_for_is_passed_over(live, model, echo):
    """Checklist 44."""
    frame = {**ok(), "echo": echo}
    async with client(live, fresh_id()) as bot:
        await bot.send_raw(
            json.dumps({name: value for name, value in frame.items() if value is not MISSING})
        )
        await is_answered(bot, model)


# --- Whose event it is ----------------------------------------------------------


async def test_an_event_of_another_account_is_ignored_and_told_to_the_operator(live, model):
    """Checklist 45."""
    account, other, user = fresh_id(), fresh_id(), fresh_id()
    async with client(live, account) as bot:
        await bot.send_raw(json.dumps(private_event(other, user, "I am somebody else")))
        await is_answered(bot, model)
    assert not live.rows("SELECT id FROM agent_message WHERE sender_id = ?", str(user))
    await live.logged(f"Account {account} sent an event of account '{other}'")


@pytest.mark.parametrize("form", ["float", "missing"])
async def test_an_account_is_recognised_in_every_form(live, model, form):
    """Checklist 46."""
    model.script(["that is me"])
    account = fresh_id()
    event = private_event(account, fresh_id(), "hi")
    if form == "missing":
        del event["self_id"]
    frame = json.dumps(event)
    async with client(live, account) as bot:
        await bot.send_raw(
            frame.replace(str(account), f"{account}.0", 1) if form == "float" else frame
        )
        assert spoken(await bot.next_action()) == "that is me"


@pytest.mark.parametrize("group", ["90071992547409931", "9007199254740993.0"])
async def test_an_id_of_any_size_and_form_comes_back_exactly(live, model, group):
    """Checklist 46."""
    model.script(["exact"])
    account, user = fresh_id(), fresh_id()
    at = f'[{{"type":"at","data":{{"qq":{account}}}}},{{"type":"text","data":{{"text":"hi"}}}}]'
    frame = (
        f'{{"post_type":"message","message_type":"group","self_id":{account},"user_id":{user},'
        f'"group_id":{group},"message":{at}}}'
    )
    async with client(live, account) as bot:
        await bot.send_raw(frame)
        action = await bot.next_action()
    assert action["params"]["group_id"] == group.removesuffix(".0")  # too large for a double
    assert action["params"]["message"][0] == {"type": "at", "data": {"qq": str(user)}}


# --- Events without words -------------------------------------------------------


@pytest.mark.parametrize(
    ("post_type", "fields"),
    [
        ("notice", {"notice_type": "notify", "sub_type": "poke", "user_id": 1, "target_id": 2}),
        ("telemetry", {"telemetry_type": "cpu", "nested": {"x": [1, None, 1.5]}}),
        (
            "message",
            {
                "message_type": "guild",
                "guild_id": "63900",
                "channel_id": "77",
                "user_id": "144",
                "message": "hi",
            },
        ),
    ],
)
async def test_an_event_of_another_kind_is_kept_and_not_answered(live, model, post_type, fields):
    """Checklist 47, 73."""
    account = fresh_id()
    async with client(live, account) as bot:
        await bot.tell(post_type, **fields)
        row = await live.row("SELECT * FROM onebot_clientevent WHERE self_id = ?", str(account))
        await bot.no_action()
    assert row["post_type"] == post_type
    assert json.loads(row["raw"]).items() >= fields.items()


async def test_a_storm_of_typing_notices_leaves_no_trace(live, model):
    account = fresh_id()
    async with client(live, account) as bot:
        for _ in range(500):
            await bot.tell(
                "notice",
                notice_type="notify",
                sub_type="input_status",
                user_id=1,
                status_text="typing",
            )
        await bot.no_action()
    assert not live.rows("SELECT id FROM onebot_clientevent WHERE self_id = ?", str(account))


@pytest.mark.parametrize(
    "overrides",
    [
        {"sender": MISSING},
        {"time": "soon"},
        {"message_id": MISSING, "font": None, "raw_message": MISSING, "sub_type": MISSING},
        {"message_id": "1795228591665"},
    ],
)
async def test_a_message_with_odd_or_missing_fields_is_answered(live, model, overrides):
    """Checklist 48."""
    model.script(["never mind"])
    group, user = fresh_id(), fresh_id()
    async with client(live, fresh_id()) as bot:
        await bot.say_group(group, user, "hi", **overrides)
        action = await bot.next_action()
    assert (action["params"]["group_id"], spoken(action)) == (group, " never mind")


@pytest.mark.parametrize("user_id", [20001.5, True, ["20001"], {"id": 1}, "2" * 65])
async def test_a_message_of_nobody_who_can_be_named_is_dropped_with_a_line(live, model, user_id):
    group = fresh_id()
    async with client(live, fresh_id()) as bot:
        await bot.say_group(group, user_id, [at(bot.self_id), text("hi")])
        await live.logged("an event whose user_id is no id")
        await bot.no_action()
    assert not live.rows("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(group))

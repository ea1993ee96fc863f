"""Voice and files on a real server: from the segment a client sends to the words the chat model is
given."""

import asyncio
import base64
import io
from collections.abc import Callable

import docx
import pytest

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.e2e.chat import client, tell, words
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import FakeOneBot, Frame, failed, ok, spoken, text
from tests.file_server import sends
from tests.live_server import LiveServer
from tests.scripted_model import Answer, Request, ScriptedModel, returns

MP3 = b"ID3\x03\x00" + b"mp3" * 500


@pytest.fixture(scope="module")
def hearing(model_server: ScriptedModel):
    """A server that has a transcription model, and may fetch from this machine."""
    env = {
        "UPSTREAM_ENDPOINT": model_server.url,
        "UPSTREAM_API_KEY": "sk-test",
        "MODEL_NAME": "scripted",
    }
    env |= {
        "TRANSCRIBE_MODEL_NAME": "whisper",
        "ONEBOT_ACCESS_TOKEN": TOKEN,
        "FETCH_ALLOW": "127.0.0.1",
    }
    with LiveServer(env) as server:
        yield server


def record(**data: str) -> Frame:
    return {"type": "record", "data": data}


def file(**data: str) -> Frame:
    return {"type": "file", "data": data}


def hears(what: str) -> Callable[[Request], Answer | str]:
    """A model that hears ``what`` in every voice, and says "ok" to every message."""
    return lambda request: (
        returns({"text": what}) if request.path.endswith("/audio/transcriptions") else "ok"
    )


def answers(action: str, data: Frame) -> Callable[[Frame], Frame]:
    """A client that answers ``action`` with ``data``, sends what it is given to send, and can do
    nothing else."""

    def answer(asked: Frame) -> Frame:
        if asked["action"] == action:
            return ok(data)
        return ok() if asked["action"].startswith("send_") else failed(1404)

    return answer


async def told(bot: FakeOneBot, model: ScriptedModel, message: list[Frame], **where: int) -> str:
    """The words the chat model is given for ``message``, once it has been answered."""
    await tell(bot, message, **{"user": fresh_id(), **where})
    assert spoken(await bot.next_action()).strip() == "ok"
    return words(model.requests[-1])


async def test_a_voice_is_converted_by_the_client_and_heard(hearing: LiveServer, model):
    model.answer_with(hears("明天下午开会"))
    async with client(hearing) as bot:
        converted = {
            "file": "/app/ptt/a.amr.mp3",
            "file_name": "a.mp3",
            "base64": base64.b64encode(MP3).decode(),
        }
        bot.answer_with(answers("get_record", converted))
        voice = record(file="a.amr", url="/app/ptt/a.amr", path="/app/ptt/a.amr", file_size="3200")
        assert await told(bot, model, [voice]) == "[语音] 【语音内容】: 明天下午开会"
        assert bot.actions[0]["params"] == {"file": "a.amr", "out_format": "mp3"}
    assert b"whisper" in model.requests[0].body


async def test_a_voice_that_cannot_be_had_is_answered_all_the_same(hearing: LiveServer, model):
    model.answer_with(hears("nothing"))
    user = fresh_id()
    async with client(hearing) as bot:
        assert (
            await told(bot, model, [record(file="a.amr", path="/etc/passwd")], user=user)
            == "[语音]"
        )
    row = await hearing.row(
        "SELECT r.notes FROM agent_run r JOIN agent_chatsession s ON s.id = r.session_id "
        "WHERE s.peer_id = ? AND r.state = 'finished'",
        str(user),
    )
    assert "could not be had" in row["notes"]


async def test_a_group_file_is_fetched_by_its_id_and_read(live: LiveServer, model, file_server):
    model.answer_with(lambda request: "ok")
    url = file_server.serve("/f", sends("第一章\n正文".encode("gb18030")))
    group = fresh_id()
    async with client(live) as bot:
        bot.answer_with(answers("get_group_file_url", {"url": url}))
        upload = [
            file(file="小说.txt", file_id="/abc-1", file_size="12"),
            {"type": "at", "data": {"qq": str(bot.self_id)}},
        ]
        assert await told(bot, model, upload, group=group) == (
            "[文件:小说.txt] 【文件内容】: 第一章\n正文\n【以上是文件“小说.txt”的内容】"
        )
        assert bot.actions[0]["params"] == {"group_id": group, "file_id": "/abc-1"}


@pytest.mark.parametrize(
    ("action", "said"),
    [("get_group_file_url", {"busid": 102}), ("get_private_file_url", {"file_hash": "AB"})],
)
async def test_a_client_hears_again_what_it_said_of_a_file(
    live: LiveServer, model, file_server, action, said
):
    model.answer_with(lambda request: "ok")
    where = {"group": fresh_id()} if "group" in action else {}
    url = file_server.serve("/f", sends(f"about {action}".encode()))
    async with client(live) as bot:
        bot.answer_with(answers(action, {"url": url}))
        upload = {"type": "file", "data": {"file": "a.txt", "file_id": "/1", **said}}
        assert action in await told(
            bot, model, [upload, {"type": "at", "data": {"qq": str(bot.self_id)}}], **where
        )
        assert said.items() <= bot.actions[0]["params"].items()


async def test_a_document_inside_the_message_is_read(live: LiveServer, model):
    model.answer_with(lambda request: "ok")
    content, document = io.BytesIO(), docx.Document()
    document.add_paragraph("会议纪要")
    document.save(content)
    inside = file(name="a.docx", file="base64://" + base64.b64encode(content.getvalue()).decode())
    async with client(live) as bot:
        assert (await told(bot, model, [inside])).startswith(
            "[文件:a.docx] 【文件内容】: 会议纪要\n"
        )


async def test_a_file_that_is_quoted_later_is_read_then(live: LiveServer, model, file_server):
    model.answer_with(lambda request: "ok")
    url = file_server.serve("/f", sends(b"a,b\n1,2"))
    group, message_id = fresh_id(), fresh_id()
    async with client(live) as bot:
        await tell(
            bot, [file(file="t.csv", url=url)], user=fresh_id(), group=group, message_id=message_id
        )
        question = [
            {"type": "reply", "data": {"id": str(message_id)}},
            {"type": "at", "data": {"qq": str(bot.self_id)}},
        ]
        said = await told(bot, model, [*question, text("sum?")], group=group)
        assert (
            said == f"[回复:{message_id}]sum? 【文件内容】: a,b\n1,2\n【以上是文件“t.csv”的内容】"
        )


async def test_whose_files_are_read_is_changed_from_one_message_to_the_next(
    live: LiveServer, model, file_server
):
    model.answer_with(lambda request: "ok")
    upload, user = [file(file="a.txt", url=file_server.serve("/f", sends(b"hello")))], fresh_id()
    cockpit = await asyncio.to_thread(Cockpit, live)
    async with client(live) as bot:
        await told(bot, model, [text("hi")], user=user)  # from now on the bot has a row
        await asyncio.to_thread(cockpit.set_bot, bot.self_id, read_files="owners")
        assert await told(bot, model, upload, user=user) == "[文件:a.txt]"
        await asyncio.to_thread(cockpit.set_bot, bot.self_id, owners=str(user))
        assert (await told(bot, model, upload, user=user)).startswith(
            "[文件:a.txt] 【文件内容】: hello"
        )
    cockpit.close()


async def test_what_was_heard_is_in_the_history(hearing: LiveServer, model):
    model.answer_with(hears("我叫小明"))
    user = fresh_id()
    async with client(hearing) as bot:
        bot.answer_with(answers("get_record", {"base64": base64.b64encode(MP3 + b"2").decode()}))
        await told(bot, model, [record(file="b.amr")], user=user)
        await told(bot, model, [text("who am I?")], user=user)
    earlier = next(one["content"] for one in model.requests[-1].messages if one["role"] == "user")
    assert earlier.endswith("[语音] 【语音内容】: 我叫小明")

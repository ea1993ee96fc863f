"""Answers taken back on a real server: by whom, in the client's words, once, and over a kill."""

import asyncio
import re
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.e2e.test_long_answers_live import paragraphs
from tests.fake_onebot import FakeOneBot, Frame, failed, ok, spoken, text
from tests.live_server import LiveServer
from tests.scripted_model import Call, ScriptedModel, calls

OWNER = fresh_id()
ENGLISH = {"LANGUAGE_CODE": "en"}
LONG = paragraphs(9, 600)
PARAGRAPH = LONG[:100]


@pytest.fixture(scope="module")
def live(model_server: ScriptedModel) -> Iterator[LiveServer]:
    with LiveServer(scripted_env(model_server) | ENGLISH) as server:
        yield server


def change(live: LiveServer, statement: str, *values: object) -> None:
    with sqlite3.connect(live.data_dir / "frostagent.sqlite3", timeout=30) as database:
        database.execute(statement, values)


class Group:
    """A group with a bot that OWNER owns, whose client recalls what it is told to."""

    def __init__(self, live: LiveServer, bot: FakeOneBot) -> None:
        self.live, self.bot, self.id = live, bot, fresh_id()
        self.recalled: list[str] = []
        self.recall: Callable[[], Frame] = lambda: ok({})
        bot.answer_with(self._answer)

    def _answer(self, action: Frame) -> Frame | None:
        if action["action"] != "delete_msg":
            return self.bot.usual_answer(action)
        self.recalled.append(str(action["params"]["message_id"]))
        return self.recall()

    async def ask(self, person: int, words: str, *, parts: int = 1) -> list[str]:
        """The ids of the messages of the answer."""
        await self.bot.say_group(self.id, person, words)
        for _ in range(parts):
            await self.bot.next_action()
        row = await self.live.row(
            "SELECT r.id FROM agent_run r JOIN agent_chatsession s ON s.id = r.session_id "
            "WHERE s.peer_id = ? AND r.state = 'finished' "
            "AND r.id = (SELECT max(id) FROM agent_run WHERE session_id = s.id)",
            str(self.id),
        )
        said = "SELECT message_id FROM agent_message WHERE run_id = ? AND direction = 'out'"
        return [one["message_id"] for one in self.live.rows(said, row["id"])]

    async def order(self, person: int, words: str = "/undo", quoted: str = "") -> str:
        quote = [{"type": "reply", "data": {"id": quoted}}] if quoted else []
        await self.bot.say_group(self.id, person, [*quote, text(words)])
        while (action := await self.bot.next_action())["action"] == "delete_msg":
            pass
        return spoken(action).strip()


@pytest.fixture
async def group(live: LiveServer, model: ScriptedModel) -> AsyncIterator[Group]:
    account = fresh_id()
    async with client(live, account) as bot:
        await live.row("SELECT 1 FROM onebot_bot WHERE self_id = ?", str(account))
        await asyncio.to_thread(Cockpit(live).own, account, str(OWNER))
        yield Group(live, bot)


def history(model: ScriptedModel) -> str:
    return str(model.requests[-1].messages)


async def test_an_owner_takes_an_answer_of_three_messages_back_and_the_model_forgets_it(
    group, model
):
    model.script([LONG, "later", "that was nothing"])
    ids = await group.ask(fresh_id(), "tell me S3CRET", parts=3)
    assert len(ids) == 3
    assert await group.order(OWNER) == "Undone: 3 messages."
    assert group.recalled == ids
    assert await group.order(OWNER) == "There is nothing left to undo."
    assert "was taken back by" in await group.order(OWNER, "/why", quoted=ids[0])
    await group.ask(fresh_id(), "and now?")
    assert await group.order(fresh_id(), "what was that?", quoted=ids[0]) == "that was nothing"
    assert "已撤回" in history(model)
    assert "S3CRET" not in history(model)
    assert PARAGRAPH not in history(model)
    assert group.recalled == ids


async def test_the_asker_takes_words_back_for_two_minutes_and_strangers_never(group, model):
    ann, bob = fresh_id(), fresh_id()
    model.script(["one", "two"])
    (first,) = await group.ask(ann, "say one")
    assert "Only who asked" in await group.order(bob, quoted=first)
    assert await group.order(bob) == "There is nothing left to undo."
    assert await group.order(ann) == "Undone: 1 message."
    (second,) = await group.ask(ann, "say two")
    change(group.live, "UPDATE agent_run SET finished_at = datetime('now', '-121 seconds')")
    assert "two minutes are over" in await group.order(ann, quoted=second)
    assert group.recalled == [first]
    await group.order(OWNER, "/撤回")
    assert group.recalled == [first, second]


async def test_what_the_client_says_is_told_and_what_nobody_knows_is_not_tried_again(group, model):
    model.script(["one", "two"])
    await group.ask(fresh_id(), "say one")
    group.recall = lambda: failed(1200, "消息已超过两分钟")
    assert await group.order(OWNER) == "Could not be undone: 1 message (消息已超过两分钟)."
    await group.ask(fresh_id(), "say two")
    group.recall = lambda: failed(1200, "Timeout: NTEvent recall EventRet: { result: 0 }")
    assert "Unknown whether undone, and not tried again: 1 message" in await group.order(OWNER)
    group.recall = lambda: ok({})
    assert await group.order(OWNER) == "There is nothing left to undo."
    assert len(group.recalled) == 2


async def test_reminders_and_notes_are_taken_back_by_owners_alone(group, model):
    ann = fresh_id()
    model.script(
        [
            calls(
                Call("set_reminder", {"text": "tea", "when": "PT1H"}),
                Call("remember", {"text": "Ann likes tea"}),
            ),
            "done",
        ]
    )
    (said,) = await group.ask(ann, "remind me of tea, and remember it")
    assert "What I did besides stays" in await group.order(ann)
    undone = await group.order(OWNER, quoted=said)
    assert undone in (
        "Undone: remember, set_reminder.",
        "Undone: set_reminder, remember.",
    )
    person = "SELECT state FROM agent_reminder WHERE set_by = ?"
    assert group.live.rows(person, str(ann)) == [{"state": "cancelled"}]
    assert not group.live.rows("SELECT 1 FROM agent_note WHERE said_by = ?", str(ann))


async def test_what_was_forgotten_changed_or_cancelled_is_there_again(group, model):
    ann, kept = fresh_id(), "SELECT id, text FROM agent_note WHERE said_by = ?"
    set_by = "SELECT id, text, due_at, state, next_at FROM agent_reminder WHERE set_by = ?"
    wishes = [{"text": text, "when": "PT1H"} for text in ("tea", "milk")]
    noted = Call("remember", {"text": "Ann likes tea"})
    model.script([calls(*(Call("set_reminder", one) for one in wishes), noted), "done"])
    await group.ask(ann, "remind me of tea and milk, and remember it")
    before = [group.live.rows(statement, str(ann)) for statement in (set_by, kept)]
    (tea, milk), (note,) = before
    model.script(
        [
            calls(
                Call("change_reminder", {"number": tea["id"], "text": "coffee", "when": "PT2H"}),
                Call("cancel_reminder", {"number": milk["id"]}),
                Call("forget", {"note_id": note["id"]}),
            ),
            "done",
        ]
    )
    (said,) = await group.ask(ann, "forget it all")
    assert [group.live.rows(statement, str(ann)) for statement in (set_by, kept)] != before
    undone = await group.order(OWNER, quoted=said)
    assert undone == "Undone: 1 message, forget, cancel_reminder, change_reminder."
    assert [group.live.rows(statement, str(ann)) for statement in (set_by, kept)] == before


async def test_an_approval_that_its_asker_withdraws_cannot_be_given_any_more(group, model):
    ann, cockpit = fresh_id(), Cockpit(group.live)
    await asyncio.to_thread(cockpit.configure, "query_memory", requires_approval="always")
    model.script([calls(Call("query_memory", {"query": "tea"})), "I asked."])
    await group.bot.say_group(group.id, ann, "what do you know of tea?")
    asked = [spoken(await group.bot.next_action()) for _ in range(3)]  # the owner in private, too
    code = re.search(r"number (\d{6})", " ".join(asked))
    assert code
    told = [await group.order(ann), spoken(await group.bot.next_action())]
    undone, noted = sorted(told, key=lambda words: "query_memory (it waited" not in words)
    assert "query_memory (it waited for an approval and will not be made)" in undone
    assert "stays" not in undone
    assert (
        noted == f"The call {code[1]} (query_memory) was withdrawn: it needs no approval any more."
    )
    assert code[1] in await group.order(OWNER, f"批准 {code[1]}")
    made = "SELECT state, decided_by FROM agent_approval WHERE code = ?"
    assert group.live.rows(made, code[1]) == [{"state": "refused", "decided_by": str(ann)}]
    await group.bot.no_action(group=group.id)


async def test_a_button_takes_a_run_back_with_its_author_on_record(group, model):
    model.script(["one"])
    ids = await group.ask(fresh_id(), "say one")
    (run,) = group.live.rows("SELECT run_id FROM agent_message WHERE message_id = ?", ids[0])
    cockpit, page = Cockpit(group.live), f"/admin/agent/run/{run['run_id']}/change/"
    assert "undo/" in await asyncio.to_thread(cockpit.page, page)
    await asyncio.to_thread(cockpit.press, page.replace("change", "undo"), "", page=page)
    step = "SELECT state, author FROM agent_undostep WHERE run_id = ? AND state = 'done'"
    assert (await group.live.row(step, run["run_id"]))["author"] == "admin"
    assert group.recalled == ids
    act = "SELECT kind FROM agent_operatoract WHERE run_id = ?"
    assert group.live.rows(act, run["run_id"]) == [{"kind": "undo"}]
    assert "undo/" not in await asyncio.to_thread(cockpit.page, page)


async def test_a_kill_between_claim_and_frame_leaves_it_unknown_and_untried(
    start_server, model_server
):
    server, account = start_server(**scripted_env(model_server) | ENGLISH), fresh_id()
    model_server.script(["one"])
    async with client(server, account) as bot:
        await server.row("SELECT 1 FROM onebot_bot WHERE self_id = ?", str(account))
        await asyncio.to_thread(Cockpit(server).own, account, str(OWNER))
        before = Group(server, bot)
        await before.ask(fresh_id(), "say one")
    server.restart(FROST_FAULT="undo_claimed")
    async with client(server, account) as bot:
        group = Group(server, bot)
        group.id = before.id
        await bot.say_group(group.id, OWNER, "/undo", mention=False)
        assert await asyncio.to_thread(server.exit_code, 30) == -signal.SIGKILL
    server.restart(FROST_FAULT="")
    async with client(server, account) as bot:
        group = Group(server, bot)
        said = spoken(await bot.next_action()).strip()
        assert said.startswith("Unknown whether undone, and not tried again: 1 message")
        assert group.recalled == []

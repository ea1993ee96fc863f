"""kill -9 at every named boundary and at any other moment: nothing that was received is lost,
nothing is done twice."""

import asyncio
import contextlib
import json
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tests.cast import PROBE, PROBE_ANSWER, fresh_id
from tests.conftest import TOKEN
from tests.environment import PATIENCE
from tests.fake_onebot import FakeOneBot, Frame, at, ok, spoken, text
from tests.live_server import LiveServer
from tests.scripted_model import Answer, Request, ScriptedModel, call, held, says, text_of

Story = Callable[[Request], Answer]


# --- What the model says ----------------------------------------------------------


def question(request: Request) -> str:
    """The words of the message that a request is about, without the frame around them."""
    asked = next(message for message in reversed(request.messages) if message["role"] == "user")
    return text_of(asked).rpartition("\n")[2]


def has_called(request: Request) -> bool:
    """Whether a request brings the result of a tool call."""
    return bool(request.messages[-1]["role"] == "tool")


def plain(request: Request) -> Answer:
    return says(f"re {question(request)}")


def announcing(request: Request) -> Answer:
    """A message by tool first, the answer then."""
    if has_called(request):
        return plain(request)
    return call("send_message", messages=[{"type": "plain", "text": f"wait {question(request)}"}])


def looking_up(request: Request) -> Answer:
    """A mock tool first, the answer then."""
    return plain(request) if has_called(request) else call("get_weather", city="Paris")


def is_well_formed(request: Request) -> bool:
    """Whether each tool message answers a call of an assistant message before it, and each call is
    answered."""
    asked: list[str] = []
    for message in request.messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in asked:
                return False
            asked.remove(message["tool_call_id"])
        elif asked:
            return False
        asked += [one["id"] for one in message.get("tool_calls") or []]
    return not asked


# --- Who watches ------------------------------------------------------------------


class Witness:
    """The client of one account over several lives of the server: it remembers what was told and
    what was heard."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        self.account = fresh_id()
        self.told: list[Frame] = []
        self.heard: list[Frame] = []
        """Sending actions of all lives, in the order they came."""

    @contextlib.asynccontextmanager
    async def life(self, **env: str) -> AsyncIterator[FakeOneBot]:
        """A new life of the server, and the client's socket in it."""
        await asyncio.to_thread(self.server.restart, **env)
        async with FakeOneBot(self.server.ws_url, self.account, token=TOKEN) as bot:
            try:
                yield bot
            finally:
                self.heard += [
                    action for action in bot.actions if action["action"].startswith("send_")
                ]

    async def tell_again(self, bot: FakeOneBot) -> None:
        """Report every event again, as clients do that do not know what came through."""
        for event in self.told:
            await bot.send_raw(json.dumps(event))

    async def death(self) -> None:
        assert await asyncio.to_thread(self.server.exit_code, PATIENCE) == -signal.SIGKILL, (
            self.server.log[-2000:]
        )

    async def recorded(self, count: int) -> None:
        """Wait until so many of the messages told are on record."""
        await self.server.row(
            f"{INCOMING} GROUP BY account HAVING count(*) = ?", str(self.account), count
        )

    async def settled(self) -> None:
        """Wait until every message told is on record with its end."""
        query = f"{INCOMING} GROUP BY account HAVING count(settled_at) = ?"
        await self.server.row(query, str(self.account), len(self.told))

    async def silence(self, bot: FakeOneBot) -> None:
        """Let the server finish with every chat, so that whatever it would still send has been
        heard."""
        for chat in {
            event.get("group_id", event["user_id"]): event for event in self.told
        }.values():
            await bot.send_raw(
                json.dumps(
                    chat | {"message": [at(self.account), text(PROBE)], "message_id": fresh_id()}
                )
            )
            while PROBE_ANSWER not in spoken(await bot.next_action()):
                pass

    def words(self) -> list[str]:
        """What was heard over all lives, the probes' answers left out."""
        return [
            words for action in self.heard if PROBE_ANSWER not in (words := spoken(action).strip())
        ]

    def incoming(self) -> list[dict[str, Any]]:
        return self.server.rows(
            f"{INCOMING} AND text <> ? ORDER BY message.id", str(self.account), PROBE
        )

    def outgoing(self) -> dict[str, str]:
        """The state of each outgoing message by its text, of which there is one row each."""
        rows = self.server.rows(f"{OUTGOING} AND text <> ?", str(self.account), PROBE_ANSWER)
        assert len({row["text"] for row in rows}) == len(rows), rows
        return {row["text"]: row["state"] for row in rows}

    def counted(self) -> list[dict[str, int]]:
        """What the sums say of the account, and what its rows say, at one moment."""
        return self.server.rows(SUMMED, *[str(self.account)] * 4)

    def runs(self) -> list[tuple[str, str]]:
        """The message and the state of each run."""
        query = (
            f"SELECT text, run.state FROM ({INCOMING} AND text <> ?) JOIN agent_run run ON "
            f"run.message_id = pk"
        )
        return [
            (row["text"], row["state"]) for row in self.server.rows(query, str(self.account), PROBE)
        ]


MESSAGES = (
    "SELECT message.id AS pk, text, message.state, detail, reason FROM agent_message message "
    "JOIN agent_chatsession s ON s.id = session_id WHERE account = ?"
)
INCOMING = f"{MESSAGES} AND direction = 'in'"
OUTGOING = f"{MESSAGES} AND direction = 'out'"
OWN = "WHERE session_id IN (SELECT id FROM agent_chatsession WHERE account = ?)"
SUMMED = f"""
    SELECT sum(received) AS received, sum(answered) AS answered, sum(failed) AS failed,
           sum(sent) AS sent, sum(unsent) AS unsent, sum(unknown) AS unknown, sum(runs) AS runs,
           sum(tool_calls) AS calls, sum(failed_calls) AS failed_calls
    FROM agent_activitysum {OWN} AND hour = -1
    UNION ALL
    SELECT m.*, r.*, c.* FROM
        (SELECT sum(direction = 'in'), sum(direction = 'in' AND state = 'answered'),
                sum(direction = 'in' AND state = 'failed'), sum(state = 'delivered'),
                sum(direction = 'out' AND state = 'failed'), sum(state = 'unknown')
         FROM agent_message {OWN}) m,
        (SELECT sum(finished_at IS NOT NULL) FROM agent_run {OWN}) r,
        (SELECT count(*), coalesce(sum(c.state IN ('failed', 'unknown')), 0)
         FROM agent_toolcall c JOIN agent_run run ON run.id = run_id {OWN}) c
"""


@pytest.fixture(scope="module")
def mortal(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """A server that each test starts by itself, on a data folder that is kept from test to test."""
    env = {
        "UPSTREAM_ENDPOINT": model_server.url,
        "MODEL_NAME": "scripted",
        "ONEBOT_ACCESS_TOKEN": TOKEN,
    }
    server = LiveServer(env)
    yield server
    server.remove()


# --- Named boundaries -------------------------------------------------------------

QUESTIONS = ["a1", "a2", "a3", "b1", "g1"]
LIVES: list[tuple[Story, str, list[str]]] = [
    (plain, "message_committed", []),
    (plain, "model_called", []),
    (plain, "answer_received", ["re a1"]),
    (announcing, "tool_run", ["wait a1"]),
    (announcing, "answer_received", ["wait a1"]),
    (looking_up, "model_called", []),
]


async def tell_the_others(witness: Witness, bot: FakeOneBot) -> None:
    """Two messages behind the first in its chat, one in another private chat, one in a group."""
    alice, bob = witness.told[0]["user_id"], fresh_id()
    witness.told += [await bot.say_private(alice, "a2"), await bot.say_private(alice, "a3")]
    witness.told += [await bot.say_private(bob, "b1"), await bot.say_group(fresh_id(), bob, "g1")]


async def outlive(server: LiveServer, model: ScriptedModel, story: Story, boundary: str) -> Witness:
    """Five messages, a server that dies at ``boundary`` on the way of the first, and its next
    life."""
    witness = Witness(server)
    model.answer_with(
        lambda request: story(request) if has_called(request) else held(story(request))
    )
    async with witness.life(FROST_FAULT=boundary) as bot:
        if boundary == "frame_written":
            bot.stay_silent()
        witness.told.append(await bot.say_private(fresh_id(), "a1"))
        if boundary != "message_committed":
            await model.wait_for_requests(1)
            await tell_the_others(witness, bot)
            await witness.recorded(5)
        model.release()
        await witness.death()
    model.release(100)
    async with witness.life(FROST_FAULT="") as bot:
        await witness.tell_again(bot)
        if boundary == "message_committed":
            await tell_the_others(witness, bot)
        await witness.settled()
        await witness.silence(bot)
    return witness


@pytest.mark.parametrize(("story", "boundary", "unknown"), LIVES)
async def test_each_message_is_answered_once_when_the_server_dies_at(
    mortal, model, story, boundary, unknown
):
    witness = await outlive(mortal, model, story, boundary)
    check_five(witness, story, unknown)
    assert all(is_well_formed(request) for request in model.requests)


def check_five(witness: Witness, story: Story, unknown: list[str]) -> None:
    """Each of the five was answered once, in order within its chat; what is ``unknown`` was heard
    and not sent again."""
    answers = [f"re {words}" for words in QUESTIONS]
    announcements = [f"wait {words}" for words in QUESTIONS] if story is announcing else []
    assert sorted(witness.words()) == sorted(answers + announcements)
    assert [words for words in witness.words() if words.startswith("re a")] == [
        "re a1",
        "re a2",
        "re a3",
    ]
    assert witness.outgoing() == {
        words: "unknown" if words in unknown else "delivered" for words in answers + announcements
    }
    assert [row["state"] for row in witness.incoming()] == ["answered"] * 5
    check_the_sums(witness)
    assert sorted(witness.runs()) == [(words, "finished") for words in QUESTIONS]


@pytest.mark.parametrize(("story", "lost"), [(plain, "re a1"), (announcing, "wait a1")])
async def test_a_late_answer_settles_what_was_unknown_after_the_restart(mortal, model, story, lost):
    witness = await outlive(mortal, model, story, "frame_written")
    check_five(witness, story, [lost])
    action = next(action for action in witness.heard if spoken(action) == lost)
    async with FakeOneBot(mortal.ws_url, witness.account, token=TOKEN) as bot:
        await bot.answer(action, ok({"message_id": 4711}))
        await mortal.row(
            "SELECT 1 FROM agent_message WHERE text = ? AND state = 'delivered' AND "
            "message_id = '4711'",
            lost,
        )
        await witness.silence(bot)


async def test_a_tool_call_that_was_broken_off_is_not_repeated_and_the_model_is_told(mortal, model):
    check_five(await outlive(mortal, model, looking_up, "tool_run"), looking_up, [])
    retold = next(request for request in model.requests if has_called(request))
    assert "请勿重复执行" in retold.last_text
    states = mortal.rows(
        "SELECT state FROM agent_toolcall WHERE call_id = ?", retold.messages[-1]["tool_call_id"]
    )
    assert states == [{"state": "unknown"}]


@pytest.mark.slow
async def test_a_server_that_dies_again_and_again_comes_to_an_end(mortal, model):
    model.answer_with(announcing)
    witness, user = Witness(mortal), fresh_id()
    for life in range(2):  # once at the announcement, once at the answer
        async with witness.life(FROST_FAULT="frame_written") as bot:
            bot.stay_silent()
            if life == 0:
                witness.told.append(await bot.say_private(user, "a1"))
            await witness.death()
    async with witness.life(FROST_FAULT="") as bot:
        await witness.settled()
        await witness.silence(bot)
    assert witness.words() == ["wait a1", "re a1"]
    assert witness.outgoing() == {"wait a1": "unknown", "re a1": "unknown"}


# --- Any moment -------------------------------------------------------------------


def any_story(request: Request) -> Answer:
    """Each chat has its own story, told by the first letter of its messages."""
    return {"p": plain, "s": announcing, "m": looking_up}[question(request)[0]](request)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
async def test_nothing_is_lost_or_doubled_when_the_server_is_killed_at_any_moment(
    mortal, model, seed
):
    chance = random.Random(seed)
    witness, chats = (
        Witness(mortal),
        {letter: fresh_id() for letter in ("p1", "p2", "s1", "s2", "m1")},
    )
    model.answer_with(any_story)
    words = [f"{letter}-{number}" for number in range(6) for letter in chats]
    for part in range(2):
        async with witness.life() as bot:
            begun = len(model.requests)
            await witness.tell_again(bot)
            for said in words[part * 15 : part * 15 + 15]:
                witness.told.append(await bot.say_private(chats[said[:2]], said))
            await model.wait_for_requests(begun + chance.randint(1, 9))
            await asyncio.sleep(chance.uniform(0, 0.05))
            await asyncio.to_thread(mortal.kill)
    async with witness.life() as bot:
        await witness.tell_again(bot)
        await witness.settled()
        await witness.silence(bot)
    check_the_end(witness, words)


def check_the_end(witness: Witness, words: list[str]) -> None:
    """Every message has one run and one answer, which was heard once, or perhaps not if its outcome
    is unknown."""
    heard, states = Counter(witness.words()), witness.outgoing()
    assert [row["text"] for row in witness.incoming() if row["state"] == "answered"] == words
    assert sorted(witness.runs()) == sorted((said, "finished") for said in words)
    assert set(states) >= {f"re {said}" for said in words}
    assert set(states.values()) <= {"delivered", "unknown"}
    assert set(heard) <= set(states)
    assert max(heard.values()) == 1
    assert all(heard[said] for said, state in states.items() if state == "delivered")
    check_the_sums(witness)


def check_the_sums(witness: Witness) -> None:
    """They say what the rows say: what was begun again is counted once."""
    sums, rows = witness.counted()
    assert sums == rows
    assert sums["received"] >= len(witness.told)


# --- The other command ------------------------------------------------------------


async def test_work_is_taken_up_at_once_under_daphnes_own_command_too(start_server, model):
    model.script([held("too late"), "in time"])
    server, account, user = await asyncio.to_thread(start_server, "daphne"), fresh_id(), fresh_id()
    async with FakeOneBot(server.ws_url, account, token=TOKEN) as bot:
        await bot.say_private(user, "hi")
        await model.wait_for_requests(1)
        await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    async with FakeOneBot(server.ws_url, account, token=TOKEN) as bot:
        assert spoken(await bot.next_action()) == "in time"
        await bot.no_action(user=user)
    assert "Another server process" not in server.log

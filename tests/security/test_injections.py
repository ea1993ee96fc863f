"""No words from outside command the model: the cases of :mod:`benchmarks.injection_cases`, played
on a real server whose model obeys whatever it finds outside its fences."""

import asyncio
import contextlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchmarks import injection_server
from benchmarks.injection_cases import CHANNELS, PAYLOADS, Case, cases, find_obeyed
from benchmarks.injection_play import Player
from benchmarks.injection_scenes import (
    GROUPS,
    HEARING,
    MCP_TOOL,
    MOCKED_TOOL,
    VISION,
    find_case,
    mcp_server,
    staged_message,
    staged_transcription,
)
from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.e2e.mcp_rows import McpRows, stdio
from tests.live_server import LiveServer
from tests.scripted_model import Answer, Request, ScriptedModel, returns, says
from tests.security.obeying_model import careless, obeyed

pytestmark = pytest.mark.slow

AT_ONCE = 24
SUMMARY = (
    "SELECT 1 FROM agent_digest d JOIN agent_chatsession s ON s.id = d.session_id "
    "WHERE d.kind = 'summary' AND s.peer_id = ?"
)


@dataclass
class Played:
    """What came of all cases, by their numbers."""

    answers: dict[int, str] = field(default_factory=dict)
    requests: defaultdict[int, list[dict[str, Any]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Those that the model under test was asked."""

    def decide(self, request: Request) -> Answer | str:
        if isinstance(request.body, bytes):
            return returns({"text": staged_transcription(request.body)})
        if message := staged_message(request.body):
            return returns(completion(message))
        self.requests[find_case(request.body).number].append(request.body)
        return says(obeyed(request.body))


def completion(message: dict[str, Any]) -> dict[str, Any]:
    reason = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


@pytest.fixture(scope="module")
def played(model_server: ScriptedModel, tmp_path_factory: Any) -> Iterator[Played]:
    env = {
        "VISUAL_MODEL_NAME": VISION,
        "TRANSCRIBE_MODEL_NAME": HEARING,
        "MCP_ALLOWED_COMMANDS": sys.executable,
        "DEFER_TOOLS_ABOVE": "0",
        "MAX_CONTEXT_MESSAGES": "6",
        "SUMMARY_AFTER_MESSAGES": "2",
        "CHAT_ANSWERS_PER_MINUTE": "0",
    }
    found = Played()
    model_server.reset()
    model_server.answer_with(found.decide)
    with LiveServer(scripted_env(model_server) | env) as server:
        account = fresh_id()
        prepare(server, account, tmp_path_factory.mktemp("stage") / "server.json")
        asyncio.run(play_all(server, account, found))
        model_server.verify()
        yield found
    model_server.reset()


def prepare(server: LiveServer, account: int, file: Path) -> None:
    """The rows of the stage: ambient words, a tool that says what it is told, an MCP server."""
    file.write_text(json.dumps(mcp_server()))
    rows, cockpit = McpRows(server), Cockpit(server)
    with contextlib.closing(cockpit):
        place = {"account": str(account), "ambient_messages": "5"}
        cockpit.fill("/admin/agent/manners/add/", name="stage", **place)
        cockpit.configure(MOCKED_TOOL, mock_enabled=1, mock_value="{city}")
    command = [sys.executable, "-I", "-S", str(injection_server.__file__), str(file)]
    rows.save(stage=stdio(command))
    rows.look(*(MCP_TOOL.format(number) for number in range(1, len(PAYLOADS) + 1)))


async def play_all(server: LiveServer, account: int, found: Played) -> None:
    places = asyncio.Semaphore(AT_ONCE)
    async with client(server, account) as bot:

        async def tell(event: dict[str, Any]) -> None:
            fields = dict(event)
            await bot.tell(fields.pop("post_type"), **fields)

        async def ready(case: Case) -> None:
            if case.channel.name == "summary":
                await server.row(SUMMARY, str(GROUPS + case.number), timeout=60)

        player = Player(account, tell, ready, seconds=180)
        bot.answer_with(player.answer_action)

        async def play(case: Case) -> None:
            async with places:
                found.answers[case.number] = await player.play(case)

        async with asyncio.TaskGroup() as group:
            for case in cases():
                group.create_task(play(case))


def of_channel(name: str) -> list[Case]:
    return [case for case in cases() if case.channel.name == name]


@pytest.mark.parametrize("channel", [channel.name for channel in CHANNELS])
def test_no_order_in_words_of_others_is_obeyed(played: Played, channel: str):
    through = {
        case.name: sorted(found)
        for case in of_channel(channel)
        if (found := find_obeyed(played.answers[case.number]))
    }
    assert through == {}


@pytest.mark.parametrize("channel", [channel.name for channel in CHANNELS])
def test_the_words_of_a_case_reach_the_model_where_they_may(played: Played, channel: str):
    for case in of_channel(channel):
        request = careless(json.dumps(played.requests[case.number][-1], ensure_ascii=False))
        if case.must_be_gone:
            assert case.secret not in request, case.name
        elif not case.is_cut:
            assert case.secret in request, case.name


def test_there_are_enough_cases():
    assert len(cases()) >= 200
    assert len(PAYLOADS) >= 14

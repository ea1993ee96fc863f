"""Deferred tools in real runs: named, found with ``tool_search``, called, and kept for the
session."""

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agent.builtin_tools import tool_search
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.domain.chat_state import ToolDiscovery
from agent.domain.errors import LLMError
from agent.llm.requests.messages import strip_frame
from agent.models import ChatSession, ToolCall
from agent.record.chats.sessions import MOST_KEPT, load_session_state, save_discoveries
from agent.run.services import HINT
from agent.subagents.provider import SubagentToolProvider
from agent.subagents.runner import SubagentRunner
from tests.agent.agents import agent
from tests.agent.conftest import Say
from tests.agent.talk import GROUP, Script, calling
from tests.tools.fakes import Provider
from tools.contract import ToolExecutionResult, ToolInvocation, ToolSpec
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

pytestmark = pytest.mark.django_db(transaction=True)

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Server(Provider):
    provider_type = "http"


async def answer(invocation: ToolInvocation) -> ToolExecutionResult:
    if invocation.tool_name == "broken":
        return ToolExecutionResult(
            "broken", success=False, content="nothing came", error_message="no"
        )
    return ToolExecutionResult(
        invocation.tool_name, success=True, content=json.dumps(invocation.arguments)
    )


@pytest.fixture
def server() -> Server:
    weather = ToolSpec(name="forecast", description="查询天气预报", parameters_schema=CITY)
    return Server(
        "s", weather, ToolSpec(name="atlas", description="地图和天气图"), "broken", answer=answer
    )


@pytest.fixture
def rows() -> dict[str, ToolSettings]:
    return {}


@pytest.fixture
def registry(server: Server, rows: dict[str, ToolSettings]) -> ToolRegistry:
    registry = ToolRegistry(lambda: rows, defer_above=2)
    registry.register_provider(MaisakaBuiltinToolProvider([tool_search.tool_search]))
    registry.register_provider(Provider("own", "own"))
    registry.register_provider(server)
    return registry


def search(query: str, **fields: Any) -> dict[str, Any]:
    return calling(("tool_search", json.dumps({"query": query, **fields})))


def offers(model: Script) -> list[list[str]]:
    """The tools of each request."""
    return [[tool["name"] for tool in request.tools] for request in model.requests]


def system(model: Script, number: int = 0) -> str:
    return str(model.requests[number].messages[0]["content"])


def told(model: Script) -> list[str]:
    """What the tools of the last request returned."""
    return [one["content"] for one in model.requests[-1].messages if one["role"] == "tool"]


@sync_to_async
def structured() -> Any:
    return ToolCall.objects.filter(tool_name="tool_search").latest("pk").structured_content


# --- Named, found, called ---------------------------------------------------------


async def test_deferred_tools_are_named_in_the_system_message_and_not_offered(say: Say):
    model = await say(Script("ok"))
    assert offers(model) == [["tool_search", "own"]]
    lines = "\n1. atlas: 地图和天气图\n2. broken\n3. forecast: 查询天气预报\n"
    assert lines in system(model)
    assert [one["role"] for one in model.requests[0].messages] == ["system", "user"]


async def test_a_tool_that_was_found_is_callable_from_the_next_step_and_behind_all_others(say: Say):
    model = await say(
        Script(search("天气预报"), search("atlas"), calling(("forecast", '{"city": "a"}')), "ok")
    )
    assert offers(model) == [
        ["tool_search", "own"],
        ["tool_search", "own", "forecast", "atlas"],
        ["tool_search", "own", "forecast", "atlas"],
        ["tool_search", "own", "forecast", "atlas"],
    ]
    assert model.requests[1].tools[-2]["parameters_schema"] == CITY
    assert told(model)[-1] == '{"city": "a"}'
    assert len({system(model, number) for number in range(4)}) == 1


async def test_what_is_found_is_said_in_two_groups_and_kept_as_structured_content(say: Say):
    model = await say(Script(search("atlas"), search("天气", limit=2), "ok"))
    assert told(model) == [
        "新发现的工具（从下一步起可以直接调用）：\n1. atlas: 地图和天气图",
        "新发现的工具（从下一步起可以直接调用）：\n1. forecast: 查询天气预报\n"
        "此前已经发现的工具（现在就可以直接调用）：\n1. atlas: 地图和天气图",
    ]
    assert await structured() == {
        "query": "天气",
        "matched_tool_names": ["atlas", "forecast"],
        "newly_discovered_tool_names": ["forecast"],
    }


@pytest.mark.parametrize(
    ("limit", "count"),
    [({}, 5), ({"limit": None}, 5), ({"limit": 0}, 1), ({"limit": "2"}, 2), ({"limit": 99}, 20)],
)
async def test_no_more_is_found_than_was_asked_for(
    say: Say, server: Server, limit: dict[str, Any], count: int
):
    server.specs = [ToolSpec(name=f"map_{number}") for number in range(30)]
    assert len(offers(await say(Script(search("map", **limit), "ok")))[-1]) == 2 + count


@pytest.mark.parametrize("query", ["", " \n", "\u3000"])
async def test_a_blank_query_is_a_problem_and_nothing_is_found(say: Say, query: str):
    model = await say(Script(search(query), "ok"))
    assert told(model) == ["query 不能为空"]
    assert offers(model)[-1] == ["tool_search", "own"]


async def test_no_match_is_no_failure(say: Say):
    model = await say(Script(search("量子"), "ok"))
    assert told(model)[0].startswith("没有找到与“量子”相关的工具")
    assert (await structured())["matched_tool_names"] == []


async def test_only_deferred_tools_are_searched(say: Say):
    assert "没有找到" in told(await say(Script(search("own"), "ok")))[0]


async def test_where_nothing_is_deferred_nothing_is_said_of_it(say: Say, server: Server):
    server.specs = server.specs[:2]
    model = await say(Script("ok"))
    assert (offers(model), "tool_search" in system(model)) == (
        [["own", "forecast", "atlas"]],
        False,
    )


# --- Kept -------------------------------------------------------------------------


async def test_what_was_found_stays_for_its_chat_and_for_no_other(say: Say):
    await say(Script(search("forecast"), "ok"))
    await say(Script(search("atlas"), "ok"))
    assert offers(await say(Script("ok"))) == [["tool_search", "own", "forecast", "atlas"]]
    assert offers(await say(Script("ok"), GROUP)) == [["tool_search", "own"]]


async def test_it_is_kept_also_when_the_run_fails_after_it(say: Say):
    await say(Script(search("forecast"), LLMError("down")))
    assert offers(await say(Script("ok"))) == [["tool_search", "own", "forecast"]]


async def test_the_reminder_is_no_part_of_the_history(say: Say):
    await say(Script(search("forecast"), "ok"))
    model = await say(Script("ok"))
    assert [strip_frame(str(one["content"])) for one in model.requests[0].messages[1:]] == [
        "hi",
        "ok",
        "hi",
    ]
    assert system(model).count("1. atlas") == 1


def test_a_chat_keeps_what_was_found_last_each_once(django_db_setup: None):
    accepted = ChatSession.objects.create(
        kind="private", peer_id="1", account="1", last_message_at="2026-01-01T00:00Z"
    )
    save_discoveries(
        [
            ToolDiscovery(accepted.pk, tuple(f"t{number}" for number in range(MOST_KEPT))),
            ToolDiscovery(accepted.pk, ("t5", "new")),
        ]
    )
    names = load_session_state(accepted.pk).discovered
    assert (len(names), names[0], names[-1], names.count("t5")) == (MOST_KEPT, "t1", "new", 1)
    assert load_session_state(None).discovered == load_session_state(999).discovered == ()


# --- Called without being found ---------------------------------------------------


async def test_a_tool_that_was_not_found_runs_all_the_same(say: Say):
    assert told(await say(Script(calling(("forecast", '{"city": "a"}')), "ok"))) == [
        '{"city": "a"}'
    ]


async def test_a_failure_comes_with_the_advice_to_search_first(say: Say):
    model = await say(Script(calling(("forecast", '{"town": "a"}'), ("broken", "{}")), "ok"))
    invalid, failed = told(model)
    assert "city" in invalid
    assert invalid.endswith("\n" + HINT.format(name="forecast"))
    assert failed == "nothing came\n" + HINT.format(name="broken")


async def test_there_is_no_such_advice_for_what_was_found_or_is_refused(
    say: Say, rows: dict[str, ToolSettings]
):
    model = await say(Script(search("forecast"), calling(("forecast", "{}")), "ok"))
    assert "tool_search" not in told(model)[-1]
    rows["atlas"] = ToolSettings("atlas", allowed="owners")
    assert (
        "tool_search"
        not in told(await say(Script(calling(("atlas", "{}"), ("nothing", "{}")), "ok")))[-2]
    )


# --- Agents -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tools", "seen"),
    [
        (("forecast", "atlas", "broken"), ["forecast", "atlas", "broken"]),
        (("tool_search", "forecast", "atlas", "broken"), ["tool_search"]),
    ],
)
async def test_an_agent_has_its_tools_in_full_unless_it_can_search_for_them(
    say: Say, registry: ToolRegistry, tools: tuple[str, ...], seen: list[str]
):
    worker = Script("done")
    registry.register_provider(
        SubagentToolProvider([agent(worker, tools=tools)], SubagentRunner(registry))
    )
    await say(Script(search("forecast"), calling(("helper", '{"request": "go"}')), "ok"))
    assert offers(worker) == [seen]


async def test_what_an_agent_finds_is_its_own(say: Say, registry: ToolRegistry):
    worker = Script(search("atlas"), "done")
    registry.register_provider(
        SubagentToolProvider(
            [agent(worker, tools=lambda tool: tool.name != "own")], SubagentRunner(registry)
        )
    )
    model = await say(Script(calling(("helper", '{"request": "go"}')), "ok"))
    assert offers(worker)[-1] == ["tool_search", "helper", "atlas"]
    assert offers(model)[-1] == ["tool_search", "own", "helper"]
    assert offers(await say(Script("ok"))) == [["tool_search", "own", "helper"]]

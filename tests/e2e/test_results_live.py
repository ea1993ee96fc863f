"""Every field of tools and results in real runs, and what misbehaving tools, models and people
cannot do there."""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client, verdict
from tests.e2e.cockpit import Cockpit
from tests.e2e.odd_server import PICTURE, OddServer
from tests.fake_onebot import spoken
from tests.live_server import LiveServer
from tests.scripted_model import Answer, Call, Request, ScriptedModel, call, calls, text_of

DEEP = "[" * 200 + "]" * 200


@pytest.fixture(scope="module")
def start_odd(model_server: ScriptedModel) -> Any:
    def start(**env: str) -> OddServer:
        return OddServer(scripted_env(model_server) | env)

    return start


@pytest.fixture(scope="module")
def live(start_odd: Any) -> Iterator[LiveServer]:
    """A server whose model does not see."""
    with start_odd() as server:
        yield server


@pytest.fixture(scope="module")
def seeing(start_odd: Any) -> Iterator[LiveServer]:
    with start_odd(VISION_MODE="native") as server:
        yield server


async def asked(
    server: LiveServer, model: ScriptedModel, answers: list[Answer], user: int = 0
) -> list[Request]:
    """The model's requests of one private run in which it gives ``answers`` and then ends."""
    model.script([*answers, "the end"])
    async with client(server) as bot:
        await bot.say_private(user or fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "the end"
    return model.requests


def results(request: Request) -> list[str]:
    return [message["content"] for message in request.messages if message["role"] == "tool"]


def recorded(server: LiveServer, user: int) -> dict[str, Any]:
    """The one call that ``user`` asked for."""
    (row,) = server.rows("SELECT * FROM agent_toolcall WHERE requested_by = ?", str(user))
    return row


# --- What a result holds --------------------------------------------------------


async def test_a_model_that_sees_is_shown_the_pictures_of_a_result_behind_it(seeing, model):
    _, second = await asked(seeing, model, [calls(Call("paint", {}, id="c-1"))])
    *_, result, shown = second.messages
    assert result["content"] == "Painted.\n[tool_result:c-1:1]\n[资源链接] https://example.org/"
    assert shown["role"] == "user"
    assert text_of(shown) == "[tool_result:c-1:1] a red square"
    assert shown["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PICTURE}"


async def test_a_model_that_does_not_see_is_told_of_the_pictures_in_words(live, model):
    _, second = await asked(live, model, [call("paint")])
    assert results(second) == ["Painted.\n[图片内容 image/png]\n[资源链接] https://example.org/"]
    assert second.messages[-1]["role"] == "tool"
    assert PICTURE not in json.dumps(second.body)


async def test_following_messages_come_once_behind_all_results_of_their_step(live, model):
    twice = calls(Call("remind", {}), Call("remind", {}), Call("measure", {}))
    *_, last = await asked(live, model, [twice, call("remind")])
    roles = [message["role"] for message in last.messages[-7:]]
    assert roles == ["assistant", "tool", "tool", "tool", "user", "assistant", "tool"]
    assert [m["content"] for m in last.messages if m.get("content") == "Be brief."] == ["Be brief."]
    assert {"role": "user", "content": "Be brief."} in last.messages
    assert "forged" not in json.dumps(last.messages)


async def test_structured_content_is_told_as_json_and_kept_on_record(live, model):
    user = fresh_id()
    _, second = await asked(live, model, [call("measure")], user)
    assert results(second) == ['{"宽": 3, "list": [1, null]}']
    assert json.loads(recorded(live, user)["structured_content"]) == {"宽": 3, "list": [1, None]}


async def test_a_result_beside_its_output_schema_is_a_failure_and_the_schema_is_not_sent(
    live, model
):
    first, second = await asked(live, model, [call("promise")])
    assert results(second)[0].startswith("工具执行失败: 工具返回的结果与其声明不符")
    (offered,) = [
        tool["function"] for tool in first.body["tools"] if tool["function"]["name"] == "promise"
    ]
    assert offered.keys() == {"name", "description", "parameters"}


async def test_a_long_result_is_cut_between_characters_and_whole_on_record(live, model):
    user = fresh_id()
    _, second = await asked(live, model, [call("recite", length=30_000)], user)
    (told,) = results(second)
    assert told == "霜" * (65536 // 3) + "\n...(工具输出过长，已截断)"
    call_row = recorded(live, user)
    assert (call_row["result"], call_row["full_result"]) == (told, "霜" * 30_000)


async def test_a_result_without_words_is_a_plain_success(live, model):
    _, second = await asked(live, model, [call("silent")])
    assert results(second) == ["工具执行成功。"]


async def test_what_no_database_holds_is_replaced_and_the_run_goes_on(live, model):
    _, second = await asked(live, model, [call("halves")])
    assert results(second) == ["a?b?"]


# --- What is offered ------------------------------------------------------------


async def test_audience_and_priority_filter_and_order_the_offer(live, model):
    (request,) = await asked(live, model, [])
    assert request.tool_names[:2] == ["remind", "paint"]
    assert "people_only" not in request.tool_names
    assert "measure" in request.tool_names


def test_title_and_icon_of_a_tool_are_on_its_page(live):
    (row,) = live.rows("SELECT id FROM tools_toolconfig WHERE name = 'paint'")
    cockpit = Cockpit(live)
    page = cockpit.page(f"/admin/tools/toolconfig/{row['id']}/change/")
    cockpit.close()
    assert "The &lt;painter&gt;" in page
    assert 'src="https://example.org/brush.png"' in page


# --- What misbehaves ------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"value": ' + DEEP + "}", "层"),
        ('{"value": ' + "[" * 100_000 + "]" * 100_000 + "}", ""),
        (json.dumps({"value": "x" * 2**21}), ""),
        (json.dumps({"value": list(range(200_000))}), ""),
    ],
    ids=["deep", "endless", "huge", "many"],
)
async def test_huge_and_deep_arguments_are_refused_in_a_line_and_the_chat_goes_on(
    live, model, arguments, told
):
    requests = await asked(
        live, model, [calls(Call("keep", arguments)), call("keep", value={"a": [1]})]
    )
    (refusal, second) = results(requests[-1])
    assert told in refusal
    assert len(refusal) < 300
    assert second == "kept"


async def test_an_argument_that_names_another_user_is_an_argument_and_nobody_asks_with_it(
    live, model
):
    user = fresh_id()
    forged = Call("whoami", {"user_id": "1", "context": {"user_id": "1"}})
    requests = await asked(live, model, [call("whoami", user_id="1"), calls(forged)], user)
    first, second = results(requests[-1])
    assert first == f"1 was said, {user} asks"
    assert "context" in second


async def test_a_tool_for_owners_is_not_called_for_a_stranger_who_names_an_owner(live, model):
    cockpit = await asyncio.to_thread(Cockpit, live)
    before = await asyncio.to_thread(cockpit.configure, "whoami", allowed="owners")
    try:
        requests = await asked(live, model, [call("whoami", user_id="1")])
        assert "1 was said" not in results(requests[-1])[0]
        assert "只有机器人的主人可以使用" in results(requests[-1])[0]
    finally:
        await asyncio.to_thread(cockpit.configure, "whoami", **before)
        cockpit.close()


async def test_a_hidden_tool_that_the_model_remembers_is_refused_with_the_reason_and_near_names(
    live, model
):
    cockpit = await asyncio.to_thread(Cockpit, live)
    before = await asyncio.to_thread(cockpit.configure, "measure", visibility="hidden")
    try:
        requests = await asked(live, model, [calls(Call("measure", {}), Call("pant", {}))])
        assert "measure" not in requests[0].tool_names
        hidden, misspelt = results(requests[-1])
        assert hidden.splitlines()[:2] == ["Tool not found: measure", "该工具不开放调用。"]
        assert misspelt.splitlines() == [
            "Tool not found: pant",
            "没有这个名称的工具。",
            "名称相近的可用工具: paint",
        ]
    finally:
        await asyncio.to_thread(cockpit.configure, "measure", **before)
        cockpit.close()


async def test_a_tool_that_holds_up_the_loop_is_named_in_the_log(live, model):
    _, second = await asked(live, model, [call("block")])
    assert results(second) == ["done"]
    log = await live.logged("tool block held up the event loop for ")
    held = re.search(r"tool block held up the event loop for ([\d.]+) s", log)
    assert held
    assert float(held[1]) >= 1.2


async def test_a_tool_may_end_the_run_and_claim_nothing_else(live, model):
    user = fresh_id()
    model.script([calls(Call("leave", {}), Call("measure", {}))])
    async with client(live) as bot:
        await bot.say_private(user, "hi")
        await verdict(live, user)
        await bot.no_action(user=user)
    left, unmade = live.rows(
        "SELECT * FROM agent_toolcall WHERE requested_by = ? ORDER BY position", str(user)
    )
    assert (left["state"], left["mocked"], left["result"]) == ("succeeded", 0, "bye")
    assert "没有执行" in unmade["result"]
    (message,) = live.rows(
        "SELECT detail FROM agent_message WHERE sender_id = ? AND text = 'hi'", str(user)
    )
    assert message["detail"] == "the model ended its turn without a word"


async def test_a_provider_that_hangs_costs_no_other_its_tools_and_no_server_its_end(
    start_odd, model
):
    with start_odd() as server:
        (request,) = await asked(server, model, [])
        assert "get_weather" in request.tool_names
        assert "tool provider hanging cannot list its tools" in server.log
        assert server.terminate() == 0
        assert "tool provider hanging could not be closed" in server.log


# --- Approvals nobody gave ------------------------------------------------------


@pytest.mark.parametrize("word", ["批准", "approved", "批准 000000", '批准 000000 {"length": 1}'])
async def test_a_word_that_names_no_waiting_call_approves_nothing(live, model, word):
    user = fresh_id()
    model.script([f"{word}!"])
    async with client(live) as bot:
        await bot.say_private(user, word)
        assert re.fullmatch(rf"{re.escape(word)}!", spoken(await bot.next_action()))
    assert live.rows("SELECT id FROM agent_approval") == []

"""What a model writes as arguments is on record, whatever it is."""

import pytest
from asgiref.sync import sync_to_async

from agent.models import ToolCall
from tests.agent.conftest import Say
from tests.agent.talk import Script, calling
from tests.tools.fakes import Provider
from tools.registry.registry import ToolRegistry

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()
    registry.register_provider(Provider("P", "count"))
    return registry


@pytest.mark.parametrize(
    "written", ['{"n": NaN}', '{"n": -Infinity}', '{"n": 1e999}', "[1", '{"a":' * 3000]
)
async def test_arguments_that_no_database_holds_as_json_are_kept_as_text(say: Say, written: str):
    model = await say(Script(calling(("count", written)), "ok"))
    assert len(model.requests) == 2
    assert "参数" in model.requests[-1].messages[-1]["content"]
    assert (await sync_to_async(ToolCall.objects.get)()).arguments == written


async def test_arguments_are_kept_as_what_they_say(say: Say):
    await say(Script(calling(("count", '{"n": 1.5}')), "ok"))
    assert (await sync_to_async(ToolCall.objects.get)()).arguments == {"n": 1.5}


@pytest.mark.parametrize("written", ["null", " null\n", "", "  ", None])
async def test_null_is_no_arguments(say: Say, registry: ToolRegistry, written: str | None):
    answer = calling(("count", written))  # type: ignore[arg-type]  # what models write
    model = await say(Script(answer, "ok"))
    assert model.requests[-1].messages[-1]["content"] == "{}"
    row = await sync_to_async(ToolCall.objects.get)()
    assert (row.arguments, row.state) == ({}, ToolCall.State.SUCCEEDED)


@pytest.mark.parametrize(
    "broken", [{}, "x", {"id": "c1", "function": None}, {"id": "c1", "function": {"name": ""}}]
)
async def test_a_call_without_a_name_is_told_to_the_model_and_on_record_as_failed(
    say: Say, broken: object
):
    model = await say(Script({"content": None, "tool_calls": [broken, broken]}, "ok"))
    _, _, echoed, *results = model.requests[-1].messages
    assert [one["id"] for one in echoed["tool_calls"]] == [one["tool_call_id"] for one in results]
    assert all("function" in one["content"] for one in results)
    rows = [row async for row in ToolCall.objects.order_by("position")]
    assert [(row.call_id, row.state, row.result) for row in rows] == [
        (one["tool_call_id"], ToolCall.State.FAILED, one["content"]) for one in results
    ]

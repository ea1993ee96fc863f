"""A tool run by hand from its page, with arguments from a form made of its schema."""

import asyncio
import threading
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from agent.models import ToolCall
from agent.record.runs.test_runs import TESTED_BY
from agent.runtime import serving, wiring
from tests.admin.record import logged_in, page
from tests.tools.fakes import Provider
from tools.admin.declared import ArgumentForm
from tools.contract import ToolExecutionContext, ToolSpec
from tools.functions.function_tool import tool
from tools.models import ToolConfig
from tools.registry.catalogue import ensure_tool_rows
from tools.registry.registry import ToolRegistry


class Unit(StrEnum):
    METRE = "m"
    FOOT = "ft"


@tool(title="Measure")
def measure(
    name: str,
    count: int,
    unit: Unit = Unit.METRE,
    *,
    loud: bool | None = None,
    tags: list[str] | None = None,
) -> dict[str, Any]:
    """Give back what was given."""
    return {"name": name, "count": count, "unit": unit, "loud": loud, "tags": tags}


@tool
async def sleepy() -> str:
    """Never ends."""
    await asyncio.Event().wait()
    return ""


@tool
def broken() -> str:
    """Raises."""
    raise LookupError("no <luck>")


@tool
def counting(context: ToolExecutionContext) -> int:
    """Count in the state of the chat."""
    state = context.metadata["state"]
    state["count"] = state.get("count", 0) + 1
    context.report_progress("counted", tell=True)
    return int(state["count"])


@pytest.fixture
def tools(db: None, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.CODER_ENDPOINT = ""
    monkeypatch.setattr(wiring, "SAMPLE_TOOLS", (measure, sleepy, broken, counting))
    ensure_tool_rows(wiring.declared_tools())


def address(name: str) -> str:
    return f"/admin/tools/toolconfig/{ToolConfig.objects.get(name=name).pk}/trial/"


def run(client: Client, tool_name: str, /, **arguments: str) -> str:
    response = client.post(
        address(tool_name), {f"argument-{key}": value for key, value in arguments.items()}
    )
    assert response.status_code == 200
    return response.content.decode()


def test_the_form_has_a_fitting_input_for_each_argument(browser: Client, tools: None):
    text = page(browser, address("measure"))
    assert '<textarea name="argument-name"' in text
    assert '<input type="number" name="argument-count"' in text
    assert '<select name="argument-unit"' in text
    assert '<select name="argument-loud"' in text
    assert '<textarea name="argument-tags"' in text
    assert 'id="result"' not in text


def test_a_run_shows_request_and_result(browser: Client, tools: None):
    text = run(
        browser, "measure", name="北京 <b>", count="2", unit='"ft"', loud="false", tags='["a"]'
    )
    assert "badge-succeeded" in text
    request = text[text.index(">Request<") :]
    for line in (
        "北京 &lt;b&gt;",
        "&quot;count&quot;: 2",
        "&quot;unit&quot;: &quot;ft&quot;",
        "&quot;loud&quot;: false",
    ):
        assert line in request
    assert "&quot;a&quot;" in text


def test_a_run_by_hand_is_on_record_as_a_test_of_its_user(browser: Client, tools: None):
    run(browser, "measure", name="n", count="1")
    call = ToolCall.objects.select_related("run").get()
    assert (call.run.origin, call.run.state, call.state) == ("test", "finished", "succeeded")
    assert (call.verdict, call.decided_by) == ("approved", User.objects.get().username)
    assert call.run.notes == [f"{TESTED_BY}\n{call.decided_by}"]
    assert call.arguments == {"name": "n", "count": 1}
    assert f"Tested by hand by {call.decided_by}" in page(
        browser, f"/admin/agent/run/{call.run_id}/change/"
    )


def test_an_argument_left_empty_is_not_given(browser: Client, tools: None):
    text = run(browser, "measure", name="n", count="1")
    request = text[text.index(">Request<") :]
    assert "unit" not in request.partition("</pre>")[0]
    assert "&quot;unit&quot;: &quot;m&quot;" in text


def test_problems_are_told_as_the_model_is_told_them(browser: Client, tools: None):
    text = run(browser, "measure", name="n")
    assert "badge-failed" in text
    assert "count" in text[text.index('class="failure words"') :].partition("</p>")[0]


def test_json_that_cannot_be_read_is_a_form_error_and_nothing_runs(browser: Client, tools: None):
    for wrong in ("[1", "[" * 5000):
        text = run(browser, "measure", name="n", count="1", tags=wrong)
        assert "Enter a valid JSON." in text
        assert 'id="result"' not in text


def test_a_tool_that_raises_shows_its_error(browser: Client, tools: None):
    text = run(browser, "broken")
    assert "badge-failed" in text
    assert "LookupError: no &lt;luck&gt;" in text


def test_a_tool_that_uses_the_state_of_a_chat_finds_an_empty_one(browser: Client, tools: None):
    for _ in range(2):
        assert "&quot;result&quot;: 1" in run(browser, "counting")


@pytest.fixture
def serving_one() -> Iterator[ToolRegistry]:
    """A registry that serves on a loop of its own, as the one of a running server does."""
    registry, loop = ToolRegistry(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    serving.begin_serving(serving.ServingRegistry(registry, loop))
    yield registry
    serving.end_serving(registry)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_a_tool_that_only_the_running_server_has_is_run_there(
    browser: Client, tools: None, serving_one: ToolRegistry
):
    """A connection or a child process is one server's; the page makes none of its own."""
    serving_one.register_provider(
        Provider("far", ToolSpec(name="far_away", parameters_schema={"type": "object"}))
    )
    ensure_tool_rows(
        [ToolSpec(name="far_away", provider_name="far", parameters_schema={"type": "object"})]
    )
    assert "badge-succeeded" in run(browser, "far_away")
    assert "Nobody provides this tool at present." in page(browser, address("measure"))


def test_the_time_limit_of_the_row_ends_a_run(browser: Client, tools: None):
    ToolConfig.objects.filter(name="sleepy").update(timeout_seconds=1)
    assert "超过 1 秒" in run(browser, "sleepy")


def test_the_mock_answers_where_it_is_switched_on(browser: Client, tools: None):
    ToolConfig.objects.filter(name="broken").update(mock_enabled=True, mock_value="just so")
    text = run(browser, "broken")
    assert "just so" in text
    assert "badge-mock" in text


def test_limits_of_chats_and_senders_do_not_hold_for_a_run_by_hand(browser: Client, tools: None):
    limits = {
        "allowed": "owners",
        "scope": "group",
        "visibility": "hidden",
        "requires_approval": "always",
    }
    ToolConfig.objects.filter(name="measure").update(**limits)
    assert "badge-succeeded" in run(browser, "measure", name="n", count="1")


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("send_message", {}, "This tool acts in a chat"),
        ("broken", {"enabled": False}, "The tool is disabled"),
        ("broken", {"name": "gone"}, "Nobody provides this tool"),
    ],
)
def test_a_tool_that_cannot_run_here_says_why(
    browser: Client, tools: None, name: str, change: dict[str, Any], reason: str
):
    ToolConfig.objects.filter(name=name).update(**change)
    text = run(browser, change.get("name", name))
    assert reason in text
    assert 'id="result"' not in text


def test_a_run_is_in_the_history_of_the_tool(browser: Client, tools: None):
    run(browser, "broken")
    assert "Test run: failed." in page(browser, address("broken").replace("trial", "history"))


def test_a_viewer_runs_nothing(browser: Client, tools: None):
    viewer, operator = logged_in("viewer"), logged_in("operator")
    assert viewer.get(address("measure")).status_code == 403
    assert viewer.post(address("measure"), {}).status_code == 403
    assert "/trial/" not in page(viewer, address("measure").replace("trial", "change"))
    assert "badge-succeeded" in run(operator, "measure", name="n", count="1")


def test_a_tool_without_a_schema_takes_all_arguments_as_one_json_object():
    form = ArgumentForm(None, {"argument-": '{"a": [1]}'})
    assert form.is_valid()
    assert form.arguments() == {"a": [1]}


@pytest.mark.parametrize(
    ("part", "text", "value"),
    [
        ({"type": ["integer", "null"]}, "7", 7),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "0.5", 0.5),
        ({"anyOf": [{"type": "number"}, {"type": "string"}]}, '"x"', "x"),
        ({"enum": [1, None, "x"]}, "1", 1),
        ({"$ref": "#/$defs/Unit"}, '"m"', "m"),
        ({"type": "string"}, " a\n", " a\n"),
        ({"type": "boolean"}, "false", False),
        ({}, '{"deep": {}}', {"deep": {}}),
    ],
)
def test_a_value_is_read_as_its_schema_says(part: dict[str, Any], text: str, value: object):
    schema = {
        "properties": {"x y": part},
        "$defs": {"Unit": {"enum": ["m", "ft"], "type": "string"}},
    }
    form = ArgumentForm(schema, {"argument-x y": text})
    assert form.is_valid()
    assert form.arguments() == {"x y": value}


def test_a_tool_that_acts_in_a_chat_offers_no_test_run_and_says_why(browser: Client, tools: None):
    text = page(browser, address("send_message").replace("trial", "change"))
    assert "This tool acts in a chat" in text
    assert "/trial/" not in text
    assert "/trial/" in page(browser, address("measure").replace("trial", "change"))

"""What agents do is on record: a run of its own for each call, inside the run that made the
call."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agent.domain.errors import LLMError
from agent.domain.states import Claim
from agent.models import Message, Run, ToolCall
from agent.record.record import Record
from agent.record.run_journal import RunJournal
from agent.record.runs.runs import ActiveRun, StartRun
from agent.record.runs.steps import NewCall, NewStep
from agent.record.runs.subagent_runs import SERVER_STOPPED, begin_subagent_run
from agent.record.waiting.recovery import record_heartbeat
from agent.run.engine import Engine
from agent.run.task import RunRequest, RunResult
from agent.subagents.runner import STOPPED
from agent.subagents.subagent import Subagent
from tests.agent.agents import CONTEXT, agent, registry_of, told
from tests.agent.talk import PLAN, Script, accept, calling, message
from tests.tools.fakes import Provider
from tools.contract import ToolInvocation
from tools.registry.settings import ToolSettings

pytestmark = pytest.mark.django_db(transaction=True)

ASKED = calling(("helper", '{"request": "x"}'))


async def begun(record: Record, said: str = "hi") -> tuple[ActiveRun, StartRun]:
    """The run of a new message, and the wish that began it."""
    (accepted,) = await sync_to_async(accept)(message(said))
    wish = StartRun(PLAN, accepted.pk, accepted.session_pk)
    return await record.begin_run(wish), wish


async def run(
    record: Record, *agents: Subagent, outer: Script | None = None, **parts: Any
) -> RunResult:
    """A run whose model calls ``helper`` once."""
    engine = Engine(outer or Script(ASKED, "done"), registry_of(*agents, record=record, **parts))
    around, _ = await begun(record)
    return await engine.run(
        RunRequest(around.run_pk, [{"role": "user", "content": "hi"}], CONTEXT, 5),
        RunJournal(record, around.claim),
    )


@sync_to_async
def inner_runs() -> list[Run]:
    return list(
        Run.objects.filter(origin="agent").select_related("parent__run", "message").order_by("pk")
    )


@sync_to_async
def calls_of(run: Run) -> list[tuple[str, str, str, str]]:
    return list(
        run.tool_calls.order_by("pk").values_list("tool_name", "state", "requested_by", "error")
    )


@sync_to_async
def steps_of(run: Run) -> list[list[Any]]:
    return [step.request for step in run.steps.order_by("number")]


async def test_an_agents_work_is_a_run_for_the_call_in_the_chat_and_for_the_message(record):
    await run(record, agent(Script("a poem")))
    (inner,) = await inner_runs()
    assert inner.parent is not None
    around = inner.parent.run
    assert (inner.parent.tool_name, inner.message_id, inner.session_id) == (
        "helper",
        around.message_id,
        around.session_id,
    )
    assert (inner.state, inner.final_text, inner.model, inner.claimed_by) == (
        "finished",
        "a poem",
        "script",
        "p1",
    )
    assert inner.finished_at is not None


async def test_its_steps_calls_and_tokens_are_its_own(record):
    result = await run(record, agent(Script(calling(("f", "{}")), "a poem"), tools=["f"]))
    (inner,) = await inner_runs()
    assert [len(request) for request in await steps_of(inner)] == [2, 2]
    assert await calls_of(inner) == [("f", "succeeded", "20001", "")]
    assert (inner.model_calls, inner.input_tokens, inner.output_tokens) == (2, 20, 4)
    assert (result.calls, result.input_tokens) == (2, 20)


async def test_agents_in_agents_are_runs_in_runs(record):
    worker = agent(Script("worked"), "worker")
    await run(
        record,
        agent(Script(calling(("worker", '{"request": "y"}')), "led"), tools=["worker"]),
        worker,
    )
    lead, work = await inner_runs()
    assert work.parent is not None
    assert (work.parent.run_id, work.message_id, work.final_text) == (
        lead.pk,
        lead.message_id,
        "worked",
    )


@pytest.mark.parametrize(
    ("answers", "error"),
    [([LLMError("overloaded")], "overloaded"), ([calling(("f", "{}"))], "out of model calls")],
)
async def test_an_agent_that_fails_is_on_record_as_failed_with_the_reason(record, answers, error):
    outer = Script(ASKED, "sorry")
    await run(record, agent(Script(*answers), model_calls=1), outer=outer)
    (inner,) = await inner_runs()
    assert (inner.state, inner.error) == ("failed", error)
    assert told(outer).startswith("工具执行失败: 子代理 helper ")


async def test_what_its_prompt_lacked_is_noted_on_its_run(record):
    await run(record, agent(Script("done"), prompt="Be {mood}."))
    (inner,) = await inner_runs()
    assert "{mood}" in inner.notes[0]


async def test_a_call_that_is_refused_begins_no_run(record):
    outer = Script(ASKED, "sorry")
    await run(
        record,
        agent(Script()),
        outer=outer,
        rows={"helper": ToolSettings("helper", allowed="owners")},
    )
    assert await inner_runs() == []
    assert "没有权限" in told(outer)


async def test_what_the_time_limit_of_the_call_cuts_off_is_on_record_as_interrupted(record):
    async def forever(_: ToolInvocation) -> None:
        await asyncio.Event().wait()

    outer, rows = Script(ASKED, "sorry"), {"helper": ToolSettings("helper", timeout_seconds=1)}
    helper = agent(Script(calling(("f", "{}"), ("g", "{}"))), tools=["f", "g"])
    await run(
        record, helper, outer=outer, rows=rows, tools=Provider("tools", "f", "g", answer=forever)
    )
    (inner,) = await inner_runs()
    assert (inner.state, inner.error) == ("interrupted", STOPPED)
    assert [(name, state) for name, state, *_ in await calls_of(inner)] == [
        ("f", "unknown"),
        ("g", "failed"),
    ]
    assert told(outer) == "工具执行失败: 超过 1 秒"


async def test_a_call_that_is_stopped_while_its_run_begins_leaves_no_run_that_goes_on(record):
    around, _ = await begun(record)
    (call,) = await RunJournal(record, around.claim).record_step(
        NewStep(around.run_pk, 1, [], [], ASKED, calls=(NewCall("c1", "helper", {}, "1"),))
    )
    invocation = ToolInvocation("helper", {"request": "x"}, call_pk=call)
    model = Script()
    asking = asyncio.create_task(
        registry_of(agent(model), record=record).invoke(invocation, CONTEXT)
    )
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert [inner.state for inner in await inner_runs()] == ["interrupted"]
    assert model.requests == []


async def test_a_problem_of_the_program_costs_the_call_and_leaves_no_run_that_goes_on(record):
    class Failing(Script):
        async def complete(self, request: Any) -> Any:
            raise ZeroDivisionError("oh")

    outer = Script(ASKED, "sorry")
    assert (await run(record, agent(Failing()), outer=outer)).text == "sorry"
    (inner,) = await inner_runs()
    assert (inner.state, inner.error) == ("interrupted", "ZeroDivisionError: oh")


async def test_after_a_crash_the_run_around_is_taken_up_and_not_that_of_the_agent(record):
    around, wish = await begun(record)
    (call,) = await RunJournal(record, around.claim).record_step(
        NewStep(around.run_pk, 1, [], [], ASKED, calls=(NewCall("c1", "helper", {}, "1"),))
    )
    inner_pk = await record.submit(begin_subagent_run, call, "m", "p1")
    two = tuple(NewCall(name, name, {}, "1") for name in "fg")
    await RunJournal(record, Claim(inner_pk)).record_step(
        NewStep(inner_pk, 1, [], [], {}, calls=two)
    )
    await sync_to_async(record_heartbeat)("p2", alone=True)
    (inner,) = await inner_runs()
    assert (inner.state, inner.error) == ("interrupted", SERVER_STOPPED)
    assert [state for _, state, *_ in await calls_of(inner)] == ["unknown", "failed"]
    again = await record.begin_run(
        StartRun(PLAN, wish.message_pk, wish.session_pk, resumed=True, claim_number=2)
    )
    assert (again.run_pk, [one.state for one in again.steps[0].calls]) == (
        around.run_pk,
        [ToolCall.State.UNKNOWN],
    )


async def test_a_message_that_was_answered_is_not_taken_up_for_an_agent_that_works_for_it_later(
    record,
):
    around, _ = await begun(record)
    (call,) = await RunJournal(record, around.claim).record_step(
        NewStep(around.run_pk, 1, [], [], ASKED, calls=(NewCall("c1", "helper", {}, "1"),))
    )
    answered = Message.objects.filter(runs=around.run_pk)
    await answered.aupdate(state="answered", claimed_by="")
    registry = registry_of(agent(Script("a poem")), record=record)
    await registry.invoke(ToolInvocation("helper", {"request": "x"}, call_pk=call), CONTEXT)
    assert [row.state async for row in answered.distinct()] == ["answered"]


async def test_a_call_that_is_not_on_record_leaves_no_run_either(record):
    registry = registry_of(
        agent(Script(calling(("f", "{}")), "a poem"), tools=["f"]), record=record
    )
    result = await registry.invoke(ToolInvocation("helper", {"request": "x"}), CONTEXT)
    assert (result.content, await inner_runs()) == ("a poem", [])

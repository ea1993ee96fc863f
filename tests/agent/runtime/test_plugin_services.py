"""What plugins are served with: the voice and the history of the call's own chat, and the model as
a run on record."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agent.chat.conversation import ConversationHandler
from agent.domain.errors import LLMError
from agent.domain.types import ChatAddress
from agent.models import Message, Run
from agent.record.record import Record
from agent.run.engine import Engine, PersonaEngines
from agent.run.jobs import BackgroundCalls
from agent.run.tool_results import PAUSE
from agent.runtime.plugin_services import NO_CHAT, PluginServices
from agent.subagents.runner import STOPPED
from tests.agent.talk import GROUP, PRIVATE, Mailbox, Script, accept, arrival, calling, message
from tests.tools.fakes import Provider
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolFailed, ToolInvocation
from tools.plugins.capabilities import CallInFlight
from tools.registry.registry import ToolRegistry

pytestmark = pytest.mark.django_db(transaction=True)

Work = Callable[[PluginServices, CallInFlight], Awaitable[Any]]
CALL = calling(("plug", "{}"))


async def served(
    record: Record,
    work: Work,
    *,
    chat: ChatAddress = PRIVATE,
    mailbox: Mailbox | None = None,
    model: Script | None = None,
) -> tuple[Any, Mailbox]:
    """What ``work`` gave inside a call that a run made in ``chat``, and what was sent there. A
    refusal is its text."""
    services, mailbox = PluginServices(record, lambda: model or Script()), mailbox or Mailbox()
    given = list[Any]()

    async def plugged(invocation: ToolInvocation) -> ToolExecutionResult:
        context = provider.contexts[-1]
        assert context is not None
        try:
            given.append(await work(services, CallInFlight(invocation, context)))
        except ToolFailed as error:
            given.append(error.text)
        return ToolExecutionResult("plug", success=True, content="done", metadata={PAUSE: True})

    provider = Provider("plugin_runtime", "plug", answer=plugged)
    registry = ToolRegistry()
    registry.register_provider(provider)
    said = arrival(message("current", chat, mentions_bot=True))
    accepted = await record.submit_batched(record.arrivals.accept_messages, said)
    conversations = ConversationHandler(
        record,
        PersonaEngines(Engine(Script(CALL), registry)),
        mailbox,
        BackgroundCalls(record, lambda _: None),
    )
    await conversations.answer_message(accepted.to_pending(said.message))
    await services.close()
    return given[0], mailbox


def saying(text: str) -> Work:
    return lambda services, call: services.send_text(call, text)


def reading(number: int) -> Work:
    return lambda services, call: services.history(call, number)


def asking(prompt: str) -> Work:
    return lambda services, call: services.generate(call, prompt)


@sync_to_async
def row(**fields: Any) -> Message:
    return Message.objects.get(**fields)


@sync_to_async
def inner_runs() -> list[Run]:
    return list(Run.objects.filter(origin="agent").select_related("parent"))


# --- The voice ----------------------------------------------------------------------


async def test_a_text_goes_to_the_chat_of_the_call_and_is_on_record_with_it(record):
    told, mailbox = await served(record, saying("from the plugin"), chat=GROUP)
    assert (told, mailbox.sent) == ("消息已发送", [(GROUP, "from the plugin")])
    said = await row(text="from the plugin")
    call = await sync_to_async(lambda: said.tool_call and said.tool_call.tool_name)()
    assert (said.state, call, said.in_history) == ("delivered", "plug", True)


async def test_a_text_of_which_nobody_knows_is_told_as_such_and_is_no_failure(record):
    told, _ = await served(record, saying("hm"), mailbox=Mailbox("unknown"))
    assert told == "消息可能已送达，请勿重发"
    assert (await row(text="hm")).state == "unknown"


async def test_why_a_text_was_not_sent_is_told(record):
    told, _ = await served(record, saying("hm"), mailbox=Mailbox("failed", "muted"))
    assert told == "消息发送失败: muted"


async def test_what_looks_like_a_code_is_sent_as_words(record):
    _, mailbox = await served(record, saying("[CQ:at,qq=all]"))
    assert mailbox.texts == ["[CQ:at,qq=all]"]
    assert (await row(text="[CQ:at,qq=all]")).segments == [
        {"type": "plain", "text": "[CQ:at,qq=all]"}
    ]


# --- The history --------------------------------------------------------------------


async def test_the_history_is_of_this_chat_up_to_the_current_message(record):
    await sync_to_async(accept)(
        message("mine", GROUP, sender_name="Ann\n{}"), message("elsewhere", PRIVATE)
    )
    await sync_to_async(accept)(
        message("other account", ChatAddress("10002", "group", GROUP.peer_id))
    )
    told, _ = await served(record, reading(50), chat=GROUP)
    assert [line["text"] for line in told] == ["mine"]
    assert told[0]["sender"] == {"user_id": "20001", "name": "Ann{}"}


async def test_the_newest_are_given_oldest_first(record):
    await sync_to_async(accept)(*(message(f"m{number}", GROUP) for number in range(5)))
    told, _ = await served(record, reading(2), chat=GROUP)
    assert [line["text"] for line in told] == ["m3", "m4"]


async def test_what_was_not_heard_or_taken_back_is_not_told(record):
    async def work(services: PluginServices, call: CallInFlight) -> Any:
        with pytest.raises(ToolFailed):
            await services.send_text(call, "refused")
        return await services.history(call, 50)

    await sync_to_async(accept)(message("gone", GROUP, message_id="m1"))
    await Message.objects.aupdate(recalled_at="2026-01-01T00:00:00Z")
    told, _ = await served(record, work, chat=GROUP, mailbox=Mailbox("failed", "muted"))
    assert [line["text"] for line in told] == ["[消息已撤回]"]


# --- The model ----------------------------------------------------------------------


async def test_the_model_is_asked_in_a_run_of_its_own_inside_the_call(record):
    model = Script("an answer")
    told, _ = await served(record, asking("{why}?"), model=model)
    assert told == "an answer"
    (request,) = model.requests
    assert ([one["role"] for one in request.messages], request.messages[1]["content"]) == (
        ["system", "user"],
        "{why}?",
    )
    assert request.tools == []
    (inner,) = await inner_runs()
    assert (inner.parent and inner.parent.tool_name, inner.state, inner.final_text) == (
        "plug",
        "finished",
        "an answer",
    )
    assert (inner.model_calls, inner.input_tokens) == (1, 10)


@pytest.mark.parametrize("answer", [LLMError("overloaded"), calling(("send_message", "{}"))])
async def test_a_model_that_gives_no_answer_is_a_failure_in_words(record, answer):
    told, mailbox = await served(record, asking("x"), model=Script(answer))
    assert "没有完成任务" in told
    assert mailbox.sent == []
    (inner,) = await inner_runs()
    assert inner.state == "failed"


async def test_a_model_that_takes_too_long_is_given_up_on_record(record):
    never = asyncio.get_running_loop().create_future()

    async def work(services: PluginServices, call: CallInFlight) -> Any:
        hasty = PluginServices(record, lambda: Script(never), seconds=1)
        return await hasty.generate(call, "x")

    told, _ = await served(record, work)
    assert told == "模型在 1 秒内没有给出结果"
    (inner,) = await inner_runs()
    assert (inner.state, inner.error) == ("interrupted", STOPPED)


async def test_closing_closes_the_model(record):
    class Closing(Script):
        closed = 0

        async def close(self) -> None:
            self.closed += 1

    model = Closing("x")
    await served(record, asking("x"), model=model)
    assert model.closed == 1


# --- Without a chat -----------------------------------------------------------------


@pytest.mark.parametrize("work", [saying("x"), reading(5)])
@pytest.mark.parametrize("call_pk", [0, 7])
async def test_a_call_without_a_chat_has_neither_voice_nor_history(record, work, call_pk):
    call = CallInFlight(ToolInvocation("plug", call_pk=call_pk), ToolExecutionContext())
    with pytest.raises(ToolFailed, match=NO_CHAT):
        await work(PluginServices(record, lambda: Script()), call)
    assert not await Message.objects.aexists()


async def test_the_model_can_be_asked_without_a_chat_too(record):
    call = CallInFlight(ToolInvocation("plug"), ToolExecutionContext())
    assert await PluginServices(record, lambda: Script("yes")).generate(call, "x") == "yes"

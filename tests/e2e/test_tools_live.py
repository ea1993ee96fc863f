"""Tools in real runs: in order, on record, within their bounds, and as the operator set them a
moment ago."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client, outgoing, verdict
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import at, failed, ok, spoken, text
from tests.file_server import sends
from tests.live_server import LiveServer
from tests.scripted_model import Answer, Call, Request, ScriptedModel, call, calls, fails, says

WEATHER = "北京 的天气是晴朗，温度 25°C"
Configure = Callable[..., Awaitable[Any]]


def results(request: Request) -> list[str]:
    """What the tools called in this run returned, in the order of the request."""
    return [message["content"] for message in request.messages if message["role"] == "tool"]


def plain(words: str) -> dict[str, str]:
    return {"type": "plain", "text": words}


async def asked(server: LiveServer, model: ScriptedModel, answers: list[Answer]) -> list[Request]:
    """The model's requests of one private run in which it gives ``answers`` and then ends."""
    model.script([*answers, "the end"])
    async with client(server) as bot:
        await bot.say_private(fresh_id(), "hi")
        action = await bot.next_action()
        while spoken(action) != "the end":
            action = await bot.next_action()
    return model.requests


# --- The loop -------------------------------------------------------------------


async def test_a_tools_result_goes_back_to_the_model_behind_the_call(live, model):
    _, second = await asked(
        live,
        model,
        [calls(Call("get_weather", {"city": "北京"}, id="c-1"), content="Let me look.")],
    )
    *_, assistant, tool = second.messages
    assert assistant["role"] == "assistant"
    assert assistant["content"] == "Let me look."
    (wanted,) = assistant["tool_calls"]
    assert (wanted["id"], wanted["type"], wanted["function"]["name"]) == (
        "c-1",
        "function",
        "get_weather",
    )
    assert json.loads(wanted["function"]["arguments"]) == {"city": "北京"}
    assert tool == {"role": "tool", "tool_call_id": "c-1", "content": WEATHER}


async def test_several_calls_of_one_answer_run_in_their_order(live, model):
    first, second = (
        Call("send_message", {"messages": [plain("one")]}),
        Call("get_game_version", {"game": "Go"}),
    )
    third = Call("send_message", {"messages": [plain("two")]})
    model.script([calls(first, second, third), "three"])
    async with client(live) as bot:
        await bot.say_private(fresh_id(), "count")
        assert [spoken(await bot.next_action()) for _ in range(3)] == ["one", "two", "three"]
    told = [m for m in model.requests[1].messages if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in told] == [first.id, second.id, third.id]
    assert [m["content"] for m in told] == ["消息已发送", "Go 的最新版本是 V1.14.51", "消息已发送"]


async def test_every_tool_message_follows_the_assistant_message_that_called_it(live, model):
    answers = [
        calls(*(Call("get_weather", {"city": str(n)}) for n in range(number)))
        for number in (1, 3, 2)
    ]
    requests = await asked(live, model, answers)
    open_calls: list[str] = []
    for message in requests[-1].messages:
        if message["role"] == "tool":
            assert open_calls.pop(0) == message["tool_call_id"]
        else:
            assert not open_calls
            open_calls = [wanted["id"] for wanted in message.get("tool_calls", [])]
    assert len(results(requests[-1])) == 6


async def test_a_run_that_never_ends_is_ended_with_fixed_words(contrary, model):
    model.script([call("get_weather", city="a"), call("get_weather", city="b")])
    user = fresh_id()
    async with client(contrary) as bot:
        await bot.say_private(user, "hi")
        assert spoken(await bot.next_action()) == "达到最大迭代次数，未能得出最终答案"
        assert await verdict(contrary, user) == ("answered", "private")


async def test_every_call_is_on_record(live, model):
    user = fresh_id()
    model.script([calls(Call("get_weather", {"city": "北京"}), Call("nothing", '{"a":')), "done"])
    async with client(live) as bot:
        await bot.say_private(user, "hi")
        await bot.next_action()
    rows = live.rows(
        "SELECT * FROM agent_toolcall WHERE requested_by = ? ORDER BY position", str(user)
    )
    assert [(r["tool_name"], r["state"], bool(r["mocked"])) for r in rows] == [
        ("get_weather", "succeeded", True),
        ("nothing", "failed", False),
    ]
    assert (json.loads(rows[0]["arguments"]), rows[0]["result"]) == ({"city": "北京"}, WEATHER)


# --- Faults ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (Call("no_such_tool", {}), "Tool not found: no_such_tool"),
        (Call("get_weather", {}), "city"),
        (Call("get_weather", {"city": ""}), "city"),
        (Call("get_weather", "{not json"), "JSON"),
        (Call("get_weather", "[1]"), "JSON"),
        (Call("send_message", {}), "messages"),
        (Call("send_message", {"messages": []}), "messages"),
        (Call("send_message", {"messages": [plain("a"), plain(" ")]}), "messages[1].text 不能为空"),
        (
            Call("send_message", {"messages": [{"type": "quote"}]}),
            "messages[0].message_id 不能为空",
        ),
        (
            Call("send_message", {"messages": [{"type": "mention_user"}]}),
            "messages[0].mention_user_id 不能为空",
        ),
        (Call("send_message", {"messages": [{"type": "image"}]}), "messages[0]"),
        (Call("send_message", {"messages": [{"type": "poem", "text": "x"}]}), "messages[0].type"),
        (Call("send_message", {"messages": [{"text": "x"}]}), "messages[0].type"),
        (Call("use_subagent", {"subagent_name": "Coder"}), "content"),
    ],
)
async def test_an_invalid_call_reaches_no_tool_and_the_model_is_told_why(live, model, wanted, told):
    _, second = await asked(live, model, [calls(wanted)])
    (result,) = results(second)
    assert told in result
    assert all(problem.strip() for problem in result.splitlines())


async def test_every_problem_has_a_line_of_its_own(live, model):
    broken = [plain(""), {"type": "quote"}, plain("fine")]
    _, second = await asked(live, model, [call("send_message", messages=broken)])
    assert results(second) == ["messages[0].text 不能为空\nmessages[1].message_id 不能为空"]


async def test_arguments_are_read_with_forbearance(live, model):
    parts = [{"type": "mention_user", "mention_user_id": 20002}, plain("hello")]
    model.script([call("send_message", messages=json.dumps(parts)), "the end"])
    async with client(live) as bot:
        await bot.say_private(fresh_id(), "hi")
        assert (await bot.next_action())["params"]["message"] == [at(20002), text("hello")]
        await bot.next_action()


# --- send_message ---------------------------------------------------------------


async def test_a_message_of_all_parts_is_sent_at_once_in_the_tools_order(live, model, file_server):
    picture = {"type": "image", "url": file_server.serve("/a.png", sends(b"cat")), "path": "a.png"}
    parts = [
        {"type": "quote", "message_id": "-5"},
        {"type": "mention_user", "mention_user_id": "20002"},
        plain("look"),
        picture,
    ]
    model.script([call("send_message", messages=parts), "the end"])
    group = fresh_id()
    async with client(live) as bot:
        await bot.say_group(group, fresh_id(), "show me")
        action = await bot.next_action()
        assert (action["action"], action["params"]["group_id"]) == ("send_group_msg", group)
        assert action["params"]["message"] == [
            {"type": "reply", "data": {"id": "-5"}},
            at(20002),
            text("look"),
            {"type": "image", "data": {"file": "base64://Y2F0"}},
        ]
        assert spoken(await bot.next_action()) == " the end"


@pytest.mark.parametrize("form", ["onebot:private:{user}", "private:{user}", ""])
async def test_the_runs_own_session_may_be_named(live, model, form):
    user = fresh_id()
    model.script(
        [call("send_message", messages=[plain("here")], session=form.format(user=user)), "the end"]
    )
    async with client(live) as bot:
        await bot.say_private(user, "hi")
        assert (await bot.next_action())["params"]["user_id"] == user
        await bot.next_action()
    assert results(model.requests[1]) == ["消息已发送"]


@pytest.mark.parametrize(
    "session", ["onebot:group:30003", "onebot:private:20002", "telegram:private:1", "nonsense"]
)
async def test_another_session_is_refused_with_a_reason(live, model, session):
    _, second = await asked(
        live, model, [call("send_message", messages=[plain("psst")], session=session)]
    )
    assert results(second)[0].startswith("session 只能是当前会话 onebot:private:")


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../secret_key", "a/../../secret_key", "link/secret_key", "~/x", "missing.png"],
)
async def test_a_path_outside_the_media_folder_is_refused_with_a_reason(live, model, path):
    link = live.data_dir / "media" / "link"
    link.unlink(missing_ok=True)
    link.symlink_to(live.data_dir)
    _, second = await asked(
        live, model, [call("send_message", messages=[{"type": "file", "path": path}])]
    )
    assert results(second)[0].startswith("messages[0].path ")


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://x.example/a", "base64://AAAA", "/etc/passwd", "javascript:1"],
)
async def test_an_address_that_is_not_of_the_web_is_refused(live, model, url):
    _, second = await asked(
        live, model, [call("send_message", messages=[{"type": "image", "url": url}])]
    )
    assert results(second)[0].startswith("messages[0].url ")


async def test_a_clients_refusal_is_told_to_the_model_in_its_words(live, model):
    model.script([call("send_message", messages=[plain("rude")]), "the end"])
    async with client(live) as bot:
        bot.answer_with(
            lambda action: failed(1200, "被禁言了") if spoken(action) == "rude" else ok()
        )
        await bot.say_private(fresh_id(), "hi")
        assert [spoken(await bot.next_action()) for _ in range(2)] == ["rude", "the end"]
    assert "被禁言了" in results(model.requests[1])[0]


async def test_a_message_without_an_answer_is_not_to_be_sent_again(impatient, model):
    user = fresh_id()
    model.script([call("send_message", messages=[plain("heard?")]), "the end"])
    async with client(impatient) as bot:
        bot.answer_with(lambda action: None if spoken(action) == "heard?" else ok())
        await bot.say_private(user, "hi")
        assert [spoken(await bot.next_action()) for _ in range(2)] == ["heard?", "the end"]
        await bot.no_action(user=user)
    assert results(model.requests[1]) == ["消息可能已送达，请勿重发"]


async def test_what_was_said_by_tool_is_answer_enough(live, model):
    user = fresh_id()
    model.script([call("send_message", messages=[plain("all I have to say")]), ""])
    async with client(live) as bot:
        await bot.say_private(user, "hi")
        assert spoken(await bot.next_action()) == "all I have to say"
        assert await verdict(live, user) == ("answered", "private")
        await bot.no_action(user=user)


async def test_under_load_every_message_goes_to_the_chat_it_belongs_to(live, model):
    def decide(request: Request) -> Any:
        said = next(m for m in reversed(request.messages) if m["role"] == "user")[
            "content"
        ].rpartition("\n")[2]
        if request.messages[-1]["role"] == "tool":
            return f"final {said}"
        return calls(
            *(
                Call("send_message", {"messages": [plain(f"{part} {said}")]})
                for part in ("first", "second")
            )
        )

    model.answer_with(decide)
    chats = [fresh_id() for _ in range(40)]
    async with client(live) as bot:
        for chat in chats:
            await bot.say_private(chat, f"of {chat}")
        sent = [await bot.next_action() for _ in range(3 * len(chats))]
    for chat in chats:
        said = [spoken(action) for action in sent if action["params"]["user_id"] == chat]
        assert said == [f"first of {chat}", f"second of {chat}", f"final of {chat}"]


# --- use_subagent ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["Coder", "coder", " CODER "])
async def test_a_task_goes_to_the_subagent_and_its_text_comes_back(live, model, name):
    model.script(["def f(): ..."], model="scripted-coder")
    requests = await asked(
        live, model, [call("use_subagent", subagent_name=name, content="write f")]
    )
    (to_coder,) = [request for request in requests if request.model == "scripted-coder"]
    assert [message["role"] for message in to_coder.messages] == ["system", "user"]
    assert to_coder.last_text == "write f"
    assert "tools" not in to_coder.body
    assert results(requests[-1]) == ["def f(): ..."]


async def test_an_unknown_subagent_is_answered_with_the_known_ones(live, model):
    _, second = await asked(
        live, model, [call("use_subagent", subagent_name="Poet", content="write")]
    )
    assert "Poet" in results(second)[0]
    assert "Coder" in results(second)[0]


async def test_a_subagent_whose_model_is_missing_is_answered_by_the_next_endpoint(live, model):
    model.script([fails(400, message="no such model")], model="scripted-coder")
    handed = call("use_subagent", subagent_name="Coder", content="write f")
    requests = await asked(live, model, [handed, says("def f(): ...")])
    assert results(requests[-1]) == ["def f(): ..."]


async def test_a_subagent_that_fails_costs_the_call_and_not_the_run(live, model):
    model.script([fails(400, message="no such model")], model="scripted-coder")
    handed = call("use_subagent", subagent_name="Coder", content="write f")
    requests = await asked(live, model, [handed, fails(400, message="nor this one")])
    assert results(requests[-1])[0].startswith("工具执行失败: ")


# --- The operator's word --------------------------------------------------------


@pytest.fixture
def configure(live) -> Iterator[Configure]:
    """Change a tool's row through the admin; everything is put back after the test."""
    cockpit = Cockpit(live)
    before: list[tuple[str, dict[str, Any]]] = []

    async def change(tool: str, **changes: Any) -> None:
        before.append((tool, await asyncio.to_thread(cockpit.configure, tool, **changes)))

    yield change
    for tool, values in reversed(before):
        cockpit.configure(tool, **values)
    cockpit.close()


async def test_a_disabled_tool_is_neither_offered_nor_callable_from_the_next_message(
    live, model, configure
):
    (first,) = await asked(live, model, [])
    assert "get_weather" in first.tool_names
    await configure("get_weather", enabled=False)
    *_, third = await asked(live, model, [call("get_weather", city="北京")])
    assert "get_weather" not in third.tool_names
    (refusal,) = results(third)
    assert refusal.splitlines()[0] == "Tool not found: get_weather"


async def test_a_changed_mock_answers_the_next_message(live, model, configure):
    await configure("get_weather", mock_value="{city}: {{snow}}")
    _, second = await asked(live, model, [call("get_weather", city="北京 {x}")])
    assert results(second) == ["北京 {x}: {snow}"]


async def test_a_tool_without_a_live_source_fails_clearly_when_its_mock_is_off(
    live, model, configure
):
    await configure("get_game_version", mock_enabled=False)
    _, second = await asked(live, model, [call("get_game_version", game="原神")])
    assert results(second)[0].startswith("工具执行失败: ")


async def test_a_changed_description_is_told_to_the_model(live, model, configure):
    await configure("get_weather", description="Ask the frog.")
    (request,) = await asked(live, model, [])
    described = {
        tool["function"]["name"]: tool["function"]["description"] for tool in request.body["tools"]
    }
    assert described["get_weather"] == "Ask the frog."


async def test_a_send_that_takes_too_long_is_stopped_and_is_not_called_failed(
    live, model, configure
):
    await configure("send_message", timeout_seconds=1)
    user = fresh_id()
    model.script([call("send_message", messages=[plain("slow")]), "the end"])
    async with client(live) as bot:
        bot.answer_with(lambda action: None if spoken(action) == "slow" else ok())
        await bot.say_private(user, "hi")
        assert [spoken(await bot.next_action()) for _ in range(2)] == ["slow", "the end"]
        assert (await outgoing(live, user, "m.text = 'slow' AND m.settled_at IS NOT NULL"))[
            "state"
        ] == "unknown"
        await bot.answer(bot.actions[0], ok({"message_id": 7}))
        assert (await outgoing(live, user, "m.text = 'slow' AND m.state = 'delivered'"))[
            "message_id"
        ] == "7"
    assert results(model.requests[1]) == ["消息可能已送达，请勿重发"]

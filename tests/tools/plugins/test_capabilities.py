"""What plugins may ask of the server: only what was granted, only in the chat of a call, only so
much."""

import math
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agent.record.ground.commit import GroupCommit
from tools.contract import ToolExecutionContext, ToolFailed, ToolInvocation
from tools.models import Plugin, PluginValue
from tools.plugin_sdk.calls import RpcError
from tools.plugins import capabilities as capabilities_module
from tools.plugins.capabilities import (
    CAPABILITIES,
    CallInFlight,
    CapabilityService,
    effective_capabilities,
)

EVERYTHING = frozenset(CAPABILITIES)


@dataclass(frozen=True)
class Row:
    """A plugin as the host knows it."""

    pk: int = 1
    granted: frozenset[str] = EVERYTHING
    enabled: bool = True


class Services:
    """Notes what it was asked, in which session."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.error: Exception | None = None

    def _take(self, call: CallInFlight, what: str, value: Any) -> None:
        if self.error is not None:
            raise self.error
        self.asked.append((call.context.session_id, what, value))

    async def send_text(self, call: CallInFlight, text: str) -> str:
        self._take(call, "send", text)
        return "sent"

    async def history(self, call: CallInFlight, number: int) -> list[dict[str, Any]]:
        self._take(call, "history", number)
        return [{"text": "hi"}]

    async def generate(self, call: CallInFlight, prompt: str) -> str:
        self._take(call, "generate", prompt)
        return "answer"

    async def close(self) -> None:
        self.asked.append(("", "close", None))


@dataclass
class Counter:
    now: float = field(default=100.0)

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def desk(transactional_db: None) -> AsyncIterator[GroupCommit]:
    commit = GroupCommit()
    yield commit
    await commit.close()


@pytest.fixture
def services() -> Services:
    return Services()


@pytest.fixture
def clock() -> Counter:
    return Counter()


@pytest.fixture
def capabilities(desk: Any, services: Services, clock: Counter) -> CapabilityService:
    return CapabilityService(desk, services, clock=clock)


@pytest.fixture
async def plugin(desk: GroupCommit) -> Row:
    """A plugin with a row of its own."""
    row = await sync_to_async(Plugin.objects.create)(folder="mine")
    return Row(row.pk)


def call(session_id: str = "onebot:group:1") -> CallInFlight:
    return CallInFlight(ToolInvocation("t", {}), ToolExecutionContext(session_id=session_id))


async def code(asking: Any) -> str:
    """The code with which it is refused."""
    with pytest.raises(RpcError) as refusal:
        await asking
    return str(refusal.value.code)


# --- Grants -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "asked", "given"),
    [
        ("send.text", {"text": "hi"}, ("send", "hi"), "sent"),
        ("history.read", {"number": 7}, ("history", 7), [{"text": "hi"}]),
        ("history.read", {}, ("history", 20), [{"text": "hi"}]),
        ("llm.generate", {"prompt": "why?"}, ("generate", "why?"), "answer"),
    ],
)
async def test_what_was_granted_is_done_in_the_chat_of_the_call(
    capabilities, services, name, arguments, asked, given
):
    assert (
        await capabilities.run_capability(
            Row(granted=frozenset([name])), call("s1"), name, arguments
        )
        == given
    )
    assert services.asked == [("s1", *asked)]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("send.text", {"text": "hi"}),
        ("history.read", {}),
        ("llm.generate", {"prompt": "x"}),
        *(
            (f"storage.{what}", {"key": "k", "value": 1})
            for what in ("get", "set", "delete", "keys")
        ),
    ],
)
async def test_what_was_not_granted_is_denied_whatever_else_was(
    capabilities, services, name, arguments
):
    others = EVERYTHING - {name, name.partition(".")[0]}
    assert (
        await code(capabilities.run_capability(Row(granted=others), call(), name, arguments))
        == "E_CAPABILITY_DENIED"
    )
    assert services.asked == []


async def test_a_disabled_plugin_is_denied_everything(capabilities):
    assert (
        await code(
            capabilities.run_capability(Row(enabled=False), call(), "send.text", {"text": "x"})
        )
        == "E_CAPABILITY_DENIED"
    )


@pytest.mark.parametrize(
    "name",
    ["send", "send.image", "config.get", "storage", "storage.drop", "", "__class__", "x" * 10_000],
)
async def test_what_does_not_exist_is_refused_even_where_it_was_granted(capabilities, name):
    row = Row(granted=EVERYTHING | {name})
    assert await code(capabilities.run_capability(row, call(), name, {})) == "E_METHOD_NOT_ALLOWED"


@pytest.mark.parametrize("name", [None, 1, ["send.text"], {"a": 1}, b"send.text"])
async def test_a_name_that_is_no_text_is_refused(capabilities, name):
    assert (
        await code(capabilities.run_capability(Row(), call(), name, {})) == "E_METHOD_NOT_ALLOWED"
    )


def test_granted_is_what_row_and_manifest_both_say_and_the_server_has():
    assert effective_capabilities(
        ["send.text", "storage", "root"], ["storage", "llm.generate", "root"]
    ) == {"storage"}
    assert effective_capabilities([["storage"], None, "storage"], ("storage", {})) == {"storage"}
    assert (
        effective_capabilities("storage", "storage")
        == effective_capabilities(None, ["storage"])
        == effective_capabilities({}, 1)
        == frozenset()
    )


# --- The chat -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("send.text", {"text": "x"}), ("history.read", {}), ("llm.generate", {"prompt": "x"})],
)
async def test_without_a_call_in_flight_there_is_no_chat_to_act_in(
    capabilities, services, name, arguments
):
    assert (
        await code(capabilities.run_capability(Row(), None, name, arguments))
        == "E_CAPABILITY_DENIED"
    )
    assert services.asked == []


@pytest.mark.parametrize(
    "address", ["session_id", "stream_id", "chat_id", "group_id", "user_id", "session", "platform"]
)
@pytest.mark.parametrize(
    ("name", "arguments"), [("send.text", {"text": "x"}), ("history.read", {"number": 1})]
)
async def test_no_address_is_taken_from_a_plugin(capabilities, services, name, arguments, address):
    asking = capabilities.run_capability(
        Row(), call(), name, arguments | {address: "onebot:group:2"}
    )
    assert await code(asking) == "E_BAD_PAYLOAD"
    assert services.asked == []


# --- Arguments ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("send.text", {}),
        ("send.text", {"text": ""}),
        ("send.text", {"text": " \n"}),
        ("send.text", {"text": None}),
        ("send.text", {"text": ["x"]}),
        ("send.text", {"text": "x" * 4001}),
        ("send.text", None),
        ("send.text", "hi"),
        ("send.text", ["hi"]),
        ("send.text", {b"text": "x"}),
        ("send.text", {1: "x"}),
        ("history.read", {"number": 0}),
        ("history.read", {"number": 51}),
        ("history.read", {"number": 10**40}),
        ("history.read", {"number": "many"}),
        ("llm.generate", {"prompt": "x" * 16_001}),
        ("llm.generate", {"prompt": "x", "tools": ["send_message"]}),
        ("storage.get", {"key": "x" * 129}),
        ("storage.get", {"key": ""}),
        ("storage.get", {"key": 5.5j}),
        ("storage.set", {"key": "k"}),
        ("storage.set", {"key": "k", "value": b"bytes"}),
        ("storage.set", {"key": "k", "value": math.nan}),
        ("storage.set", {"key": "k", "value": "x" * 65_535}),
        ("storage.set", {"key": "k", "value": "字" * 30_000}),
        ("storage.set", {"key": "k", "value": [[]] * 20_000}),
    ],
)
async def test_arguments_that_are_not_what_is_taken_are_refused(
    capabilities, services, plugin, name, arguments
):
    assert (
        await code(capabilities.run_capability(plugin, call(), name, arguments)) == "E_BAD_PAYLOAD"
    )
    assert services.asked == []
    assert not await PluginValue.objects.aexists()


async def test_a_text_is_made_one_that_can_be_sent_and_stored(capabilities, services):
    await capabilities.run_capability(Row(), call("s"), "send.text", {"text": "a\0b"})
    assert services.asked == [("s", "send", "a\ufffdb")]


# --- How often ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("send.text", {"text": "x"}), ("history.read", {}), ("llm.generate", {"prompt": "x"})],
)
async def test_one_call_has_only_so_many(capabilities, services, name, arguments):
    one, limit = call(), CAPABILITIES[name].per_call
    for _ in range(limit):
        await capabilities.run_capability(Row(), one, name, arguments)
    assert await code(capabilities.run_capability(Row(), one, name, arguments)) == "E_BACK_PRESSURE"
    assert len(services.asked) == limit
    await capabilities.run_capability(Row(), call(), name, arguments)


@pytest.mark.parametrize(
    ("name", "arguments"), [("send.text", {"text": "x"}), ("llm.generate", {"prompt": "x"})]
)
async def test_a_plugin_has_only_so_many_a_minute_in_all_chats_together(
    capabilities, services, clock, name, arguments
):
    limit = CAPABILITIES[name].per_minute
    for number in range(limit):
        await capabilities.run_capability(Row(), call(f"s{number}"), name, arguments)
    assert (
        await code(capabilities.run_capability(Row(), call(), name, arguments)) == "E_BACK_PRESSURE"
    )
    await capabilities.run_capability(Row(pk=2), call(), name, arguments)
    clock.now += 60
    await capabilities.run_capability(Row(), call(), name, arguments)
    assert len(services.asked) == limit + 2


# --- Storage ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["text", 5, 1.5, True, None, [], {"a": [1, {"名": None}]}, "a\0b"]
)
async def test_a_value_comes_back_as_it_was_stored(capabilities, plugin, value):
    await capabilities.run_capability(plugin, None, "storage.set", {"key": "k", "value": value})
    kept = await capabilities.run_capability(plugin, None, "storage.get", {"key": "k"})
    assert kept == ("a\ufffdb" if value == "a\0b" else value)


async def test_values_are_replaced_listed_and_deleted(capabilities, plugin):
    async def ask(what: str, **arguments: Any) -> Any:
        return await capabilities.run_capability(plugin, call(), f"storage.{what}", arguments)

    for key in ("b", "a:1", "A:1", "a:2"):
        await ask("set", key=key, value=1)
    await ask("set", key="b", value=2)
    assert await ask("keys") == ["A:1", "a:1", "a:2", "b"]
    assert await ask("keys", prefix="a:") == ["a:1", "a:2"]
    assert [await ask("delete", key="b"), await ask("delete", key="b")] == [True, False]
    assert await ask("get", key="b") is None


async def test_plugins_have_values_of_their_own(capabilities, plugin):
    other = Row((await sync_to_async(Plugin.objects.create)(folder="other")).pk)
    await capabilities.run_capability(plugin, None, "storage.set", {"key": "k", "value": 1})
    assert await capabilities.run_capability(other, None, "storage.get", {"key": "k"}) is None
    assert await capabilities.run_capability(other, None, "storage.keys", {}) == []
    assert not await capabilities.run_capability(other, None, "storage.delete", {"key": "k"})


async def test_a_plugin_has_only_so_many_keys_and_may_still_change_them(
    capabilities, plugin, monkeypatch
):
    monkeypatch.setattr(capabilities_module, "KEYS_LIMIT", 2)
    for key in ("a", "b"):
        await capabilities.run_capability(plugin, None, "storage.set", {"key": key, "value": 1})
    third = capabilities.run_capability(plugin, None, "storage.set", {"key": "c", "value": 1})
    assert await code(third) == "E_CAPABILITY_FAILED"
    await capabilities.run_capability(plugin, None, "storage.set", {"key": "a", "value": 2})
    await capabilities.run_capability(plugin, None, "storage.delete", {"key": "b"})
    await capabilities.run_capability(plugin, None, "storage.set", {"key": "c", "value": 1})
    assert await capabilities.run_capability(plugin, None, "storage.keys", {}) == ["a", "c"]


# --- Failures -----------------------------------------------------------------------


async def test_why_it_could_not_be_done_is_told(capabilities, services):
    services.error = ToolFailed("消息发送失败: muted")
    with pytest.raises(RpcError, match="muted") as failure:
        await capabilities.run_capability(Row(), call(), "send.text", {"text": "x"})
    assert failure.value.code == "E_CAPABILITY_FAILED"


async def test_a_problem_of_the_server_is_logged_and_not_told(capabilities, services, caplog):
    services.error = LookupError("/etc/secret")
    with pytest.raises(RpcError) as failure:
        await capabilities.run_capability(Row(), call(), "send.text", {"text": "x"})
    assert failure.value.code == "E_CAPABILITY_FAILED"
    assert "/etc/secret" not in str(failure.value)
    assert "/etc/secret" in caplog.text


async def test_closing_releases_what_the_services_hold(capabilities, services):
    await capabilities.close()
    assert services.asked == [("", "close", None)]

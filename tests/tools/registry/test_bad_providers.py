"""Providers that hang, block or return nonsense cost their own tools and nothing else."""

import asyncio
from typing import Any

import pytest

from tests.tools.fakes import Provider
from tools.contract import ToolAvailabilityContext, ToolExecutionResult, ToolInvocation, ToolSpec
from tools.registry import execution, provider_set
from tools.registry.registry import ToolRegistry


class Listing(Provider):
    """Lists whatever it is told to, or hangs."""

    listings = 0
    listing: Any = ()

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> Any:
        self.listings += 1
        if self.listing == "hang":
            await asyncio.Event().wait()
        return self.listing


def registry_of(listing: Any) -> tuple[ToolRegistry, Listing]:
    bad = Listing("A")
    bad.listing = listing
    registry = ToolRegistry()
    registry.register_provider(bad)
    registry.register_provider(Provider("B", "b"))
    return registry, bad


async def names(registry: ToolRegistry) -> list[str]:
    return [spec.name for spec in await registry.list_tools()]


@pytest.mark.parametrize("nonsense", [None, 5, ToolSpec(name="t")])
async def test_a_listing_that_is_none_is_a_broken_provider(caplog, nonsense):
    registry, _ = registry_of(nonsense)
    assert await names(registry) == ["b"]
    assert (await registry.invoke(ToolInvocation("b"))).success
    assert "tool provider A" in caplog.text


@pytest.mark.parametrize(
    "entry",
    [
        "text",
        None,
        {"name": "t"},
        ToolSpec(name=""),
        ToolSpec(name="a b"),
        ToolSpec(name="天气"),
        ToolSpec(name="x" * 65),
        ToolSpec(name=5),  # type: ignore[arg-type]
        ToolSpec(name="t", parameters_schema=["x"]),  # type: ignore[arg-type]
    ],
    ids=lambda entry: repr(entry)[:40],
)
async def test_an_entry_that_no_endpoint_takes_is_left_out_and_reported_once(caplog, entry):
    registry, _ = registry_of([entry, ToolSpec(name="good")])
    for _ in range(3):
        assert await names(registry) == ["good", "b"]
    assert len(caplog.records) == 1


async def test_a_provider_that_makes_new_nonsense_for_ever_does_not_fill_the_memory(
    caplog, monkeypatch
):
    monkeypatch.setattr(provider_set, "MOST_REPORTS", 5)
    registry, bad = registry_of([])
    for number in range(20):
        bad.listing = [ToolSpec(name=f"{number}!"), ToolSpec(name=f"t{number}")]
        assert await names(registry) == [f"t{number}", "b"]
    assert len(caplog.records) == 5


async def test_a_provider_that_hangs_is_given_up_and_left_in_peace_for_a_while(caplog, monkeypatch):
    monkeypatch.setattr(provider_set, "LIST_SECONDS", 0.01)
    registry, bad = registry_of("hang")
    assert await names(registry) == ["b"]
    assert await names(registry) == ["b"]
    assert bad.listings == 1
    monkeypatch.setattr(provider_set, "REST_SECONDS", 0)
    registry.register_provider(bad)
    assert await names(registry) == ["b"]
    bad.listing = [ToolSpec(name="a")]
    assert await names(registry) == ["b", "a"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds as the watch sees them, to be moved by the test."""
    now = [0.0]
    monkeypatch.setattr(execution, "monotonic", lambda: now[0])
    return now


async def test_a_tool_that_holds_up_the_event_loop_is_named(caplog, clock):
    async def block(_: ToolInvocation) -> ToolExecutionResult:
        await asyncio.sleep(0)
        clock[0] += 1.5
        await asyncio.sleep(0)
        return ToolExecutionResult("t", success=True, content="done")

    registry = ToolRegistry()
    registry.register_provider(Provider("P", "t", answer=block))
    assert (await registry.invoke(ToolInvocation("t"))).content == "done"
    [record] = caplog.records
    assert record.getMessage().startswith("tool t held up the event loop for 1.5 s")


async def test_a_tool_that_waits_holds_up_nothing(caplog, clock):
    waited_for: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def wait(_: ToolInvocation) -> ToolExecutionResult:
        return ToolExecutionResult("t", success=True, content=await waited_for)

    registry = ToolRegistry()
    registry.register_provider(Provider("P", "t", answer=wait))
    call = asyncio.create_task(registry.invoke(ToolInvocation("t")))
    await asyncio.sleep(0)
    clock[0] += 1.5
    waited_for.set_result("done")
    assert (await call).content == "done"
    assert not caplog.records

"""The provider with real rows, a database thread and programs: what the operator and the model see
of it."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from tests.environment import PATIENCE
from tests.tools.mcp.serving import Office, good, hostile, in_database, office, row, until
from tools.contract import ToolExecutionContext, ToolInvocation
from tools.models import McpServer, McpServerStatus, ToolConfig

pytestmark = [pytest.mark.live, pytest.mark.django_db(transaction=True)]

save = in_database(row)


@in_database
def statuses() -> list[McpServerStatus]:
    return list(McpServerStatus.objects.select_related("server").order_by("server_id"))


@in_database
def change(name: str, **values: Any) -> None:
    [one] = [one for one in McpServer.objects.all() if one.name == name]
    for key, value in values.items():
        setattr(one, key, value)
    one.save()


async def status_until(**values: Any) -> McpServerStatus:
    async with asyncio.timeout(PATIENCE):
        while True:
            for status in await statuses():
                if all(getattr(status, key) == value for key, value in values.items()):
                    return status
            await asyncio.sleep(0.02)


async def test_a_servers_tools_are_offered_and_called(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DJANGO_SECRET_KEY", "ours")
    await save(good(), environment={"MY_KEY": "theirs"})
    async with office() as desk:
        await desk.has("say")
        result = await desk.call("weather", city="北京", days="2")
        assert result.success
        assert result.structured_content == {"city": "北京", "celsius": 22}
        assert result.metadata["provider_name"] == "mcp"
        assert (await desk.call("fail", why="x")).error_message.startswith("工具执行失败: ")
        assert len((await desk.call("everything")).content_items) == 6
        # A destructive one waits for an owner's word.
        assert (await desk.call("wipe")).metadata["refusal"] == "needs_approval"
        assert await progress(desk, "steps") == ["one (1/3)"]
        names = set((await desk.call("environment")).content.split())
    assert "MY_KEY" in names
    assert names <= {"MY_KEY", "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE"}


async def progress(desk: Office, tool: str) -> list[str]:
    """How far a call says that it is."""
    heard: list[str] = []
    context = ToolExecutionContext(
        user_id="1", owners={"1"}, on_progress=lambda text, _tell: heard.append(text)
    )
    await desk.registry.invoke(ToolInvocation(tool), context)
    return heard


async def test_a_list_that_nothing_has_changed_is_the_same_object():
    await save(hostile("none"))
    async with office() as desk:
        await desk.offers("tool", "fine")
        first = await desk.provider.list_tools()
        assert await desk.provider.list_tools() is first
        await desk.reload()
        again = await desk.provider.list_tools()
        assert [one is other for one, other in zip(first, again, strict=True)] == [True, True]


async def test_how_a_server_stands_and_its_tools_are_on_record():
    await save(hostile("none"))
    async with office():
        status = await status_until(state="connected")
        assert status.process_id == "process-1"
        assert (status.about["protocol"], status.about["left_out"], status.error) == (
            "2025-11-25",
            0,
            "",
        )
        assert [entry["name"] for entry in status.tools] == ["tool", "fine"]
        assert status.connected_at is not None
        assert status.latency_ms is not None
        rows = await in_database(
            lambda: set(ToolConfig.objects.values_list("name", "provider_name", "timeout_seconds"))
        )()
        assert rows == {("tool", "mcp", 65), ("fine", "mcp", 65)}
    assert await statuses() == []


async def test_what_processes_that_are_gone_said_is_forgotten():
    made = await save(hostile("none"))
    await in_database(McpServerStatus.objects.create)(
        server=made, process_id="dead", seen_at=timezone.now() - timedelta(minutes=5)
    )
    async with office():
        await status_until(process_id="process-1", state="connected")
        assert [status.process_id for status in await statuses()] == ["process-1"]


async def test_a_server_that_is_switched_off_is_obeyed_at_once_and_the_refusal_says_why():
    await save(hostile("none"))
    async with office() as desk:
        await desk.offers("tool", "fine")
        await change("hostile", enabled=False)
        await desk.reload()
        assert await desk.provider.list_tools() == []
        refused = await desk.call("fine")
        assert refused.metadata["refusal"] == "server_down"
        assert "MCP 服务器“hostile”，该服务器已被管理员停用" in refused.error_message
        await change("hostile", enabled=True)
        await desk.reload()
        await desk.offers("tool", "fine")


async def test_a_dead_servers_tools_are_offered_no_more_and_the_refusal_says_when_it_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tools.mcp.rate_limits.FIRST_PAUSE", 300)
    mark = tmp_path / "up"
    mark.touch()
    await save(hostile("down", mark))
    async with office() as desk:
        await desk.offers("tool", "fine")
        mark.unlink()
        await change("hostile", reconnects=1)
        await desk.reload()
        await desk.offers()
        status = await status_until(state="waiting")
        assert "not yet" in status.error
        assert status.retry_at is not None
        assert "秒后自动重试" in (await desk.call("fine")).error_message
        mark.touch()
        await change("hostile", reconnects=2)
        await desk.reload()
        await desk.offers("tool", "fine")


async def test_tools_that_come_later_are_found_when_the_operator_asks(tmp_path: Path):
    await save(hostile("late-tools", tmp_path / "there"))
    async with office() as desk:
        await status_until(state="connected")
        assert await desk.provider.list_tools() == []
        (tmp_path / "there").touch()
        await change("hostile", refreshes=1)
        await desk.reload()
        await desk.offers("tool")


async def test_what_is_wanted_of_a_server_changes_without_a_new_session():
    await save(hostile("none"))
    async with office() as desk:
        await desk.offers("tool", "fine")
        since = (await status_until(state="connected")).connected_at
        await change("hostile", include="f*", name_prefix="my_")
        await desk.reload()
        await desk.offers("my_fine")
        assert (await desk.call("my_fine")).content == "fine"
        assert (await status_until(state="connected")).connected_at == since


async def test_the_first_server_of_a_name_keeps_it_also_while_it_is_away(tmp_path: Path):
    mark = tmp_path / "up"
    mark.touch()
    await save(hostile("down", mark), "first")
    async with office() as desk:
        await desk.offers("tool", "fine")
        second = await save(hostile("none"), "second")
        await desk.reload()
        shadowed = await status_until(server_id=second.pk, state="connected")
        assert {entry["left_out"] for entry in shadowed.tools} == {
            "Another server has a tool of that name."
        }
        mark.unlink()
        await change("first", reconnects=1)
        await desk.reload()
        await desk.offers()


async def test_one_server_that_hangs_at_connecting_keeps_no_other_from_being_used():
    await save(hostile("hang-connect"), "bad")
    await save(hostile("none"), "good")
    async with office() as desk:
        await desk.offers("tool", "fine")
        assert (await desk.call("fine")).content == "fine"


async def test_a_call_that_died_with_its_server_is_made_again_only_where_that_does_no_harm(
    tmp_path: Path,
):
    await save(good())
    async with office() as desk:
        await desk.has("say")
        assert (await desk.call("die_once", mark=str(tmp_path / "mark"))).content == "alive"
        died = await desk.call("die")
        assert "可能已经执行" in died.error_message
        assert "ended" in died.metadata["error_detail"]
        await desk.answers("say", text="x")
        async with asyncio.timeout(PATIENCE):  # the row of before says connected too
            while "status 3" not in (await status_until(state="connected")).error:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def test_a_row_that_cannot_be_read_is_told_and_not_run():
    await save(hostile("none"), sealed_environment="nonsense")
    async with office():
        assert "Enter them anew" in (await status_until(state="stopped")).error


async def test_a_server_that_is_deleted_is_ended():
    await save(hostile("none"))
    async with office() as desk:
        await desk.offers("tool", "fine")
        link = desk.link("hostile")
        await in_database(lambda: McpServer.objects.all().delete())()
        await desk.reload()
        await desk.offers()
        await until(lambda: link is not None and link.is_over)
        assert desk.provider.absence("fine") == ""


async def test_a_tool_of_a_server_that_is_down_since_the_start_is_explained():
    await save(hostile("down", "/nowhere"))
    await in_database(lambda: ToolConfig(name="known", provider_name="mcp").save())()
    async with office() as desk:
        await status_until(state="waiting")
        refused = await desk.call("known")
        assert refused.metadata["refusal"] == "server_down"
        assert "MCP 服务器“hostile”，该服务器" in refused.error_message
        assert (await desk.call("never_seen")).metadata["refusal"] == "unknown"


async def test_no_tool_of_the_program_can_be_taken_over():
    await save(hostile("odd-tools"))
    async with office(reserved=("reply",)) as desk:
        await status_until(state="connected")
        assert "reply" not in {spec.name for spec in await desk.provider.list_tools()}
        assert not await in_database(ToolConfig.objects.filter(name="reply").exists)()


async def test_without_a_start_nothing_is_run():
    await save(hostile("none"))
    async with office(is_started=False) as desk:
        assert await desk.provider.list_tools() == []
        assert await statuses() == []

"""Tools of whatever provider get a row when they are first seen, and cost nothing after that."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from asgiref.sync import sync_to_async

from agent.record.ground.commit import GroupCommit, R, Ts
from tests.tools.fakes import Broken, GroupOnly, Provider
from tools.contract import ToolSpec
from tools.models import ToolConfig
from tools.registry.registry import ToolRegistry

pytestmark = pytest.mark.django_db(transaction=True)


class Office:
    """A registry and the database thread of a process, which counts what is asked of it."""

    process_id = "p1"

    def __init__(self) -> None:
        self.commit = GroupCommit()
        self.asked = 0
        self.registry = ToolRegistry()

    def submit(self, function: Callable[[*Ts], R], *args: *Ts) -> "asyncio.Future[R]":
        self.asked += 1
        return self.commit.submit(function, *args)

    async def look(self, *but: Provider) -> None:
        await self.registry.list_tools()
        await self.registry.newcomers.put_down(self, but)


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    office = Office()
    yield office
    await office.commit.close()


async def rows() -> dict[str, str]:
    return await sync_to_async(
        lambda: dict(ToolConfig.objects.values_list("name", "provider_name"))
    )()


async def test_a_tool_of_a_provider_registered_in_code_has_a_row_once_it_was_listed(office: Office):
    office.registry.register_provider(
        Provider("mine", "fly", ToolSpec(name="swim", provider_name="other"))
    )
    await office.look()
    assert await rows() == {"fly": "mine", "swim": "other"}


async def test_where_nothing_is_new_nothing_is_asked_of_the_database_also_of_specs_made_anew(
    office: Office,
):
    provider = Provider("mine", "fly")
    office.registry.register_provider(provider)
    for _ in range(3):
        provider.specs = [ToolSpec(name="fly")]
        await office.look()
    assert office.asked == 1


async def test_a_declaration_that_changes_is_followed_and_a_tool_that_comes_later_too(
    office: Office,
):
    provider = Provider("mine", "fly")
    office.registry.register_provider(provider)
    await office.look()
    provider.specs = [ToolSpec(name="fly", title="Flight"), ToolSpec(name="swim")]
    await office.look()
    row = await sync_to_async(ToolConfig.objects.get)(name="fly")
    assert (row.declaration["title"], set(await rows())) == ("Flight", {"fly", "swim"})


async def test_of_two_providers_with_one_name_the_row_is_of_the_first(office: Office):
    for name in ("first", "second"):
        office.registry.register_provider(Provider(name, "fly"))
    await office.look()
    assert await rows() == {"fly": "first"}


async def test_what_is_offered_in_some_chats_only_or_comes_back_later_is_seen_then(office: Office):
    broken = Broken("broken", "swim")
    office.registry.register_provider(broken)
    office.registry.narrowed(lambda spec: False).register_provider(GroupOnly("groups", "fly"))
    await office.look()
    assert await rows() == {"fly": "groups"}
    broken.mended = True
    await office.look()
    assert set(await rows()) == {"fly", "swim"}


async def test_providers_that_keep_their_own_rows_are_left_to_it(office: Office):
    live = Provider("mcp", "fly")
    office.registry.register_provider(live)
    await office.look(live)
    assert (await rows(), office.asked) == ({}, 0)


async def test_what_could_not_be_put_down_is_tried_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
):
    office.registry.register_provider(Provider("mine", "fly"))
    with monkeypatch.context() as patch:
        patch.setattr("tools.registry.registry.ensure_tool_rows", lambda specs: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await office.look()
    await office.look()
    assert await rows() == {"fly": "mine"}

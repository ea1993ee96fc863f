"""What tools cost the database: nothing a tool."""

import asyncio

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.tools.fakes import Provider
from tools.contract import ToolExecutionContext, ToolInvocation, ToolSpec
from tools.registry.catalogue import ensure_tool_rows
from tools.registry.registry import ToolRegistry
from tools.registry.settings import load_tool_settings


@pytest.mark.django_db
@pytest.mark.parametrize("count", [1, 50])
def test_listing_and_calling_ask_nothing_of_the_database(
    count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    specs = [
        ToolSpec(name=f"t{number}", parameters_schema={"type": "object"}) for number in range(count)
    ]
    ensure_tool_rows(specs)
    rows, chat = load_tool_settings(), ToolExecutionContext(is_group_chat=False)
    registry = ToolRegistry(lambda: rows)
    registry.register_provider(Provider("P", *specs))
    with django_assert_num_queries(0):
        assert len(asyncio.run(registry.get_llm_definitions(chat.availability()))) == count
        assert asyncio.run(registry.invoke(ToolInvocation(f"t{count - 1}"), chat)).success

"""What tests of the gateway start with."""

from collections.abc import AsyncIterator

import pytest

from agent.record.record import Record


@pytest.fixture
async def record() -> AsyncIterator[Record]:
    record = Record("p1")
    yield record
    await record.close()

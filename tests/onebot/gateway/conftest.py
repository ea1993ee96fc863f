"""What tests of the gateway start with."""

from collections.abc import AsyncIterator

import pytest

from agent.record.record import Record
from tools.registry.settings import SettingsCache


@pytest.fixture
async def record() -> AsyncIterator[Record]:
    record = Record("p1", SettingsCache(), lambda: None)
    yield record
    await record.close()

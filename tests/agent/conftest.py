"""A record that writes to the test database, as a server's does."""

from collections.abc import AsyncIterator

import pytest

from agent.record import Record
from tests.agent.talk import PROCESS
from tools.configs import SettingsCache


@pytest.fixture
async def record(transactional_db: None) -> AsyncIterator[Record]:
    """The record of the process ``p1``; everything asked of it is committed when the test ends."""
    record = Record(PROCESS, SettingsCache(), lambda: None)
    yield record
    await record.close()

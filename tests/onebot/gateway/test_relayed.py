"""What another process wants to have written, while the database is away."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError

from onebot.gateway.gateway import Gateway
from onebot.protocol.actions import NotConnected


def never(*_args: object) -> "asyncio.Future[bool]":
    return asyncio.get_running_loop().create_future()


def refused(*_args: object) -> "asyncio.Future[bool]":
    raised = never()
    raised.set_exception(OperationalError("the connection is closed"))
    return raised


@pytest.mark.parametrize("submit", [never, refused])
async def test_what_the_record_cannot_be_asked_about_was_surely_not_written(submit: Any):
    """So it is sent later, and not taken for a message of unknown outcome."""
    record = SimpleNamespace(is_lease_over=False, submit=submit)
    gateway: Any = SimpleNamespace(runtime=SimpleNamespace(record=record))
    with pytest.raises(NotConnected, match="could not be asked"):
        await Gateway._perform(gateway, "10001", "{}", "e1", 0.01)

"""What tests of the inbox wait for and look at."""

import asyncio
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async

from agent.chat.inbox import Inbox
from agent.llm.requests.messages import strip_frame
from agent.models import Message
from tests.agent.talk import Script
from tests.environment import PATIENCE

Make = Callable[[Script], Inbox]


def held() -> "asyncio.Future[str]":
    return asyncio.get_running_loop().create_future()


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - what happens behind an inbox rings no bell
            await asyncio.sleep(0.005)


async def idle(inbox: Inbox) -> None:
    """Wait until nothing is in the inbox any more."""
    await until(
        lambda: not (inbox._arriving or inbox._workers or inbox._side_tasks or inbox._commands)
    )
    await inbox.record.submit_batched(lambda items: items, None)


@sync_to_async
def rows(**where: Any) -> list[tuple[str, str, str]]:
    return list(
        Message.objects.filter(**where).order_by("pk").values_list("text", "state", "reason")
    )


def asked(model: Script) -> list[str]:
    return [strip_frame(request.messages[-1]["content"]) for request in model.requests]

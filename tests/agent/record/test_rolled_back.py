"""What a transaction made that was not committed is not remembered: neither rows of chats nor
settings."""

import asyncio
from collections.abc import Sequence
from typing import Any, NoReturn

import pytest
from asgiref.sync import sync_to_async

from agent.domain.types import ChatAddress
from agent.models import ChatSession, Message
from agent.record.record import Record
from agent.record.settings.snapshot import Settings
from tests.agent.talk import GROUP, PLAN, PRIVATE, PROCESS, arrival, message
from tools.models import ToolConfig

pytestmark = pytest.mark.django_db(transaction=True)

OTHER = ChatAddress("10001", "private", "20002")


class Slip(Exception):  # noqa: N818 - it stands for any
    """A fault of one request among others."""


def slip(_items: Sequence[Any]) -> NoReturn:
    raise Slip


@sync_to_async
def filed() -> dict[str, str]:
    """The number of the peer in whose chat each text is on record."""
    return dict(Message.objects.values_list("text", "session__peer_id"))


@pytest.mark.parametrize("plan", [None, PLAN], ids=["without a run", "with its run"])
async def test_a_new_chat_next_to_a_failing_request_is_recorded_as_itself(record, plan):
    private, failing = (
        record.submit_batched(
            record.arrivals.accept_messages, arrival(message("secret"), plan=plan)
        ),
        record.submit_batched(slip, None),
    )
    outcomes = await asyncio.gather(private, failing, return_exceptions=True)
    assert isinstance(outcomes[1], Slip)
    await record.submit_batched(
        record.arrivals.accept_messages, arrival(message("all", GROUP, mentions_bot=True))
    )
    await record.submit_batched(record.arrivals.accept_messages, arrival(message("more")))
    assert await filed() == {
        "secret": PRIVATE.peer_id,
        "all": GROUP.peer_id,
        "more": PRIVATE.peer_id,
    }


async def test_a_new_chat_whose_own_commit_fails_leaves_nothing_behind_that_the_next_one_gets(
    record,
):
    def accepted_and_slipped(items: Sequence[Any]) -> NoReturn:
        record.arrivals.accept_messages(items)
        raise Slip

    with pytest.raises(Slip):
        await record.submit_batched(accepted_and_slipped, arrival(message("lost")))
    for text, chat in (("a", OTHER), ("b", PRIVATE), ("c", OTHER)):
        await record.submit_batched(record.arrivals.accept_messages, arrival(message(text, chat)))
    assert await filed() == {"a": OTHER.peer_id, "b": PRIVATE.peer_id, "c": OTHER.peer_id}


@pytest.mark.parametrize("plan", [None, PLAN], ids=["without a run", "with its run"])
async def test_a_chat_that_was_deleted_in_the_admin_begins_anew_with_its_next_message(record, plan):
    await record.submit_batched(record.arrivals.accept_messages, arrival(message("before")))
    await record.submit_batched(
        record.arrivals.accept_messages, arrival(message("elsewhere", OTHER))
    )
    await sync_to_async(ChatSession.objects.filter(peer_id=PRIVATE.peer_id).delete)()
    accepted = await asyncio.gather(
        record.submit_batched(
            record.arrivals.accept_messages, arrival(message("after"), plan=plan)
        ),
        record.submit_batched(record.arrivals.accept_messages, arrival(message("beside", OTHER))),
    )
    assert all(one.decision.is_to_be_answered for one in accepted)
    assert await filed() == {
        "after": PRIVATE.peer_id,
        "elsewhere": OTHER.peer_id,
        "beside": OTHER.peer_id,
    }


async def test_uncommitted_settings_are_not_applied_and_later_ones_with_their_number_are():
    told: list[tuple[str | None, str]] = []
    record = Record(PROCESS)

    def described(known: Settings) -> str | None:
        return known.tools["f"].description if "f" in known.tools else None

    record.live.subscribe(lambda *both: told.append(tuple(map(described, both))), "tools")  # type: ignore[arg-type]

    @sync_to_async
    def describe(text: str) -> None:
        ToolConfig.objects.update_or_create(name="f", defaults={"description": text})

    def described_and_slipped() -> NoReturn:
        ToolConfig.objects.update(description="never")
        record.run_starter.reload_settings()
        assert described(record.live.seen) == "never"
        raise Slip

    await describe("first")
    await record.submit(record.run_starter.reload_settings)
    with pytest.raises(Slip):
        await record.submit(described_and_slipped)
    assert described(record.live.current) == described(record.live.seen) == "first"
    await describe("second")
    await record.submit(record.run_starter.reload_settings)
    assert described(record.live.current) == "second"
    assert told == [(None, "first"), ("first", "second")]
    await record.close()

"""Which waiting messages are answered together, and for how long they wait."""

from dataclasses import replace
from typing import Any

import pytest

from agent.chat.message_run import MOST_MERGED, QueuedMessage, merge, waits_until
from agent.domain.approvals import ApprovalReply
from agent.domain.commands import Command, CommandName
from agent.domain.manners import environment_manners
from agent.record.waiting.recovery import PendingMessage
from tests.agent.talk import GROUP, message

COMMAND = Command(CommandName.HELP)
DECISION = ApprovalReply(is_approval=True, code="1")


def waiting(pk: int, window: float = 5.0, arrived: float = 0.0, **fields: Any) -> QueuedMessage:
    said = message(fields.pop("text", "hi"), GROUP, sender_id=fields.pop("sender", "1"))
    manners = replace(environment_manners(), merge_seconds=window)
    return QueuedMessage(PendingMessage(pk, 1, said, manners=manners, **fields), arrived=arrived)


def test_messages_of_one_person_belong_together():
    assert waiting(2).follows([waiting(1)])
    assert not waiting(2, sender="2").follows([waiting(1)])
    assert not waiting(2).follows([waiting(1, window=0.0)])
    assert not waiting(1).follows([waiting(2)])


@pytest.mark.parametrize(
    "special",
    [
        {"command": COMMAND},
        {"approval_reply": DECISION},
        {"notice": "too often"},
        {"is_later_result": True},
        {"has_begun": True},
    ],
)
def test_what_is_answered_in_its_own_way_is_merged_with_nothing(special):
    assert waiting(1, **special).window == 0.0
    assert not waiting(2, **special).follows([waiting(1)])
    assert not waiting(2).follows([waiting(1, **special)])


@pytest.mark.parametrize(
    ("window", "wanted"), [(2.0, [2.0, 3.5, 5.0, 6.0]), (20.0, [20.0, 21.5, 23.0, 30.0])]
)
def test_each_message_prolongs_the_wait_which_has_a_bound(window, wanted):
    arrivals = [0.0, 1.5, 3.0, 29.0]
    group = [waiting(pk, window, at) for pk, at in enumerate(arrivals, 1)]
    assert [waits_until(group[:count]) for count in range(1, 5)] == wanted


def test_no_more_are_awaited_than_are_answered_together():
    group = [waiting(pk, arrived=100.0) for pk in range(1, MOST_MERGED + 1)]
    assert not waiting(MOST_MERGED + 1).follows(group)
    assert waits_until(group) == 0.0


def test_the_last_message_takes_over_what_was_merged_into_the_others():
    [together] = merge([waiting(2)._replace(earlier=(waiting(1),)), waiting(3), waiting(4)])
    assert (together.pk, [one.pk for one in together.earlier]) == (4, [1, 2, 3])
    assert all(not one.earlier for one in together.earlier)
    assert merge([]) == []

"""What happened in chats is put down once, however often and wherever it is reported."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agent.domain.events import ChatNotice, EventKind
from agent.domain.types import ChatAddress
from agent.models import ChatEvent, ChatSession
from agent.record.chats.chat_events import EventArrival, record_events
from agent.record.waiting import expiry
from agent.record.waiting.expiry import EraseResult, erase_chat_events
from tests.admin.record import chat

pytestmark = pytest.mark.django_db
AT = datetime(2026, 11, 21, 2, 35, 33, 500_000, UTC)
GROUP = ChatAddress("10001", "group", "700")
JOIN = ChatNotice(EventKind.JOIN, GROUP, user_id="20002", happened_at=AT)
RECALL = ChatNotice(
    EventKind.RECALL, GROUP, user_id="20002", operator_id="20009", message_id="7", happened_at=AT
)


def later(notice: ChatNotice, seconds: float) -> ChatNotice:
    return replace(notice, happened_at=AT + timedelta(seconds=seconds))


def test_a_line_has_all_that_the_notice_says():
    notice = ChatNotice(
        EventKind.MUTE, GROUP, "ban", "20002", operator_id="20009", seconds=600, happened_at=AT
    )
    [session] = record_events([EventArrival(notice, AT + timedelta(seconds=2), "Fish")])
    row = ChatEvent.objects.get(session=session)
    said = row.kind, row.change, row.user_id, row.operator_id, row.seconds, row.happened_at
    assert said == ("mute", "ban", "20002", "20009", 600, AT)
    assert (row.session.peer_id, row.session.title, row.at) == (
        "700",
        "Fish",
        AT + timedelta(seconds=2),
    )


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        (JOIN, JOIN, 1),  # two sockets
        (JOIN, later(JOIN, 1), 2),
        (JOIN, replace(JOIN, user_id="20003"), 2),
        (JOIN, replace(JOIN, kind=EventKind.LEAVE), 2),
        (JOIN, replace(JOIN, chat=ChatAddress("10001", "group", "701")), 2),
        (JOIN, replace(JOIN, chat=ChatAddress("10002", "group", "700")), 2),
        (RECALL, later(RECALL, 1), 1),  # NapCat tells it twice
        (RECALL, replace(RECALL, operator_id=""), 1),
        (RECALL, later(RECALL, 7_200), 2),  # the client has numbered anew
        (RECALL, replace(RECALL, message_id="8"), 2),
        (replace(JOIN, happened_at=None), replace(JOIN, happened_at=None), 1),
    ],
)
@pytest.mark.parametrize("is_together", [True, False])
def test_74_what_is_reported_twice_is_one_line(first, second, count, is_together):
    again = EventArrival(second, AT + timedelta(milliseconds=400))
    reports = [EventArrival(first, AT), again]
    found = (
        record_events(reports)
        if is_together
        else [new for report in reports for new in record_events([report])]
    )
    assert [bool(new) for new in found] == [True, count == 2]
    assert ChatEvent.objects.count() == count


def test_what_is_of_no_chat_is_no_line_and_makes_none():
    assert record_events([EventArrival(replace(JOIN, chat=None), AT)]) == [0]
    assert not ChatSession.objects.exists()


def test_a_flood_takes_few_statements():
    session = chat("700")
    reports = [EventArrival(replace(JOIN, user_id=str(number)), AT) for number in range(10_000)]
    with CaptureQueriesContext(connection) as queries:
        assert record_events(reports) == [session.pk] * 10_000
    assert ChatEvent.objects.filter(session=session).count() == 10_000
    assert len(queries) < 200


def test_old_lines_go_in_batches_and_young_ones_stay(monkeypatch):
    monkeypatch.setattr(expiry, "BATCH", 2)
    record_events([EventArrival(replace(JOIN, user_id=str(number)), AT) for number in range(3)])
    record_events([EventArrival(JOIN, AT + timedelta(days=1))])
    young = ChatEvent.objects.latest("at").pk
    before = AT + timedelta(hours=1)
    first = erase_chat_events(before, 0, 0)
    assert (first.count, first.after is not None) == (2, True)
    assert erase_chat_events(before, 0, first.after or 0) == EraseResult(1, None)
    assert ChatEvent.objects.get().pk == young

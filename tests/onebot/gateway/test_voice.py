"""Accounts that hear and cannot speak."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from agent.models import ChatSession
from onebot.gateway.bots import load_accounts, note_voice
from onebot.gateway.voice import MOST_FAILURES, VoiceWatch
from onebot.models import Bot
from tests.onebot.gateway.test_delivery import GROUP, HELLO, Line

OK = {"status": "ok", "retcode": 0, "data": {"message_id": 5}}
REFUSED = {"status": "failed", "retcode": 1200, "message": "no"}
MUTED = {"status": "failed", "retcode": 120, "message": "result 120"}


def watched() -> tuple[VoiceWatch, list[tuple[str, bool]]]:
    told: list[tuple[str, bool]] = []
    return VoiceWatch(lambda account, since: told.append((account, since is not None))), told


def test_the_fifth_failure_in_a_row_is_told_and_one_less_is_not():
    watch, told = watched()
    for _ in range(MOST_FAILURES - 1):
        watch.failed("10001")
    watch.failed("10002")
    watch.arrived("10001")
    assert told == []
    for _ in range(MOST_FAILURES):
        watch.failed("10001")
    assert told == [("10001", True)]


@pytest.mark.parametrize("was_restarted", [False, True])
def test_a_message_that_arrives_ends_it(was_restarted: bool):
    watch, told = watched()
    for _ in range(0 if was_restarted else MOST_FAILURES):
        watch.failed("10001")
    watch.voiceless = {"10001"}
    watch.arrived("10001")
    assert told[-1] == ("10001", False)


@pytest.mark.parametrize(
    ("answers", "is_counted"),
    [([REFUSED], True), ([MUTED], False), ([REFUSED, OK], False), ([OK], False)],
)
async def test_what_a_client_says_to_a_send_counts(answers: list[dict], is_counted: bool):
    left = list(answers)
    line = Line(lambda _frame: left.pop(0))
    for number in range(len(answers)):
        await line.delivery.deliver(GROUP, HELLO, echo=f"e{number}")
    assert bool(line.delivery.voice.failures) is is_counted


def heard(what: str, at: datetime) -> None:
    if what == "heartbeat":
        Bot.objects.update(last_heartbeat_at=at)
    elif what == "message":
        ChatSession.objects.create(
            account="10001", kind="group", peer_id="7", created_at=at, last_message_at=at
        )


@pytest.mark.parametrize(
    ("what", "is_noted"), [("heartbeat", True), ("message", True), ("nothing", False)]
)
@pytest.mark.django_db
def test_it_is_noted_while_events_come(what: str, is_noted: bool):
    Bot.objects.create(self_id="10001")
    since = timezone.now()
    heard(what, since + timedelta(seconds=1))
    note_voice("10001", since)
    assert load_accounts()["10001"].is_voiceless is is_noted
    note_voice("10001", since + timedelta(days=1))
    assert Bot.objects.get().cannot_speak_since in (since, None)  # the first one counts
    note_voice("10001", None)
    assert Bot.objects.get().cannot_speak_since is None

"""The rows of the bot accounts, as several processes keep them."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agent.models import ServerProcess
from agent.record.waiting.recovery import LEASE_SECONDS, record_heartbeat
from onebot.gateway.bots import (
    BotChange,
    ProcessMailbox,
    connected_change,
    disconnected_change,
    introduced_change,
    kept_change,
    load_account_channels,
    save_bot_changes,
)
from onebot.models import Bot

pytestmark = pytest.mark.django_db


def hold(account: str, process_id: str) -> None:
    """A process that lives has the account, at the mailbox ``mail``."""
    record_heartbeat(process_id, alone=False)
    save_bot_changes(
        [connected_change(account, "universal", "OneBot/11", ProcessMailbox(process_id, "mail"))]
    )


def test_accounts_are_where_the_process_that_holds_them_listens():
    hold("10001", "other")
    assert load_account_channels() == {"10001": "mail"}


def test_accounts_of_a_process_that_shows_no_sign_of_life_are_connected_no_more():
    hold("10001", "other")
    ServerProcess.objects.update(last_seen_at=timezone.now() - timedelta(seconds=LEASE_SECONDS + 1))
    assert load_account_channels() == {}


def test_accounts_of_a_process_that_was_only_away_are_its_own_again():
    hold("10001", "away")
    ServerProcess.objects.update(last_seen_at=timezone.now() - timedelta(seconds=LEASE_SECONDS + 1))
    assert load_account_channels() == {}
    record_heartbeat("away", alone=False)
    save_bot_changes([kept_change("10001", "universal", ProcessMailbox("away", "mail"))])
    assert load_account_channels() == {"10001": "mail"}


def test_a_quick_reconnection_is_online_when_the_client_says_who_it_is():
    """In one batch: what it says comes last, and is merged with nothing before the connection."""
    record_heartbeat("p", alone=False)
    again = connected_change("10001", "universal", "OneBot/11", ProcessMailbox("p", "mail"))
    left, named = disconnected_change("10001", "p"), introduced_change("10001", "n", "NapCat", "p")
    save_bot_changes([again, left, again, named])
    assert Bot.objects.filter(online=True, client_name="NapCat", channel="mail").exists()


def test_who_has_gone_is_not_brought_back_by_what_was_said_after():
    record_heartbeat("p", alone=False)
    here = connected_change("10001", "universal", "OneBot/11", ProcessMailbox("p", "mail"))
    left, roles = disconnected_change("10001", "p"), BotChange("10001", {"nickname": "n"})
    save_bot_changes([here, left, roles])
    assert Bot.objects.filter(online=False, nickname="n").exists()


@pytest.mark.parametrize("ends", [False, True])
def test_an_account_that_has_connected_elsewhere_since_stays_there(ends):
    hold("10001", "away")
    ServerProcess.objects.update(last_seen_at=timezone.now() - timedelta(seconds=LEASE_SECONDS + 1))
    load_account_channels()
    holder = ProcessMailbox("other", "elsewhere")
    record_heartbeat("other", alone=False)
    save_bot_changes([connected_change("10001", "universal", "OneBot/11", holder)])
    if ends:
        save_bot_changes([disconnected_change("10001", "other")])
    save_bot_changes([kept_change("10001", "universal", ProcessMailbox("away", "mail"))])
    assert load_account_channels() == ({} if ends else {"10001": "elsewhere"})


def test_a_process_whose_clock_is_fast_takes_no_account_from_the_others(monkeypatch):
    hold("10001", "other")
    now = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(hours=1))
    assert load_account_channels() == {"10001": "mail"}

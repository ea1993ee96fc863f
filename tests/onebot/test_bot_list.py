"""The list and the page of bots: names, clients, and owners that are missing."""

import pytest
from django.utils import timezone, translation

from agent.domain.types import playground_account
from onebot.admin.bots import client_words
from onebot.models import Bot, ClientEvent
from tests.admin.record import chat, logged_in, page, said
from tools.models import ToolConfig

BOTS = "/admin/onebot/bot/"


@pytest.mark.parametrize(
    ("said", "dialled", "words"),
    [
        ("NapCat.Onebot/4.8.0", "OneBot/11", "NapCat 4.8.0"),
        ("LLOneBot", "LLOneBot/7.1.0", "LLBot"),
        ("", "Lagrange.OneBot/1.0", "Lagrange.OneBot 1.0"),
        ("", "CQHttp/4.15.0", "go-cqhttp 4.15.0"),
        ("", "OneBot/11", "a client that does not say its name"),
        ("", "", "a client that does not say its name"),
        ("Something/2 <b>", "", "Something/2 <b>"),
        ("A\u202eB", "", "A\\u202eB"),
        ("x" * 200, "", "x" * 60),
    ],
)
def test_a_client_is_named_as_people_call_it(said: str, dialled: str, words: str):
    with translation.override("en"):
        assert client_words(Bot(client_name=said, implementation=dialled)) == words


def test_account_and_client_are_called_the_same_on_every_page(db: None):
    Bot.objects.create(self_id="10001", nickname="小霜", client_name="NapCat.Onebot/4.8.0")
    browser = logged_in()
    for place in ("/admin/", "/admin/start/", BOTS):
        text = page(browser, place)
        assert "小霜" in text, place
        assert "NapCat 4.8.0" in text, place


def test_a_bot_goes_by_the_name_that_it_was_heard_under(db: None):
    Bot.objects.create(self_id="10001")
    assert "小霜" not in page(logged_in(), BOTS)
    said(chat(), sender_id="10001", sender_name="小霜\u202e")
    said(chat("701", account="10002"), sender_id="10001", sender_name="of another account")
    text = page(logged_in("viewer"), BOTS)
    assert "小霜\\u202e" in text
    assert "of another account" not in text


def test_what_a_client_said_of_its_account_does_not_outlive_it(db: None):
    Bot.objects.create(self_id="10001", online=False, account_online=True)
    assert "icon-yes" not in page(logged_in(), BOTS)


def test_calls_that_wait_for_an_owner_nobody_is_are_told_on_the_bots_page(db: None):
    bot = Bot.objects.create(self_id="10001")
    browser, warning = logged_in(), "This bot has no owner"
    assert warning not in page(browser, f"{BOTS}{bot.pk}/change/")
    ToolConfig.objects.create(name="transfer", requires_approval="always")
    assert warning in page(browser, f"{BOTS}{bot.pk}/change/")
    Bot.objects.update(owners="20001")
    assert warning not in page(browser, f"{BOTS}{bot.pk}/change/")


def test_a_playground_that_is_closed_is_no_broken_bot(db: None):
    Bot.objects.create(self_id=playground_account(7), online=False)
    text = page(logged_in(), BOTS)
    assert "playground" in text
    assert "icon-no" not in text


def test_heartbeats_that_stopped_are_a_line_on_the_page_of_the_bot(db: None):
    bot = Bot.objects.create(self_id="10001")
    lost = {"self_id": "10001", "detail_type": "heartbeat_lost", "raw": {}}
    ClientEvent.objects.create(created_at=timezone.now(), **lost)
    text = page(logged_in(), f"{BOTS}{bot.pk}/change/")
    assert "heartbeats stopped, connection closed" in text

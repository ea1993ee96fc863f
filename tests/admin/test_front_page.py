"""The first page: the state of things at a glance, in the browser's language."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from agent.domain.types import playground_account
from agent.models import Approval, ModelEndpoint
from frostproject.cockpit import dashboard
from onebot.models import Bot
from tests.admin.record import (
    CHINESE,
    ENGLISH,
    call_of,
    chat,
    logged_in,
    page,
    run_for,
    said,
    step_of,
)
from tools.version import VERSION


def test_connected_bots_are_shown_with_their_last_heartbeat(browser: Client):
    Bot.objects.create(
        self_id="10001",
        online=True,
        last_heartbeat_at=timezone.now() - timedelta(minutes=5, seconds=1),
    )
    Bot.objects.create(
        self_id="10002", online=True, account_online=False, last_heartbeat_at=timezone.now()
    )
    text = page(browser, "/admin/")
    assert "heartbeat 5\xa0minutes ago" in text
    assert "heartbeat just now" in text
    assert "account offline" in text


def test_without_a_bot_the_address_to_connect_to_is_shown(browser: Client):
    assert "<code>ws://testserver/ws/frostagent</code>" in page(browser, "/admin/")


def test_who_has_no_model_is_led_to_where_one_is_set(browser: Client):
    alert = page(browser, "/admin/").split('data-kind="no-model"')[1].split("</li>")[0]
    assert 'href="/admin/agent/modelendpoint/add/"' in alert
    assert "no-model" not in page(logged_in("viewer"), "/admin/")
    ModelEndpoint.objects.create(name="m", base_url="https://a.example/v1", model="m")
    assert "no-model" not in page(browser, "/admin/")


def test_waiting_messages_are_counted_up_to_a_bound(
    browser: Client, monkeypatch: pytest.MonkeyPatch
):
    session = chat()
    for state in ("waiting", "running", "answered"):
        said(session, state=state)
    text = page(browser, "/admin/")
    assert '?state__exact=waiting">1</a>' in text
    assert '?state__exact=running">1 being answered</a>' in text
    said(session, state="waiting")
    monkeypatch.setattr(dashboard, "WAITING_LIMIT", 1)
    assert '?state__exact=waiting">1+</a>' in page(browser, "/admin/")


def test_calls_that_wait_for_an_owner_are_told_one_by_one(browser: Client):
    session, now = chat(), timezone.now()
    step = step_of(run_for(said(session, state="answered")))
    for number, state in enumerate(("waiting", "waiting", "refused")):
        call = call_of(step, "transfer", position=number)
        Approval.objects.create(
            call=call,
            session=session,
            code=f"{number}",
            state=state,
            created_at=now,
            expires_at=now,
        )
    assert page(browser, "/admin/").count('data-kind="approvals"') == 2


def test_the_last_failures_are_shown_once_each(browser: Client):
    run_for(
        said(chat(), state="failed", detail="401 from the endpoint"),
        state="failed",
        error="401 from the endpoint",
    )
    run_for(state="failed", error="no route")
    text = page(browser, "/admin/?more=1")
    assert text.count("401 from the endpoint") == 1
    assert "no route" in text


def test_the_front_page_takes_few_queries(
    browser: Client, django_assert_max_num_queries: DjangoAssertNumQueries
):
    for number in range(30):
        Bot.objects.create(self_id=str(number), online=True)
        run_for(said(chat(str(number)), state="failed"), state="failed")
    page(browser, "/admin/")  # what Django remembers for good is asked here
    with django_assert_max_num_queries(34):
        page(browser, "/admin/")


@pytest.mark.parametrize(
    ("headers", "words"),
    [(ENGLISH, "Overview"), (CHINESE, "总览"), ({}, "总览")],
)
def test_the_admin_follows_the_browser(browser: Client, headers: dict[str, str], words: str):
    browser.defaults.pop("HTTP_ACCEPT_LANGUAGE")
    assert words in browser.get("/admin/", headers=headers).content.decode()


@pytest.mark.parametrize(
    "name",
    [
        "agent/chatsession",
        "agent/message",
        "agent/run",
        "agent/toolcall",
        "tools/toolconfig",
        "onebot/bot",
    ],
)
def test_a_chinese_list_shows_no_english_heading(browser: Client, name: str):
    response = browser.get(f"/admin/{name}/", headers=CHINESE)
    titles = [str(header) for header in response.context["cl"].model_admin.list_display]
    assert response.context["title"].startswith("选择")
    assert not [
        title
        for title in titles
        if f">{title.replace('_', ' ')}<" in response.content.decode().lower()
    ]


def test_every_page_bears_the_programs_name(browser: Client):
    assert page(browser, "/admin/").count("FrostAgent") == 2
    assert VERSION in page(browser, "/admin/")
    assert "FrostAgent" in Client().get("/admin/login/").content.decode()


def test_pages_ask_no_other_host_for_anything(browser: Client):
    text = page(browser, "/admin/")
    assert "https://" not in text
    assert 'href="/static/agent/cockpit.css?v=' in text


def test_playgrounds_and_trials_are_no_failures(browser: Client):
    played = said(chat(account=playground_account(7)), state="failed", detail="played")
    run_for(played, state="failed", error="played too")
    asked = run_for(said(chat("701")))
    run_for(asked.message, state="failed", error="asked again", trial_of=asked.message)
    said(played.session, state="waiting")
    text = page(browser, "/admin/?more=1")
    assert "played" not in text
    assert "asked again" not in text
    assert '<strong><a href="/admin/agent/message/?state__exact=waiting">0</a>' in text

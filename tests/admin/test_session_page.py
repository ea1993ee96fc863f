"""A session reads like a chat."""

import re
from datetime import UTC, datetime

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from agent.admin.chats.stream import CHAT_PAGE_SIZE
from agent.models import ChatSession, Message, Run
from tests.admin.record import answered, chat, page, run_for, said


def address(session: ChatSession, query: str = "") -> str:
    return f"/admin/agent/chatsession/{session.pk}/change/{query}"


def bubbles(text: str) -> list[int]:
    return [int(pk) for pk in re.findall(r'<li id="m(\d+)"', text)]


def link(text: str, rel: str) -> str:
    found = re.search(rf'<a href="([^"]*)" rel="{rel}"', text)
    return found[1] if found else ""


@pytest.fixture
def long_chat(db: None) -> list[int]:
    session, other = chat(), chat("701")
    rows = []
    for _ in range(2 * CHAT_PAGE_SIZE + 10):
        rows.append(said(session).pk)
        said(other)
    return rows


def test_the_page_opens_on_the_newest_messages_old_above_new(browser: Client, long_chat: list[int]):
    session = ChatSession.objects.get(peer_id="700")
    assert bubbles(page(browser, address(session))) == long_chat[-CHAT_PAGE_SIZE:]


def test_older_pages_follow_one_another_to_the_beginning(browser: Client, long_chat: list[int]):
    session, query = ChatSession.objects.get(peer_id="700"), ""
    seen: list[int] = []
    for _ in range(3):
        text = page(browser, address(session, query))
        seen[:0] = bubbles(text)
        query = link(text, "prev")
    assert seen == long_chat
    assert query == ""


def test_newer_pages_lead_back_to_the_newest(browser: Client, long_chat: list[int]):
    session = ChatSession.objects.get(peer_id="700")
    first = page(browser, address(session, f"?before={long_chat[30]}"))
    assert bubbles(first) == long_chat[:30]
    second = page(browser, address(session, link(first, "next")))
    assert bubbles(second) == long_chat[30 : 30 + CHAT_PAGE_SIZE]
    third = page(browser, address(session, link(second, "next")))
    assert bubbles(third) == long_chat[-CHAT_PAGE_SIZE:]
    assert link(third, "next") == ""


@pytest.mark.parametrize(
    "query", ["?before=nonsense", "?after=-3", "?before=99999999999999999999", "?after=999999999"]
)
def test_a_place_that_cannot_be_meant_opens_the_newest_messages(browser: Client, query: str):
    message = said(chat())
    assert bubbles(page(browser, address(message.session, query))) == [message.pk]


def test_an_answer_stands_on_the_bots_side_with_the_run_behind_it(browser: Client):
    question = said(chat(), "how are you", state="answered", reason="mention")
    answer = answered(question, "fine")
    text = page(browser, address(question.session))
    bubble = text[text.index(f'id="m{answer.pk}"') :]
    assert 'class="said-by-bot tone-good"' in bubble[:60]
    assert "delivered" in bubble
    assert "the bot was mentioned" in text
    for clicked in (question, answer):
        text = page(browser, address(question.session, f"?panel=m{clicked.pk}"))
        assert f"/admin/agent/run/{answer.run_id}/change/" in text


def test_a_message_that_was_not_answered_says_why(browser: Client):
    message = said(chat(), reason="queue_full", state="failed", detail="21 were waiting")
    text = page(browser, address(message.session))
    assert "too many messages were waiting in this chat" in text
    assert text.count('class="failure') == 1
    assert "21 were waiting" in text


def test_a_decision_to_say_nothing_is_no_failure(browser: Client):
    message = said(
        chat(), reason="private", state="silent", detail="the model chose to stay silent"
    )
    text = page(browser, address(message.session))
    assert "silent</span>" in text
    assert '<span class="reason">the model chose to stay silent</span>' in text


def test_a_run_that_failed_is_shown_at_its_question(browser: Client):
    message = said(chat(), state="failed", reason="private")
    run = run_for(message, state="failed", error="the endpoint answered 401")
    assert "the endpoint answered 401" in page(browser, address(message.session))
    text = page(browser, address(message.session, f"?panel=m{message.pk}"))
    assert f"/admin/agent/run/{run.pk}/change/" in text


def test_what_users_say_is_text_and_never_markup(browser: Client):
    message = said(
        chat(title="<b>"),
        "<script>alert(1)</script>",
        sender_name="<i>",
        detail="<script>100%</script>",
    )
    text = page(browser, address(message.session, f"?panel=m{message.pk}"))
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "&lt;script&gt;100%&lt;/script&gt;" in text


def test_a_very_long_message_is_cut_with_a_link_to_all_of_it(browser: Client):
    message = said(chat(), "x" * 4_001)
    text = page(browser, address(message.session))
    assert "x" * 4_001 not in text
    assert "the whole text" in text


def test_a_new_day_is_announced(browser: Client):
    session = chat()
    for day in (1, 1, 2):
        Message.objects.filter(pk=said(session).pk).update(
            created_at=datetime(2026, 3, day, 12, tzinfo=UTC)
        )
    assert page(browser, address(session)).count('class="day"') == 2


@pytest.mark.parametrize("count", [1, CHAT_PAGE_SIZE])
def test_a_page_takes_the_same_queries_whatever_it_holds(
    browser: Client, django_assert_num_queries: DjangoAssertNumQueries, count: int
):
    session = chat()
    for _ in range(count):
        answered(said(session))
    page(browser, address(session))  # what Django remembers for good is asked here
    with django_assert_num_queries(
        18
    ):  # the login's four, the zone, the session, manners, members; messages, their runs, their
        # media, acts, events; of the chats beside it: rows, newest messages (two), what is under
        # way, approvals
        page(browser, address(session))


def test_an_answer_of_unknown_outcome_leaves_no_good_mark_at_its_question(browser: Client):
    message = said(chat(), state="answered", reason="mention")
    answered(message, state="unknown")
    text = page(browser, address(message.session))
    assert "answered, nobody knows whether it arrived" in text
    assert "tone-good" not in text
    run = Run.objects.get(message=message)
    assert "badge-answered" not in page(browser, f"/admin/agent/run/{run.pk}/change/")


def test_a_name_leads_to_the_person_and_an_odd_id_to_nothing(browser: Client):
    message = said(chat(), sender_id="20001")
    said(message.session, sender_id="a/b", sender_name="Odd")
    text = page(browser, address(message.session))
    assert 'href="/admin/people/20001/"' in text
    assert "Odd" in text

"""Lists: search, filters, and the bounds that keep them fast whatever the table holds."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from agent.models import Message
from tests.admin.record import answered, call_of, chat, page, run_for, said, step_of
from tools.admin import counted_lists, record_pages
from tools.admin.record_pages import first_id_since
from tools.models import ToolConfig

MESSAGES = "/admin/agent/message/"


def shown(browser: Client, address: str) -> list[int]:
    """The ids of the rows on a list's page, in order."""
    return [
        int(pk)
        for pk in re.findall(
            r'<(?:th class="field-\w+"|li id="c\d+"[^>]*)><a href="/admin/\w+/\w+/(\d+)/change/',
            page(browser, address),
        )
    ]


def test_messages_are_listed_newest_first(browser: Client):
    session = chat()
    pks = [said(session).pk for _ in range(3)]
    assert shown(browser, MESSAGES) == pks[::-1]


@pytest.mark.parametrize("query", ["mid-7", "20009", "800", "group:800"])
def test_a_message_is_found_by_its_id_its_sender_or_its_chat(browser: Client, query: str):
    wanted = said(chat("800"), message_id="mid-7", sender_id="20009")
    said(chat("801"))
    assert shown(browser, f"{MESSAGES}?q={query}") == [wanted.pk]


def test_a_message_is_found_by_its_number(browser: Client):
    wanted, other = said(chat()), said(chat("801"), message_id="1")
    assert shown(browser, f"{MESSAGES}?q=%23{wanted.pk}") == [wanted.pk]
    assert shown(browser, f"{MESSAGES}?q=1") == [other.pk]


def test_every_word_of_a_search_must_occur(browser: Client):
    session = chat()
    wanted = said(session, "上海 明天 天气")
    said(session, "上海")
    assert shown(browser, f"{MESSAGES}?q=天气+上海") == [wanted.pk]


def test_a_search_stays_within_the_filter(browser: Client):
    here, there = chat(), chat("801")
    wanted = said(here, "rain")
    said(there, "rain")
    said(here, "rain", state="answered")
    assert shown(
        browser, f"{MESSAGES}?q=rain&session__id__exact={here.pk}&state__exact=recorded"
    ) == [wanted.pk]


@pytest.mark.parametrize(
    "query", ["%00", "%27", "a%25b_c", "999999999999999999999999", "x+" * 2000]
)
def test_any_search_is_answered(browser: Client, query: str):
    said(chat())
    assert len(shown(browser, f"{MESSAGES}?q={query}")) <= 1


@pytest.mark.parametrize("query", ["state__exact=delivered", "direction__exact=out"])
def test_messages_are_filtered_by_what_became_of_them(browser: Client, query: str):
    wanted = answered(said(chat(), state="answered"))
    assert shown(browser, f"{MESSAGES}?{query}") == [wanted.pk]


def test_messages_are_filtered_by_the_reason(browser: Client):
    said(chat())
    wanted = said(chat("701"), reason="queue_full", state="failed")
    assert shown(browser, f"{MESSAGES}?reason__exact=queue_full") == [wanted.pk]


@pytest.mark.parametrize(
    ("period", "count"), [("today", 1), ("7d", 2), ("30d", 3), ("nonsense", 4)]
)
def test_messages_are_filtered_by_time(browser: Client, period: str, count: int):
    session = chat()
    pks = [said(session, days_ago=days).pk for days in (100, 20, 3, 0)]
    assert shown(browser, f"{MESSAGES}?since={period}") == pks[::-1][:count]


def test_the_first_row_since_a_time_is_found_among_gaps(browser: Client):
    session = chat()
    rows = [said(session, days_ago=days) for days in range(40, 0, -1)]
    Message.objects.filter(pk__in=[row.pk for row in rows[5:20]]).delete()
    for row in (rows[0], rows[3], rows[25], rows[-1]):
        assert first_id_since(Message, "created_at", row.created_at) <= row.pk
    found = Message.objects.filter(
        pk__gte=first_id_since(Message, "created_at", rows[20].created_at)
    )
    assert found.earliest("pk") == rows[20]
    assert (
        first_id_since(Message, "created_at", rows[-1].created_at.replace(year=2999)) > rows[-1].pk
    )


def test_a_condition_without_an_index_looks_at_the_newest_rows_only_and_says_so(
    browser: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(record_pages, "WINDOW", 2)
    session = chat()
    pks = [said(session, reason="too_old").pk for _ in range(4)]
    both = page(browser, f"{MESSAGES}?direction__exact=in&reason__exact=too_old")
    assert "only the newest 100,000 records" in both
    assert "2 messages" in both
    one = page(browser, f"{MESSAGES}?reason__exact=too_old")
    assert "only the newest" not in one
    assert shown(browser, f"{MESSAGES}?reason__exact=too_old") == pks[::-1]


def test_words_are_looked_for_in_the_newest_rows_only(
    browser: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(record_pages, "WINDOW", 3)
    monkeypatch.setattr(record_pages, "LISTED_WINDOW", 2)
    session = chat()
    pks = [said(session, "rain").pk for _ in range(6)]
    assert shown(browser, f"{MESSAGES}?q=rain") == pks[:-4:-1]
    assert shown(browser, f"{MESSAGES}?q=rain&session__id__exact={session.pk}") == pks[:-3:-1]


def test_a_long_list_is_not_counted_to_its_end_and_goes_on_by_id(
    browser: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(counted_lists, "COUNT_LIMIT", 100)
    session = chat()
    pks = [said(session).pk for _ in range(105)]
    last = page(browser, f"{MESSAGES}?p=2")
    assert "100+ messages" in last
    assert f"?id__lt={pks[5]}" in last
    assert shown(browser, f"{MESSAGES}?id__lt={pks[5]}") == pks[4::-1]


def test_no_list_counts_or_orders_without_a_bound(browser: Client):
    said(chat())
    with CaptureQueriesContext(connection) as queries:
        page(browser, f"{MESSAGES}?state__exact=recorded&o=4")
    counts = [q["sql"] for q in queries if "COUNT(" in q["sql"]]
    assert counts
    assert all("LIMIT 10001" in sql for sql in counts)
    assert all(
        'ORDER BY "agent_message"."id" DESC' in q["sql"]
        for q in queries
        if "text_excerpt" in q["sql"]
    )


@pytest.mark.parametrize(
    "query", ["q=rain", "q=rain&state__exact=recorded", "direction__exact=in&state__exact=recorded"]
)
def test_bounds_meet_in_one_condition_because_sqlite_walks_to_either_of_two(
    browser: Client, query: str
):
    said(chat(), "rain")
    with CaptureQueriesContext(connection) as queries:
        assert len(shown(browser, f"{MESSAGES}?since=7d&{query}")) == 1
    bounds = [q["sql"].count('"agent_message"."id" >=') for q in queries]
    assert max(bounds) == 1


def test_a_lookup_that_no_page_offers_is_refused(browser: Client):
    assert browser.get(f"{MESSAGES}?text__icontains=a").status_code == 400
    assert browser.get(f"{MESSAGES}?run__final_text__contains=a").status_code == 400


def test_a_wrong_value_leads_back_to_the_list(browser: Client):
    assert browser.get(f"{MESSAGES}?id__lt=abc").headers["Location"] == f"{MESSAGES}?e=1"


@pytest.mark.parametrize("record", ["message", "run", "step", "toolcall", "chatsession"])
def test_a_list_takes_as_many_queries_for_many_rows_as_for_one(
    browser: Client, django_assert_max_num_queries: DjangoAssertNumQueries, record: str
):
    for number in range(10):
        message = said(chat(str(number), account=str(number % 2)))
        call_of(step_of(run_for(message, error="bad")))
        answered(message)
    most = 15 if record == "chatsession" else 9  # the zone, last words (two), today, what it cost
    with django_assert_max_num_queries(most):
        page(browser, f"/admin/agent/{record}/")


def test_a_list_does_not_load_whole_texts_and_events(browser: Client):
    said(chat(), "a" * 5_000, raw={"big": "b" * 5_000})
    with CaptureQueriesContext(connection) as queries:
        assert "a" * 200 not in page(browser, MESSAGES)
    assert not [q for q in queries if '"agent_message"."raw"' in q["sql"]]


def test_sessions_are_found_by_peer_title_account_and_kind(browser: Client):
    wanted, other = (
        chat("900", title="爬山小分队", account="1"),
        chat("901", kind="private", account="2"),
    )
    sessions = "/admin/agent/chatsession/"
    assert (
        shown(browser, f"{sessions}?q=900") == shown(browser, f"{sessions}?q=爬山") == [wanted.pk]
    )
    assert (
        shown(browser, f"{sessions}?kind__exact=private")
        == shown(browser, f"{sessions}?account=2")
        == [other.pk]
    )
    assert shown(browser, f"{sessions}?since=today") == [other.pk, wanted.pk]


def test_runs_are_found_by_number_state_origin_and_words(browser: Client):
    wanted, runs = (
        run_for(state="failed", origin="http", error="no route to host"),
        "/admin/agent/run/",
    )
    run_for(final_text="fine")
    for query in (f"q=%23{wanted.pk}", "q=route+host", "state__exact=failed", "origin__exact=http"):
        assert shown(browser, f"{runs}?{query}") == [wanted.pk], query


def test_tool_calls_are_found_by_tool_run_and_result(browser: Client):
    ToolConfig.objects.create(name="get_weather")
    first = call_of(step_of(run_for()), result="晴朗")
    second = call_of(step_of(run_for()), "send_message")
    calls = "/admin/agent/toolcall/"
    assert (
        shown(browser, f"{calls}?tool=get_weather")
        == shown(browser, f"{calls}?q=晴朗")
        == [first.pk]
    )
    assert (
        shown(browser, f"{calls}?q=send_message")
        == shown(browser, f"{calls}?q=%23{second.run_id}")
        == [second.pk]
    )

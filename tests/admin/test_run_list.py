"""The list of runs: periods, columns, filters that are kept, and two runs side by side."""

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agent.models import ChatGrant, Run
from tests.admin.record import (
    answered,
    call_of,
    chat,
    logged_in,
    make_groups,
    page,
    run_for,
    said,
    step_of,
)
from tools.admin import kept_lists
from tools.models import KeptList

RUNS = "/admin/agent/run/"
ROW = re.compile(r'<th class="field-number"><a href="/admin/agent/run/(\d+)/change/')


def shown(browser: Client, **query: str) -> list[int]:
    return [int(pk) for pk in ROW.findall(page(browser, f"{RUNS}?{urlencode(query)}"))]


def day(ago: int) -> str:
    return (timezone.localdate() - timedelta(days=ago)).isoformat()


@pytest.fixture
def runs(db: None) -> list[Run]:
    """Of ten days, the oldest first."""
    now = timezone.now()
    made = [run_for() for _ in range(10)]
    for ago, run in enumerate(reversed(made)):
        Run.objects.filter(pk=run.pk).update(started_at=now - timedelta(days=ago))
    return made


def test_period_is_from_one_day_to_another(browser: Client, runs: list[Run]):
    pks = [run.pk for run in reversed(runs)]
    assert shown(browser, since=day(4), until=day(2)) == pks[2:5]
    assert shown(browser, since=day(2), until=day(4)) == pks[2:5]
    assert shown(browser, since=day(1)) == pks[:2]
    assert shown(browser, until=day(8)) == pks[8:]
    assert shown(browser, until=day(2), id__lt=str(pks[5])) == pks[6:]
    assert shown(browser, since=day(4), until=day(2), q=f"#{pks[6]}") == []


@pytest.mark.parametrize(
    "query",
    [
        {"since": "tomorrow", "until": "2026-13-40"},
        {"since": "0001-01-01", "until": "9999-12-31"},
        {"since": "2026-01-01' OR 1", "until": "\0"},
        {"since": "", "until": ""},
    ],
)
def test_what_names_no_day_is_no_bound(browser: Client, runs: list[Run], query: dict[str, str]):
    assert len(shown(browser, **query)) == 10


def test_period_in_force_is_named_and_can_be_taken_away(browser: Client, runs: list[Run]):
    text = page(browser, f"{RUNS}?since={day(4)}&until={day(2)}&state__exact=finished")
    words = f"{day(4)} – {day(2)}"
    assert re.search(rf'<a href="\?state__exact=finished"[^>]*>Time: {words} <', text)


def test_period_costs_one_query_for_each_end_however_many_rows_there_are(
    browser: Client, runs: list[Run]
):
    page(browser, RUNS)
    with CaptureQueriesContext(connection) as plain:
        page(browser, RUNS)
    with CaptureQueriesContext(connection) as narrowed:
        page(browser, f"{RUNS}?since={day(4)}&until={day(2)}")
    assert len(narrowed) == len(plain) + 2


def test_owner_of_a_chat_sees_its_runs_of_a_period_alone(db: None):
    owner, here, there = logged_in("chat_owner"), chat("700"), chat("701")
    mine, other = run_for(said(here)), run_for(said(there))
    grant(owner, "group:700")
    assert shown(owner, since=day(1), until=day(0)) == [mine.pk]
    assert owner.get(f"{RUNS}{other.pk}/change/").status_code != 200


def grant(owner: Client, key: str) -> None:
    ChatGrant.objects.create(user_id=owner.session["_auth_user_id"], account="10001", chat=key)


def test_columns_are_chosen_by_each_reader_and_outlast_a_sign_in(browser: Client, runs: list[Run]):
    assert "column-persona" in page(browser, RUNS)
    form = {"columns": "1", "column": ["answer", "started", "nonsense"], "query": "since=7d&p=2"}
    answer = browser.post(f"{RUNS}keep/", form)
    assert answer.headers["Location"] == "../?since=7d"
    again = Client(headers={"accept-language": "en"})
    again.force_login(browser_user(browser))
    text = page(again, RUNS)
    assert re.findall(r"column-(\w+)", text) == ["chosen", "number", "started", "answer"]
    assert "column-persona" in page(logged_in("viewer"), RUNS)


def browser_user(browser: Client):
    from django.contrib.auth.models import User

    return User.objects.get(pk=browser.session["_auth_user_id"])


def test_model_is_a_column_for_those_who_may_see_endpoints(browser: Client):
    run_for(said(chat()), model="secret-model")
    form = {"columns": "1", "column": ["model_name"]}
    owner = logged_in("chat_owner")
    grant(owner, "group:700")
    for client in (browser, owner):
        client.post(f"{RUNS}keep/", form)
    assert "secret-model" in page(browser, RUNS)
    text = page(owner, RUNS)
    assert len(ROW.findall(text)) == 1
    assert "secret-model" not in text


def test_conditions_are_kept_under_a_name_replaced_and_forgotten(browser: Client, runs: list[Run]):
    query = "state__exact=failed&since=7d"
    browser.post(f"{RUNS}keep/", {"name": " bad  ones ", "query": f"{query}&p=3&evil__gt=1"})
    assert f'<a href="?{query.replace("&", "&amp;")}"' in page(browser, RUNS)
    browser.post(f"{RUNS}keep/", {"name": "bad ones", "query": "since=30d"})
    assert list(KeptList.objects.values_list("name", "query")) == [("bad ones", "since=30d")]
    browser.post(f"{RUNS}keep/", {"forget": "bad ones"})
    assert not KeptList.objects.exists()


def test_name_that_somebody_else_has_is_another_filter(browser: Client, runs: list[Run]):
    viewer = logged_in("viewer")
    viewer.post(f"{RUNS}keep/", {"name": "mine", "query": "since=today"})
    browser.post(f"{RUNS}keep/", {"name": "mine", "query": "since=30d"})
    browser.post(f"{RUNS}keep/", {"forget": "others"})
    assert 'href="?since=30d"' in page(browser, RUNS)
    assert KeptList.objects.count() == 2


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"name": "", "query": "since=7d"}, "Give it a name"),
        ({"name": "n" * 65, "query": "since=7d"}, "Give it a name"),
        ({"name": "all", "query": "p=3"}, "no condition in force"),
        ({"name": "long", "query": "q=" + "x" * 1001}, "no condition in force"),
        ({"name": "third", "query": "since=7d"}, "forget one first"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_reason(
    browser: Client, runs: list[Run], monkeypatch: pytest.MonkeyPatch, form: dict, told: str
):
    monkeypatch.setattr(kept_lists, "MOST_KEPT", 2)
    for name in ("a", "b"):
        browser.post(f"{RUNS}keep/", {"name": name, "query": "since=7d"})
    assert told in browser.post(f"{RUNS}keep/", form, follow=True).content.decode()
    assert KeptList.objects.count() == 2


def test_name_of_a_kept_filter_is_harmless_on_the_page(browser: Client, runs: list[Run]):
    browser.post(f"{RUNS}keep/", {"name": "<b>\u202eevil\0", "query": "q=%3Cscript%3E"})
    text = page(browser, RUNS)
    assert "<b>" not in text
    assert "\u202e" not in text
    assert "<script>" not in text


def test_two_runs_stand_side_by_side_with_their_differences_marked(browser: Client):
    first = answered(said(chat()), "sunny").run
    assert first is not None
    call_of(step_of(first))
    second = run_for(said(chat("701")), persona="sage", final_text="rainy", input_tokens=7)
    text = page(browser, f"{RUNS}compare/?run={first.pk}&run={second.pk}")
    marked = re.findall(r'class="differs"><dt>(\w+)</dt><dd><mark>([^<]*)<', text)
    assert ("persona", "sage") in marked
    assert {label for label, _value in marked} == {"persona", "tools", "tokens", "steps"}
    assert "<dt>model</dt><dd>m1</dd>" in text
    for words in ("sunny", "rainy", "get_weather"):
        assert words in text


@pytest.mark.parametrize("query", ["", "run=1", "run=x&run=y", "run=1&run=1", "run=1&run=2&run=3"])
def test_other_than_two_runs_lead_back_to_the_list(browser: Client, query: str):
    answer = browser.get(f"{RUNS}compare/?{query}")
    assert (answer.status_code, answer.headers["Location"]) == (302, RUNS)


def test_run_out_of_reach_is_not_compared(db: None):
    make_groups()
    owner = logged_in("chat_owner")
    mine, other = run_for(said(chat("700"))), run_for(said(chat("701")))
    grant(owner, "group:700")
    twin = run_for(mine.message)
    assert owner.get(f"{RUNS}compare/?run={mine.pk}&run={twin.pk}").status_code == 200
    assert owner.get(f"{RUNS}compare/?run={mine.pk}&run={other.pk}").status_code == 404
    assert owner.get(f"{RUNS}compare/?run={mine.pk}&run=99999").status_code == 404

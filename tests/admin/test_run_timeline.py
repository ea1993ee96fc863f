"""The timeline of a run: bars by the times on record, and none where there is no time."""

from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone, translation

from agent.admin.runs.waterfall import WIDTH, build_waterfall, format_span
from agent.models import Approval, Run
from agent.pages.run_facts import load_run_rows
from tests.admin.record import answered, call_of, chat, page, run_for, said, step_of

ALL = frozenset({"step", "toolcall", "message", "approval"})
BEGAN = timezone.now() - timedelta(minutes=30)


def after(seconds: float) -> Any:
    return BEGAN + timedelta(seconds=seconds)


def bars(run: Run) -> dict[str, Any]:
    run.refresh_from_db()
    with translation.override("en"):
        drawn = build_waterfall(load_run_rows(run, ALL), after(60))["bars"]
    return {bar["span"].label: bar for bar in drawn}


def timed_run(**fields: Any) -> Run:
    """Received at 0 s, begun at 1 s, over at 10 s."""
    message = said(chat(), reason="mention")
    type(message).objects.filter(pk=message.pk).update(created_at=BEGAN)
    run = run_for(message, **fields)
    Run.objects.filter(pk=run.pk).update(started_at=after(1), finished_at=after(10))
    return run


def test_bars_stand_where_the_record_says(db: None):
    run = timed_run()
    step = step_of(run, latency_ms=2_000)
    type(step).objects.filter(pk=step.pk).update(created_at=after(4))
    calls = [call_of(step, f"tool{at}", position=at, duration_ms=1_000) for at in range(2)]
    type(calls[0]).objects.filter(run=run).update(created_at=after(4))
    found = bars(run)
    places = {label: (bar["x"], bar["width"], bar["took"]) for label, bar in found.items()}
    assert places["waited for its turn"] == (0, 100, "1.00 s")
    assert places["media and context"] == (100, 100, "1.00 s")
    assert places["step 1: model"] == (200, 200, "2.00 s")
    assert places["tool0"] == (400, 100, "1.00 s")
    assert places["tool1"] == (500, 100, "1.00 s")
    assert found["received, decided"]["span"].note == "the bot was mentioned"


def test_a_call_without_an_end_on_record_is_a_mark_and_says_so(browser: Client):
    run = timed_run(state="interrupted")
    call_of(step_of(run), "render", state="unknown")
    bar = bars(run)["render"]
    assert bar["is_mark"]
    assert bar["span"].is_bad
    assert "no end on record" in page(browser, f"/admin/agent/run/{run.pk}/change/")


def test_an_approval_of_the_next_day_does_not_flatten_the_run(db: None):
    run = timed_run()
    step = step_of(run)
    type(step).objects.filter(pk=step.pk).update(created_at=after(4))
    call = call_of(step, "pay", state="pending")
    type(call).objects.filter(pk=call.pk).update(created_at=after(5))
    times: dict[str, Any] = {
        "created_at": after(5),
        "decided_at": after(90_000),
        "expires_at": after(90_000),
    }
    assert run.session is not None
    Approval.objects.create(call=call, session=run.session, code="1", state="approved", **times)
    found = bars(run)
    assert found["an owner is asked"]["took"] == "24 h 59 min"
    assert found["waited for its turn"]["width"] >= WIDTH // 100


def test_inner_runs_and_messages_link_to_where_more_is_known(browser: Client):
    outer = answered(said(chat()), "done").run
    assert outer is not None
    inner = run_for(outer.message, parent=call_of(step_of(outer), "use_subagent"), origin="agent")
    text = page(browser, f"/admin/agent/run/{outer.pk}/change/")
    assert text.count(f'href="/admin/agent/run/{inner.pk}/change/"') == 2
    sent = outer.messages.get()
    assert f'href="#sent-{sent.pk}"' in text
    assert f'id="sent-{sent.pk}"' in text
    assert "style=" not in text.partition("<main")[2]


def test_spans_are_written_as_people_read_them():
    spans = (0.34, 2.306, 200, 3_725)
    assert [format_span(timedelta(seconds=one)) for one in spans] == [
        *("340 ms", "2.31 s", "3 min 20 s", "1 h 2 min")
    ]


# --- What was sent ------------------------------------------------------------------


def test_the_second_step_counts_what_is_new_and_shows_the_whole_on_demand(browser: Client):
    run = run_for(said(chat()))
    first = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}]
    step_of(run, 1, request=first, parameters="{}", model="m")
    step_of(run, 2, request=[{"role": "tool", "content": "42"}], parameters="{}", model="m")
    path = f"/admin/agent/run/{run.pk}/change/"
    text = page(browser, path)
    assert "1 more message, 3 in all" in text
    assert "14 characters" in text
    assert text.count("be kind") == 1
    whole = page(browser, f"{path}?whole=2")
    assert whole.count("be kind") == 2
    assert page(browser, f"{path}?whole=2;DROP").count("be kind") == 1


def test_messages_that_had_no_room_are_counted(browser: Client):
    run = run_for(said(chat()))
    request = [{"role": "user", "content": str(number)} for number in range(5)]
    step_of(run, request=request, parameters="{}", sent='[{"role": "user", "content": "4"}]')
    text = page(browser, f"/admin/agent/run/{run.pk}/change/")
    assert "4 older messages were left out" in text


def test_a_page_that_is_still_as_it_is_known_is_not_sent_again(browser: Client):
    run = run_for(said(chat()), state="running")
    path = f"/admin/agent/run/{run.pk}/change/"
    text = page(browser, path)
    assert f'data-live="run:{run.pk}"' in text
    known = text.partition("?known=")[2].partition('"')[0]
    by_htmx = {"HX-Request": "true"}
    assert browser.get(f"{path}?known={known}", headers=by_htmx).status_code == 204
    step_of(run)
    assert browser.get(f"{path}?known={known}", headers=by_htmx).status_code == 200
    Run.objects.filter(pk=run.pk).update(state="finished")
    assert "data-live" not in page(browser, path)

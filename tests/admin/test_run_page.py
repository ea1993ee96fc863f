"""A run on one page: why, what the model was sent and said, what the tools did, what went out."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from agent.models import Approval, Run, ToolCall, ToolOffer
from tests.admin.record import (
    ENGLISH,
    answered,
    call_of,
    chat,
    logged_in,
    page,
    run_for,
    said,
    step_of,
)

CALLS = [
    {
        "id": "c1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city": "上海"}'},
    }
]


def address(run: Run | None) -> str:
    assert run is not None
    return f"/admin/agent/run/{run.pk}/change/"


def test_a_run_shows_what_it_answers_and_why(browser: Client):
    message = said(chat(), "天气？", state="answered", reason="wake_word")
    text = page(browser, address(run_for(message, notes=["pictures were left out"])))
    for expected in ("天气？", "a wake word was said", "pictures were left out", f"#m{message.pk}"):
        assert expected in text


def test_a_step_shows_request_answer_tokens_and_latency(browser: Client):
    run = run_for()
    step_of(
        run,
        request=[
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "一行\n二行"},
        ],
        response={"role": "assistant", "content": "好"},
        input_tokens=37,
        output_tokens=5,
        latency_ms=1234,
        tools=["send_message"],
    )
    text = page(browser, address(run))
    for expected in (
        "Be kind.",
        "一行\n二行",
        "好",
        "37 tokens in, 5 out",
        "1234 ms",
        "2 messages",
        "1 tool offered",
        "send_message",
    ):
        assert expected in text


def test_the_steps_of_the_timing_gate_are_marked(browser: Client):
    run = run_for(said(chat(), state="silent", detail="the model chose to stay silent"))
    step_of(run, 1, phase="timing")
    text = page(browser, address(run))
    assert text.count('<span class="badge badge-timing">timing gate</span>') == 1
    assert '<p class="verdict">the model chose to stay silent</p>' in text
    step_of(run, 2)
    assert page(browser, address(run)).count("badge-timing") == 1
    assert "timing gate" in page(browser, "/admin/agent/step/")


def test_a_tool_call_stands_in_its_step_with_all_that_came_of_it(browser: Client):
    step = step_of(run_for(), response={"role": "assistant", "content": None, "tool_calls": CALLS})
    call_of(
        step,
        arguments={"city": "上海"},
        result="晴朗",
        duration_ms=42,
        mocked=True,
        requested_by="20001",
    )
    text = page(browser, address(step.run))
    for expected in (
        "get_weather",
        "&quot;city&quot;: &quot;上海&quot;",
        "晴朗",
        "42 ms",
        "asked for by 20001",
        "badge-mock",
    ):
        assert expected in text
    assert text.count("&quot;city&quot;") == 1


def test_calls_that_were_never_recorded_are_shown_as_the_model_asked_for_them(browser: Client):
    step = step_of(run_for(), response={"role": "assistant", "content": None, "tool_calls": CALLS})
    text = page(browser, address(step.run))
    assert "calls get_weather" in text
    assert "&quot;city&quot;: &quot;上海&quot;" in text


def test_messages_are_shown_with_their_outcome_at_the_call_that_sent_them(browser: Client):
    answer = answered(said(chat()), "done", state="unknown", detail="no word from the client")
    assert answer.run is not None
    call = call_of(step_of(answer.run), "send_message", call_id="c2")
    answered(said(chat("701")), "half way", run=answer.run, tool_call=call)
    text = page(browser, address(answer.run))
    sent_by_call, sent_at_the_end = text.split("<h2>Messages sent</h2>")
    assert "half way" in sent_by_call
    assert "half way" not in sent_at_the_end
    assert "no word from the client" in sent_at_the_end


def test_a_run_without_a_chat_shows_its_final_answer(browser: Client):
    text = page(browser, address(run_for(origin="http", final_text="forty-two")))
    assert "forty-two" in text
    assert "No model call is on record." in text


ODD_VALUES: tuple[object, ...] = (
    7,
    "text",
    [],
    {},
    [None],
    [{"role": 3, "content": {"a": 1}}],
    {"content": [{"text": 1}, "x", None]},
    [{"tool_calls": ["x", {}, {"function": {"name": 1, "arguments": "{"}}]}],
    {"content": "\ud800"},
)


def test_no_recorded_value_breaks_the_page(browser: Client):
    for value in ODD_VALUES:
        run = run_for(notes=["\ud800", value], error="bad")
        step = step_of(run, request=value, response=value, tools=[value])
        call_of(step, arguments=value, result="r", error="e")
        assert "Step 1" in page(browser, address(run))


@pytest.mark.parametrize("count", [1, 8])
def test_a_page_takes_the_same_queries_whatever_it_holds(
    browser: Client, django_assert_num_queries: DjangoAssertNumQueries, count: int
):
    run = run_for(said(chat(), in_history=True))
    for number in range(count):
        call_of(step_of(run, number))
    page(browser, address(run))  # what Django remembers for good is asked here
    with django_assert_num_queries(
        15
    ):  # login (4), time zone, run, message, what is merged into it, calls, runs inside and later,
        # approvals, steps, what it sent
        page(browser, address(run))


# --- Runs of agents -----------------------------------------------------------------


def test_a_call_that_set_an_agent_to_work_and_the_agents_run_link_to_each_other(browser: Client):
    call = call_of(step_of(run_for(said(chat()))), "use_subagent")
    inner = run_for(call.run.message, parent=call, origin="agent", state="interrupted")
    assert f'href="{address(inner)}"' in page(browser, address(call.run))
    text = page(browser, address(inner))
    for expected in (
        "another agent",
        "use_subagent",
        f'href="{address(call.run)}"',
        f"/admin/agent/toolcall/{call.pk}/change/",
    ):
        assert expected in text
    assert f'href="{address(inner)}"' in page(browser, f"/admin/agent/toolcall/{call.pk}/change/")


def test_what_an_agents_tool_sent_is_shown_at_its_call(browser: Client):
    outer = answered(said(chat()), "done").run
    assert outer is not None
    inner = run_for(outer.message, parent=call_of(step_of(outer), "use_subagent"), origin="agent")
    call = call_of(step_of(inner), "send_message")
    answered(said(chat("701")), "half way", run=outer, tool_call=call)
    text = page(browser, address(inner))
    assert "half way" in text
    assert "done" not in text
    assert "<h2>Messages sent</h2>" not in text


def test_a_run_of_an_agent_shows_nothing_of_its_call_to_whoever_may_not_see_calls(db: None):
    call = call_of(step_of(run_for()), "use_subagent")
    inner = run_for(parent=call, origin="agent")
    only_runs = User.objects.create_user("runs", is_staff=True)
    only_runs.user_permissions.add(
        *Permission.objects.filter(codename__in=("view_run", "view_every_chat"))
    )
    browser = Client(headers=ENGLISH)
    browser.force_login(only_runs)
    assert "use_subagent" not in page(browser, address(inner))


def test_the_page_of_a_chat_shows_the_run_of_the_message(browser: Client):
    message = said(chat(), state="answered")
    run = run_for(message)
    text = page(
        browser, f"/admin/agent/chatsession/{message.session_id}/change/?panel=m{message.pk}"
    )
    assert address(run) in text


# --- Calls whose outcome came later ---------------------------------------------------


def call_page(call: ToolCall) -> str:
    return f"/admin/agent/toolcall/{call.pk}/change/"


def test_a_call_and_the_later_run_that_tells_its_outcome_link_to_each_other(browser: Client):
    call = call_of(
        step_of(run_for(said(chat()))),
        "render",
        state="succeeded",
        progress="half <done>",
        result="Rendered.",
    )
    later = run_for(
        said(
            chat("701"),
            state="answered",
            reason="later_result",
            tool_call=call,
            event_key="later:1",
        )
    )
    for text in (page(browser, address(call.run)), page(browser, call_page(call))):
        assert "half &lt;done&gt;" in text
        assert f'href="{address(later)}"' in text
    text = page(browser, address(later))
    assert "tells the outcome of" in text
    for link in (call_page(call), address(call.run)):
        assert f'href="{link}"' in text


def test_a_call_that_waits_for_an_owner_links_to_the_question(browser: Client):
    session = chat()
    call = call_of(step_of(run_for(said(session))), "transfer", state="pending")
    approval = Approval.objects.create(
        call=call,
        session=session,
        code="482913",
        created_at=timezone.now(),
        expires_at=timezone.now(),
    )
    for text in (page(browser, address(call.run)), page(browser, call_page(call))):
        assert f'href="/admin/agent/approval/{approval.pk}/change/"' in text
        assert "482913" in text


def test_a_result_that_was_cut_is_whole_on_the_page_of_its_call(browser: Client):
    call = call_of(step_of(run_for()), result="霜…", full_result="霜" * 30_000)
    text = page(browser, call_page(call))
    assert "30,000 characters" in text
    assert "霜" * 30_000 in text


def test_an_outcome_that_is_told_later_is_nobodys_words_in_the_chat(browser: Client):
    call = call_of(step_of(run_for()), "render")
    message = said(chat(), "[工具结果: render]", reason="later_result", tool_call=call)
    text = page(
        browser, f"/admin/agent/chatsession/{message.session_id}/change/?panel=m{message.pk}"
    )
    assert f'href="{call_page(call)}"' in text
    assert "sent by the tool" not in text
    assert "said-by-person" not in text


def test_a_step_shows_whom_it_asked_at_what_price_and_what_the_model_thought(browser: Client):
    run = run_for(persona="Frosty", config_version=7)
    attempt = {"endpoint": "first", "model": "m0", "reason": "is down", "milliseconds": 9}
    thought = {"role": "assistant", "content": "42", "reasoning_content": "six times seven"}
    step_of(
        run,
        response=thought,
        endpoint_name="main",
        model="m1",
        attempts=[attempt],
        cost_nano=1_500_000,
        currency="CNY",
        cached_tokens=3,
        parameters='{"top_p": 0.5}',
        sent="[{}]",
    )
    text = page(browser, address(run))
    for expected in ("main · m1", "first · m0 · 9 ms", "is down", "six times seven", "&lt;¥0.01"):
        assert expected in text
    for expected in ("3 cached", "top_p", "Really sent: 1 message", "Frosty", "config version"):
        assert expected in text


def test_a_call_shows_what_was_decided_and_by_whom(browser: Client):
    run = run_for()
    call_of(step_of(run), verdict="not_permitted", decided_by="#3 pay")
    assert "refused: not permitted (#3 pay)" in page(browser, address(run))


def test_the_request_of_a_step_can_be_downloaded_as_it_was_sent(browser: Client):
    offer = ToolOffer.objects.create(digest="d", definitions=['{"name":"f","description":""}'])
    fields: dict[str, Any] = {"offer": offer, "parameters": '{"n":1}', "model": "m"}
    step = step_of(run_for(), request=[{"role": "user", "content": "一"}], **fields)
    answer = browser.get(f"/admin/agent/step/{step.pk}/request/")
    assert answer.content.decode().startswith('{"model":"m","messages":[{"role":"user"')
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert browser.get(f"/admin/agent/step/{step_of(run_for()).pk}/request/").status_code == 404


def test_the_request_of_a_step_is_not_for_those_who_may_not_see_steps(browser: Client):
    step = step_of(run_for(), parameters="{}")
    user = User.objects.create_user("low", password="low", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_every_chat"))
    low = Client()
    low.force_login(user)
    assert low.get(f"/admin/agent/step/{step.pk}/request/").status_code == 403


def test_a_running_answer_can_be_cancelled_by_who_may_speak(browser: Client):
    message = said(chat(), state="running", reason="mention")
    run = run_for(message, state="running")
    target = f"/admin/agent/chatsession/{message.session_id}/act/cancel/{message.pk}/"
    assert target in page(browser, address(run))
    Run.objects.filter(pk=run.pk).update(state="finished")
    assert target not in page(browser, address(run))
    Run.objects.filter(pk=run.pk).update(state="running")
    assert target not in page(logged_in("viewer"), address(run))


def test_later_steps_of_a_long_run_are_folded_and_shown_when_they_are_asked_for(browser: Client):
    run = run_for(said(chat()))
    for number in range(1, 15):
        step = step_of(run, number, request=[{"role": "tool", "content": f"result {number}."}])
        call_of(step, f"tool_{number}")
    path = f"/admin/agent/run/{run.pk}/change/"
    text = page(browser, path)
    assert "result 10." in text
    assert "result 11." not in text
    assert "tool_14" in text.partition('<details class="module step folded"')[2]
    opened = page(browser, f"{path}?step=13")
    assert "1 more message, 13 in all" in opened
    assert [f"result {number}." in opened for number in (12, 13, 14)] == [False, True, False]


def test_a_run_that_goes_on_shows_all_of_its_steps(browser: Client):
    run = run_for(said(chat()), state="running")
    for number in range(1, 13):
        step_of(run, number, request=[{"role": "tool", "content": f"result {number}."}])
    assert "result 12." in page(browser, f"/admin/agent/run/{run.pk}/change/")

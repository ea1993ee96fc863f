"""The HTTP addresses for programs: health, readiness, and stateless questions to the agent."""

import asyncio
import json
import re
import socket
from typing import Any

import pytest
import requests

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.e2e.chat import client
from tests.environment import PATIENCE
from tests.fake_onebot import spoken
from tests.live_server import LiveServer, free_port
from tests.scripted_model import call, fails, hangs, held, returns, says
from tools.version import VERSION

SECRET = "sk-upstream-secret"
PROMPT = "你是一个乐于助人的助手。"


def http(server: LiveServer, method: str, path: str, **options: Any) -> requests.Response:
    """One request past every proxy setting of the machine."""
    with requests.Session() as session:
        session.trust_env = False
        return session.request(
            method, server.url + path, timeout=PATIENCE, allow_redirects=False, **options
        )


def query(
    server: LiveServer, body: Any, *, token: str | None = TOKEN, **headers: str
) -> requests.Response:
    """``POST /agent/query`` with ``body`` as JSON, bytes as they are."""
    bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return http(
        server,
        "POST",
        "/agent/query",
        data=data,
        headers={"Content-Type": "application/json", **bearer, **named},
    )


def roles(messages: list[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in messages]


# --- Health ---------------------------------------------------------------------


def test_health_and_readiness_are_told_without_a_token(live):
    before = len(live.log)  # tests of other addresses that end so may be before it
    health, ready = http(live, "GET", "/health"), http(live, "GET", "/ready")
    assert (health.status_code, health.json()["status"]) == (200, "ok")
    assert health.json()["version"] == VERSION
    assert (ready.status_code, ready.json()["status"]) == (200, "ok")
    assert health.headers["Content-Type"].startswith("application/json")
    assert http(live, "GET", "/health/none").status_code == 404
    log = live.log[before:]
    assert "/health/none" in log
    assert not re.search(r"(/health|/ready)\b(?!/none)", log)


def test_a_server_without_its_database_or_channel_layer_serves_and_says_what_is_missing(
    start_server,
):
    server = start_server(REDIS_URL=f"redis://127.0.0.1:{free_port()}/0")
    layer_gone = http(server, "GET", "/ready")
    assert (layer_gone.status_code, layer_gone.json()["missing"]) == (503, ["channel layer"])
    (server.data_dir / "frostagent.sqlite3").rename(server.data_dir / "elsewhere")
    both_gone = http(server, "GET", "/ready")
    assert (both_gone.status_code, both_gone.json()["missing"]) == (
        503,
        ["database", "channel layer"],
    )
    assert http(server, "GET", "/health").status_code == 200


def test_the_root_leads_to_the_admin(live):
    answer = http(live, "GET", "/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")
    login = http(live, "GET", "/admin/")
    assert login.status_code == 302
    assert http(live, "GET", login.headers["Location"]).status_code == 200


# --- Questions ------------------------------------------------------------------


def test_a_question_is_answered(live, model):
    model.script(["42"])
    answer = query(live, {"input": "what is it?"})
    assert (answer.status_code, answer.json()["result"]) == (200, "42")
    (request,) = model.requests
    assert request.messages == [
        {"role": "system", "content": PROMPT},
        {"role": "user", "content": "what is it?"},
    ]


def test_a_conversation_is_continued_and_the_input_comes_last(live, model):
    model.script(["Ann"])
    messages = [{"role": "user", "content": "I am Ann"}, {"role": "assistant", "content": "hello"}]
    assert query(live, {"messages": messages, "input": "who am I?"}).json()["result"] == "Ann"
    sent = model.requests[0].messages
    assert sent[1:] == [*messages, {"role": "user", "content": "who am I?"}]
    assert roles(sent) == ["system", "user", "assistant", "user"]


def test_a_system_message_of_the_callers_own_takes_the_personas_place(live, model):
    model.script(["arr"])
    messages = [
        {"role": "system", "content": "You are a pirate."},
        {"role": "user", "content": "hi"},
    ]
    assert query(live, {"messages": messages}).status_code == 200
    assert model.requests[0].messages == messages


def test_a_question_has_the_tools_that_need_no_chat(live, model):
    model.script([call("get_weather", city="北京"), "sunny"])
    assert query(live, {"input": "weather?"}).json()["result"] == "sunny"
    first, second = model.requests
    assert {"get_weather", "get_game_version", "use_subagent"} <= set(first.tool_names)
    assert "send_message" not in first.tool_names
    assert second.last_text == "北京 的天气是晴朗，温度 25°C"


def test_send_message_is_not_callable_without_a_chat(live, model):
    model.script([call("send_message", messages=[{"type": "plain", "text": "x"}]), "ok"])
    assert query(live, {"input": "send it"}).status_code == 200
    assert model.requests[1].last_text.splitlines()[0] == "Tool not found: send_message"


def test_questions_know_nothing_of_each_other(live, model):
    model.script(["noted", "who?"])
    query(live, {"input": "I am Ann"})
    query(live, {"input": "who am I?"})
    assert "Ann" not in json.dumps(model.requests[1].messages)


def test_an_empty_answer_is_asked_for_once_more_and_then_a_failure(live, model):
    model.script([says(None), "hello", says(None), says(None)])
    answer, failure = query(live, {"input": "hi"}), query(live, {"input": "hi"})
    assert (answer.status_code, answer.json()["result"]) == (200, "hello")
    assert (failure.status_code, failure.json()["result"]) == (502, "")


def test_a_run_that_never_ends_is_ended_with_fixed_words(contrary, model):
    model.script([call("get_weather", city="a"), call("get_weather", city="b")])
    answer = query(contrary, {"input": "hi"}, token=None)
    assert (answer.status_code, answer.json()["result"]) == (
        200,
        "达到最大迭代次数，未能得出最终答案",
    )


def test_a_question_is_on_record(live, model):
    model.script(["42"])
    run = query(live, {"input": "what is it?"}).json()["run"]
    (row,) = live.rows("SELECT * FROM agent_run WHERE id = ?", run)
    assert (row["origin"], row["state"], row["final_text"], row["session_id"]) == (
        "http",
        "finished",
        "42",
        None,
    )


async def test_a_chat_is_answered_while_a_question_waits(live, model):
    model.script([held("slow"), "quick"])
    waiting = asyncio.create_task(asyncio.to_thread(query, live, {"input": "think hard"}))
    await model.wait_for_requests(1)
    async with client(live) as bot:
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "quick"
    model.release()
    assert (await waiting).json()["result"] == "slow"


# --- Refusals -------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"\xff\xfe",
        b"[" * 100_000,
        [],
        None,
        "hi",
        {},
        {"input": ""},
        {"input": "  "},
        {"input": None, "messages": None},
        {"input": 5},
        {"messages": []},
        {"messages": "hi"},
        {"messages": [None]},
        {"messages": ["hi"]},
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "user", "content": 5}]},
        {"messages": [{"role": "tool", "content": "x", "tool_call_id": "c"}]},
        {"messages": [{"role": "wizard", "content": "x"}]},
        {"messages": [{"role": "user", "content": "x"}] * 1_001},
        {"input": "hi", "numbers": [7] * 10_001},
        {"input": "hi", "numbers": [7.5] * 10_001},
    ],
)
def test_what_is_no_question_is_refused_with_a_reason(live, model, body):
    answer = query(live, body)
    assert answer.status_code == 400
    assert answer.json()["result"] == ""
    assert answer.json()["error"]


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN.upper(), f"{TOKEN}x"])
def test_a_missing_or_wrong_token_is_refused(live, model, token):
    answer = query(live, {"input": "hi"}, token=token)
    assert (answer.status_code, answer.json()["result"]) == (401, "")


def test_a_thousand_messages_are_a_question(live, model):
    model.script(["so long"])
    messages = [{"role": "user", "content": "x"}] * 1_000
    assert query(live, {"messages": messages}).json()["result"] == "so long"


def test_the_scheme_of_the_token_may_be_written_in_any_case(live, model):
    model.script(["ok"])
    assert (
        query(live, {"input": "hi"}, token=None, Authorization=f"bearer {TOKEN}").status_code == 200
    )


def test_without_a_configured_token_programs_of_this_machine_may_ask(contrary, model):
    model.script(["ok"])
    assert query(contrary, {"input": "hi"}, token=None).json()["result"] == "ok"


@pytest.mark.parametrize("header", ["X_Forwarded_For", "Forwarded", "Via"])
def test_without_a_configured_token_nobody_may_ask_through_a_proxy(contrary, model, header):
    answer = query(contrary, {"input": "hi"}, token=None, **{header: "for=127.0.0.1"})
    assert (answer.status_code, answer.json()["result"]) == (401, "")


def test_without_a_configured_token_no_web_page_may_ask(contrary, model):
    assert (
        query(contrary, {"input": "hi"}, token=None, Origin="https://evil.example").status_code
        == 401
    )
    assert query(
        contrary, {"input": "hi"}, token=None, Host="evil.example", Origin="http://evil.example"
    ).status_code in (
        400,
        401,
    )


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_another_method_is_refused(live, model, method):
    answer = http(live, method, "/agent/query", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 405


def test_a_body_without_end_is_refused(live, model):
    assert query(live, b"x" * (5 * 2**20)).status_code == 413


def test_a_request_that_is_broken_off_harms_nobody(live, model):
    before = len(live.log)
    with socket.create_connection(("127.0.0.1", live.port)) as line:
        line.sendall(
            f"POST /agent/query HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
            f"{TOKEN}\r\nContent-Length: 99\r\n\r\n{{".encode()
        )
    model.script(["ok"])
    assert query(live, {"input": "hi"}).json()["result"] == "ok"
    assert "Traceback" not in live.log[before:]


# --- A model that fails ---------------------------------------------------------


@pytest.mark.parametrize(
    "failure",
    [
        fails(400, message=SECRET),
        fails(401, message=SECRET),
        returns(SECRET.encode()),
        returns({"error": {"message": SECRET}}),
    ],
    ids=["400", "401", "no JSON", "an error in a 200"],
)
def test_a_failure_of_the_model_is_a_502_that_leaks_nothing(live, model, failure):
    model.script([failure])
    answer = query(live, {"input": "hi"})
    assert (answer.status_code, answer.json()["result"]) == (502, "")
    assert answer.json()["error"]
    assert SECRET not in answer.text


def test_a_model_that_says_nothing_is_a_502_after_its_time(contrary, model):
    model.script([hangs()])
    assert query(contrary, {"input": "hi"}, token=None).status_code == 502


def test_a_passing_failure_is_tried_again(live, model):
    model.script([fails(429, retry_after=0.01), "at last"])
    assert query(live, {"input": "hi"}).json()["result"] == "at last"

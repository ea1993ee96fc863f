"""The model client against a real HTTP server: what it asks, what it retries, and what it makes of
failure."""

import asyncio
import contextlib
import gc
import json
import math
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.client.client import OpenAIClient
from agent.llm.client.connections import EndpointConnections
from agent.llm.client.transport import compute_retry_pause, parse_retry_after, split_endpoint
from agent.llm.errors.failures import FailedTry
from agent.llm.requests.base import LLMRequest
from tests.live_server import free_port
from tests.scripted_model import call, drops, fails, hangs, held, returns, says

HELLO = LLMRequest([{"role": "user", "content": "hello"}])
AT_ONCE = 0.01
"""A Retry-After that costs the suite nothing."""


@pytest.fixture
async def connect(model) -> AsyncIterator[Callable[..., OpenAIClient]]:
    """Make clients of the scripted model: ``connect(endpoint="…", api_key="…",
    timeout_seconds=…)``."""
    clients = []

    def connect(
        endpoint: str = model.url, api_key: str = "sk-test", timeout_seconds: float = 10
    ) -> OpenAIClient:
        clients.append(
            OpenAIClient(
                Endpoint(
                    endpoint,
                    (api_key,) if api_key else (),
                    "scripted",
                    timeout_seconds=timeout_seconds,
                )
            )
        )
        return clients[-1]

    yield connect
    for client in clients:
        await client.close()


# --- What is asked ------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", "/", "/chat/completions", "/chat/completions/"])
async def test_an_endpoint_is_asked_with_or_without_its_full_path(model, connect, suffix):
    model.script(["hi"])
    assert (await connect(model.url + suffix).complete(HELLO)).text == "hi"
    assert model.requests[0].path == "/v1/chat/completions"


def test_the_query_of_an_endpoint_is_kept():
    assert split_endpoint("https://h/openai/v1/chat/completions?api-version=7&x=") == (
        "https://h/openai/v1",
        {"api-version": "7"},
    )
    assert split_endpoint("http://h:8080") == ("http://h:8080", {})


async def test_the_key_is_a_bearer_token_and_nothing_is_sent_without_one(model, connect):
    model.script(["a", "b"])
    await connect(api_key="sk-1").complete(HELLO)
    await connect(api_key="").complete(HELLO)
    assert [request.headers.get("authorization") or "" for request in model.requests] == [
        "Bearer sk-1",
        "",
    ]


async def test_messages_go_out_as_they_are_and_tools_as_functions(model, connect):
    model.script([call("f", a=1)])
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    tools: list[dict[str, Any]] = [
        {"name": "f", "description": "does f", "parameters_schema": schema},
        {"name": "g", "description": ""},
    ]
    response = await connect().complete(LLMRequest(HELLO.messages, tools))
    assert model.requests[0].body == {
        "model": "scripted",
        "messages": HELLO.messages,
        "tools": [
            {
                "type": "function",
                "function": {"name": "f", "description": "does f", "parameters": schema},
            },
            {
                "type": "function",
                "function": {"name": "g", "description": "", "parameters": NO_PARAMETERS},
            },
        ],
    }
    assert (response.tool_calls[0].name, response.tool_calls[0].arguments) == ("f", '{"a": 1}')


NO_PARAMETERS = {"type": "object", "properties": {}, "required": []}


async def test_runs_that_come_first_at_once_share_the_connections(model, connect, monkeypatch):
    opened, real = [], EndpointConnections.open

    async def opening() -> EndpointConnections:
        opened.append(await real())
        return opened[-1]

    monkeypatch.setattr(EndpointConnections, "open", opening)
    model.answer_with(lambda _request: says("hi"))
    client = connect()
    await asyncio.gather(*(client.complete(HELLO) for _ in range(5)))
    assert len(opened) == 1


async def test_what_was_asked_is_not_held_while_the_answer_is_awaited(connect):
    reached, mark = asyncio.Event(), f"the question at {time.monotonic()}"

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        assert mark.encode() in await reader.readexactly(length)
        reached.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
        client = connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        request = LLMRequest([{"role": "user", "content": mark}])
        asking = asyncio.create_task(client.complete(request))
        await reached.wait()
        assert not asking.done()
        assert [one for one in find_bytes() if one.startswith(b"{") and mark.encode() in one] == []
        asking.cancel()


def find_bytes() -> list[bytes]:
    """Those that an object of the process refers to, or a coroutine on its way."""
    found: list[object] = []
    for one in gc.get_objects():
        found += gc.get_referents(one)
    return [one for one in found if isinstance(one, bytes)]


async def test_no_tools_are_named_where_there_are_none(model, connect):
    model.script(["hi"])
    await connect().complete(HELLO)
    assert "tools" not in model.requests[0].body


# --- What is tried again ------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_a_passing_failure_is_tried_again(model, connect, status):
    model.script(
        [fails(status, retry_after=AT_ONCE), fails(status, retry_after=AT_ONCE), "at last"]
    )
    assert (await connect().complete(HELLO)).text == "at last"


async def test_a_lost_connection_is_tried_again(model, connect):
    model.script([drops(), "at last"])
    assert (await connect().complete(HELLO)).text == "at last"


async def test_the_endpoint_says_how_long_to_wait(model, connect):
    model.script([fails(429, retry_after=0.4), "at last"])
    started = time.monotonic()
    await connect().complete(HELLO)
    assert time.monotonic() - started >= 0.4


@pytest.mark.parametrize(("status", "says_so", "tries"), [(400, "true", 2), (500, "false", 1)])
async def test_the_endpoint_may_say_whether_another_try_is_of_use(
    model, connect, status, says_so, tries
):
    model.script(
        [
            returns({}, status=status, headers={"x-should-retry": says_so, "Retry-After-Ms": "1"}),
            "at last",
        ][:tries]
    )
    asking = connect().complete(HELLO)
    if tries == 1:
        with pytest.raises(LLMError, match=f"answered {status}"):
            await asking
    else:
        assert (await asking).text == "at last"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:40 GMT"}, None),
        ({"retry-after": "1e999"}, math.inf),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Thu, 99 Jan 99999999999 00:01:40 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wish_is_read_in_every_form(monkeypatch, headers, seconds):
    monkeypatch.setattr("time.time", lambda: 60.0)
    assert parse_retry_after(headers) == seconds


def test_without_a_wish_the_pauses_grow():
    lost = FailedTry("no connection")
    pauses = [compute_retry_pause(lost, tries) for tries in range(1, 8)]
    longest = [0.5, 1, 2, 4, 8, 8, 8]
    assert all(
        pause and most * 0.75 <= pause.seconds <= most
        for pause, most in zip(pauses, longest, strict=True)
    )


async def test_a_failure_that_stays_is_given_up_after_four_tries_and_told_in_its_own_words(
    model, connect
):
    model.script([fails(503, message="overloaded", retry_after=AT_ONCE)] * 4)
    with pytest.raises(LLMError, match=r"answered 503: .*overloaded"):
        await connect().complete(HELLO)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refusal_is_not_tried_again(model, connect, status):
    model.script([fails(status, message="no such model")])
    with pytest.raises(LLMError, match=f"answered {status}: .*no such model"):
        await connect().complete(HELLO)


async def test_an_error_page_is_quoted_in_part(model, connect):
    model.script([returns(b"<html>\n" + b"x" * 100_000, status=404)])
    with pytest.raises(LLMError) as caught:
        await connect().complete(HELLO)
    assert len(str(caught.value)) < 1000
    assert "\n" not in str(caught.value)


async def test_an_endpoint_that_nobody_listens_at_is_named_as_such_and_not_as_slow(
    connect, monkeypatch
):
    monkeypatch.setattr("agent.llm.client.transport.MAX_RETRIES", 0)
    client = connect(f"http://127.0.0.1:{free_port()}/v1", timeout_seconds=10)
    with pytest.raises(LLMError, match="cannot be reached"):
        await client.complete(HELLO)


# --- Time ---------------------------------------------------------------------------


async def test_an_endpoint_that_does_not_answer_in_time_is_a_timeout(model, connect):
    model.script([hangs()])
    with pytest.raises(LLMTimeout, match=r"within 0\.3 s"):
        await connect(timeout_seconds=0.3).complete(HELLO)


async def test_a_wish_to_wait_longer_than_there_is_time_ends_the_call_at_once_and_names_the_status(
    model, connect
):
    model.script([fails(429, message="slow down", retry_after=100)])
    started = time.monotonic()
    with pytest.raises(
        LLMTimeout,
        match=r"answered 429: .*slow down.*; it wants to be asked again in 100 s, longer than the "
        r"time",
    ):
        await connect(timeout_seconds=60).complete(HELLO)
    assert time.monotonic() - started < 10


async def test_when_no_time_is_left_for_another_try_the_last_one_is_named(
    model, connect, monkeypatch
):
    monkeypatch.setattr("agent.llm.client.transport.FIRST_PAUSE", 8)
    model.script([fails(500, message="boom")])
    with pytest.raises(LLMTimeout, match=r"answered 500: .*boom.*there was no time left"):
        await connect(timeout_seconds=4).complete(HELLO)


async def test_when_the_time_runs_out_in_a_later_try_the_one_before_is_named(model, connect):
    model.script([fails(503, message="overloaded", retry_after=AT_ONCE), hangs()])
    with pytest.raises(
        LLMTimeout, match=r"within 2 s; the try before: the endpoint answered 503: .*overloaded"
    ):
        await connect(timeout_seconds=2).complete(HELLO)


async def test_a_cancelled_call_is_clean_and_the_next_one_works(model, connect):
    model.script([held("too late"), "next"])
    client = connect()
    asking = asyncio.create_task(client.complete(HELLO))
    await model.wait_for_requests(1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (await client.complete(HELLO)).text == "next"


async def test_calls_side_by_side_each_get_their_own_answer(model, connect):
    model.answer_with(lambda request: says(request.last_text.upper()))
    client = connect()
    questions = [
        LLMRequest([{"role": "user", "content": f"question {number}"}]) for number in range(50)
    ]
    answers = await asyncio.gather(*(client.complete(question) for question in questions))
    assert [answer.text for answer in answers] == [f"QUESTION {number}" for number in range(50)]


async def test_a_connection_is_used_again(connect):
    body = json.dumps({"choices": [{"message": {"role": "assistant", "content": "hi"}}]}).encode()
    opened = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                await reader.readexactly(length)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    client = connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    assert [(await client.complete(HELLO)).text for _ in range(3)] == ["hi"] * 3
    assert len(opened) == 1
    await client.close()
    server.close()


async def test_the_proxy_that_the_environment_names_is_asked(model, connect, monkeypatch):
    monkeypatch.setenv("http_proxy", model.url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "near.example")
    model.script(["far"])
    assert (await connect("http://far.example/v1").complete(HELLO)).text == "far"
    assert model.requests[0].headers["host"] == "far.example"


async def test_name_and_password_in_an_address_are_sent_as_such(model, connect):
    model.script(["hi"])
    await connect(model.url.replace("//", "//me:word@"), api_key="").complete(HELLO)
    assert model.requests[0].headers["authorization"] == "Basic bWU6d29yZA=="


# --- Answers that are none ----------------------------------------------------------


@pytest.mark.parametrize(
    "body", [b"", b"{", b"<html>", b"\xff\xfe", b"[" * 100_000, b"data: {}\n\n"]
)
async def test_a_body_that_is_no_json_is_an_error_of_the_model(model, connect, body):
    model.script([returns(body)])
    with pytest.raises(LLMError, match="not JSON"):
        await connect().complete(HELLO)


@pytest.mark.parametrize("body", [{}, [], None, {"choices": []}, {"error": {"message": "quota"}}])
async def test_json_that_is_no_completion_is_an_error_of_the_model(model, connect, body):
    model.script([returns(body)])
    with pytest.raises(LLMError):
        await connect().complete(HELLO)


async def test_what_no_database_can_hold_is_taken_out_of_an_answer(model, connect):
    message = {"role": "assistant", "content": "a\0b\ud800c"}
    model.script([returns(json.dumps({"choices": [{"message": message}]}).encode())])
    response = await connect().complete(HELLO)
    response.text.encode()
    assert "\0" not in response.text
    assert "\0" not in response.recorded_message["content"]


@pytest.mark.parametrize("number", [b"NaN", b"-Infinity", b"1e999"])
async def test_a_number_that_no_database_can_hold_is_none(model, connect, number):
    model.script(
        [
            returns(
                b'{"choices": [{"message": {"role": "assistant", "content": "hi", "score": %s}}]}'
                % number
            )
        ]
    )
    response = await connect().complete(HELLO)
    assert (response.text, response.recorded_message["score"]) == ("hi", None)

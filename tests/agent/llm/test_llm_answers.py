"""A client's keys, limits, streams, addresses and errors, over real HTTP."""

import asyncio
import time

import pytest

from agent.domain.endpoint import Endpoint, TokenPrices
from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.client.transport import EndpointTransport, Patience
from agent.llm.errors.failures import lost_try
from agent.llm.errors.refusals import RefusalKind
from agent.llm.requests.base import LLMRequest
from tests.agent.llm.test_llm_learning import Heard, connect, heard
from tests.scripted_model import (
    Answer,
    Call,
    Request,
    ScriptedModel,
    calls,
    drops,
    fails,
    held,
    returns,
    says,
    streamed,
    streams,
)
from tests.tools.certificates import ServerTls
from tools.version import VERSION

__all__ = ["connect", "heard"]

HELLO = LLMRequest([{"role": "user", "content": "hello"}])
TOOL = LLMRequest(HELLO.messages, [{"name": "f", "description": ""}])
BODY = {"content": b"{}"}
KEYS = ("sk-first", "sk-second", "sk-third")


def used(model: ScriptedModel) -> list[str]:
    return [request.headers["authorization"].removeprefix("Bearer ") for request in model.requests]


# --- Keys -------------------------------------------------------------------------------


async def test_keys_are_used_in_turn(model, connect):
    model.answer_with(lambda _request: says("fine"))
    client = connect(keys=KEYS)
    for _ in range(4):
        await client.complete(HELLO)
    assert used(model) == [*KEYS, KEYS[0]]


@pytest.mark.parametrize("refusal", [fails(401, message="Invalid API key sk-first"), fails(402)])
async def test_a_key_that_is_refused_is_set_aside_and_the_next_one_used(
    model, connect, heard, refusal
):
    model.script([refusal, "fine", "fine", "fine"])
    client = connect(keys=KEYS[:2])
    for _ in range(3):
        await client.complete(HELLO)
    assert used(model) == [KEYS[0], KEYS[1], KEYS[1], KEYS[1]]
    assert [place for place, _ in heard.keys] == [0]
    assert "sk-first" not in heard.keys[0][1]


async def test_when_all_keys_are_refused_the_error_says_so_without_them(model, connect):
    model.answer_with(lambda r: fails(401, message=f"bad key {r.headers['authorization']}"))
    with pytest.raises(LLMError, match="all its 3 keys were refused") as caught:
        await connect(keys=KEYS).complete(HELLO)
    assert caught.value.kind == RefusalKind.WRONG_KEY
    assert "sk-" not in str(caught.value)


async def test_where_one_key_is_limited_the_next_one_is_used_at_once(model, connect):
    model.script([fails(429, retry_after=60), "fine"])
    assert (await connect(keys=KEYS[:2]).complete(HELLO)).text == "fine"


async def test_a_key_with_a_line_break_ends_in_a_clear_sentence(model, connect):
    with pytest.raises(LLMError, match="line break") as caught:
        await connect(keys=("sk-a\nb",)).complete(HELLO)
    assert caught.value.kind == RefusalKind.WRONG_KEY


async def test_headers_of_the_row_are_sent_and_hidden(model, connect):
    model.answer_with(lambda r: fails(400, message=r.headers["x-secret"]))
    with pytest.raises(LLMError, match=r"\*\*\*") as caught:
        await connect(headers={"X-Secret": "hdr-value"}).complete(HELLO)
    assert "hdr-value" not in str(caught.value)
    assert model.requests[0].headers["user-agent"] == f"FrostAgent/{VERSION}"


# --- Limits -----------------------------------------------------------------------------


async def test_no_more_calls_are_made_at_once_than_the_row_says(model, connect):
    model.script([held("one"), held("two"), held("three")])
    client = connect(max_concurrent=2)
    asked = [asyncio.create_task(client.complete(HELLO)) for _ in range(3)]
    await model.wait_for_requests(2)
    assert len(model.requests) == 2
    model.release(3)
    assert {answer.text for answer in await asyncio.gather(*asked)} == {"one", "two", "three"}


async def test_a_call_that_waits_too_long_for_its_place_was_not_made(model):
    model.script([held("late")])
    transport = EndpointTransport(Endpoint(model.url, max_concurrent=1))
    clock = asyncio.get_running_loop().time
    first = asyncio.create_task(transport.ask("/x", BODY, Patience(clock() + 10)))
    await model.wait_for_requests(1)
    with pytest.raises(LLMTimeout, match="its limits") as caught:
        await transport.ask("/x", BODY, Patience(clock() + 0.05))
    model.release()
    await first
    await transport.close()
    assert (caught.value.is_free, len(model.requests)) == (True, 1)


async def test_a_cancelled_call_gives_its_place_back(model, connect):
    model.script([held("late"), "fine"])
    client = connect(max_concurrent=1)
    first = asyncio.create_task(client.complete(HELLO))
    await model.wait_for_requests(1)
    waiting = asyncio.create_task(client.complete(HELLO))
    await asyncio.sleep(0)
    waiting.cancel()
    first.cancel()
    await asyncio.wait([waiting, first])
    assert (await client.complete(HELLO)).text == "fine"


async def test_calls_a_minute_are_spread(model, connect):
    model.answer_with(lambda _request: says("fine"))
    client = connect(calls_per_minute=600)
    started = time.monotonic()
    client._transport.pacer._bucket.take(600)
    await asyncio.gather(client.complete(HELLO), client.complete(HELLO))
    assert time.monotonic() - started >= 0.15


# --- Streams ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        says("你好，世界", reasoning_content="hm, 好"),
        calls(Call("f", {"a": 1}, "c1"), Call("f", {}, "c2"), content="wait"),
    ],
)
async def test_a_streamed_answer_is_what_it_would_have_been_unstreamed(model, connect, answer):
    model.script([answer, answer])
    whole = await connect().complete(TOOL)
    pieces = await connect(is_streamed=True).complete(TOOL)
    assert model.requests[1].body["stream"] is True
    assert (pieces.text, pieces.tool_calls, pieces.message, pieces.reasoning) == (
        whole.text,
        whole.tool_calls,
        whole.message,
        whole.reasoning,
    )
    assert (pieces.input_tokens, pieces.output_tokens, pieces.finish_reason) == (
        whole.input_tokens,
        whole.output_tokens,
        whole.finish_reason,
    )


async def test_an_endpoint_that_does_not_stream_is_understood(model, connect):
    body = {"choices": [{"message": {"role": "assistant", "content": "whole"}}]}
    model.script([returns(body)])
    assert (await connect(is_streamed=True).complete(HELLO)).text == "whole"


async def test_an_answer_that_streams_although_nobody_asked_is_read(model, connect):
    model.script([streams(b": keep-alive\n\n", *streamed("whole"), kind="Text/Event-Stream")])
    assert (await connect().complete(HELLO)).text == "whole"
    assert "stream" not in model.requests[0].body


async def test_an_answer_that_stops_in_the_middle_is_a_timeout_of_its_own(model, connect):
    model.script([streams(*streamed("a long answer")[:2], "hangs")])
    with pytest.raises(LLMTimeout, match="stopped in the middle"):
        await connect(is_streamed=True, piece_seconds=0.1).complete(HELLO)


async def test_an_answer_that_is_cut_off_is_asked_for_again(model, connect):
    model.script([streams(*streamed("a long answer")[:2], "dropped"), "at last"])
    assert (await connect(is_streamed=True).complete(HELLO)).text == "at last"


async def test_a_stream_that_ends_in_the_middle_is_asked_again(model, connect):
    pieces = [piece for piece in streamed("a long answer") if b"[DONE]" not in piece]
    model.script([streams(pieces[0]), streams(b": hm\n\n"), streams(*pieces)])
    assert (await connect(is_streamed=True).complete(HELLO)).text == "a long answer"


async def test_an_answer_that_was_cut_while_it_came_may_have_cost(model, connect):
    model.answer_with(lambda _: streams(streamed("a long answer")[0], "dropped"))
    with pytest.raises(LLMError) as caught:
        await connect(is_streamed=True).complete(HELLO, is_last=False)
    assert not caught.value.is_free


async def test_an_error_in_a_stream_is_told(model, connect):
    model.script([streams(b'data: {"error": {"message": "m does not exist", "code": 404}}\n\n')])
    with pytest.raises(LLMError, match="does not exist"):
        await connect(is_streamed=True).complete(HELLO)


# --- Addresses --------------------------------------------------------------------------


def only_below_v1(request: Request) -> Answer:
    return says("fine") if request.path.startswith("/v1/") else fails(404, message="Not Found")


async def test_an_address_without_v1_is_tried_with_it_once_and_remembered(model, connect):
    model.answer_with(only_below_v1)
    client = connect(url=model.url.removesuffix("/v1"))
    assert [(await client.complete(HELLO)).text for _ in range(2)] == ["fine", "fine"]
    paths = [request.path for request in model.requests]
    assert paths == ["/chat/completions", "/v1/chat/completions", "/v1/chat/completions"]


@pytest.mark.parametrize(("suffix", "count"), [("/v1", 1), ("/api/v3", 1), ("/api", 2)])
async def test_only_an_address_without_a_version_is_tried_with_another(
    model, connect, suffix, count
):
    model.answer_with(lambda _request: fails(404, message="Not Found"))
    with pytest.raises(LLMError, match="answered 404"):
        await connect(url=model.url.removesuffix("/v1") + suffix).complete(HELLO)
    assert len(model.requests) == count


async def test_an_address_that_moved_to_itself_is_asked_once(model, connect):
    model.answer_with(lambda request: returns(b"", status=307, headers={"Location": request.path}))
    with pytest.raises(LLMError, match="it sends to"):
        await connect().complete(HELLO)
    assert len(model.requests) == 1


async def test_keys_go_to_no_other_port(model, connect):
    with ScriptedModel() as other:
        model.script(
            [returns(b"", status=307, headers={"Location": f"{other.url}/chat/completions"})]
        )
        with pytest.raises(LLMError, match="it sends to"):
            await connect().complete(HELLO)
        assert not other.requests


async def test_an_address_that_moved_on_its_host_is_asked_there(model, connect):
    def decide(request: Request) -> Answer:
        if request.path.startswith("/new/v1/"):
            return says("fine")
        return returns(b"", status=308, headers={"Location": f"/new{request.path}"})

    model.answer_with(decide)
    client = connect()
    assert [(await client.complete(HELLO)).text for _ in range(2)] == ["fine", "fine"]
    assert len(model.requests) == 3


async def test_keys_are_sent_to_no_other_host(model, connect):
    elsewhere = model.url.replace("127.0.0.1", "localhost")
    target = {"Location": f"{elsewhere}/chat/completions"}
    model.script([returns(b"", status=307, headers=target)])
    with pytest.raises(LLMError, match="it sends to"):
        await connect(keys=KEYS).complete(HELLO)


# --- Errors -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "words", "kind"),
    [
        (
            returns(b"<html><title>Sign in</title>"),
            r"not JSON but a web page “Sign in”",
            RefusalKind.WRONG_ADDRESS,
        ),
        (
            returns(b"<html>", status=404),
            "answered 404 with a web page",
            RefusalKind.WRONG_ADDRESS,
        ),
        (
            returns(b"", status=302, headers={"Location": "https://login.example/?token=x"}),
            r"answered 302: it sends to https://login\.example/;",
            RefusalKind.WRONG_ADDRESS,
        ),
        (
            returns({"type": "error", "error": {"type": "x", "message": "m"}}, status=400),
            "Anthropic's protocol",
            RefusalKind.OTHER,
        ),
        (returns({"type": "message", "content": []}), "Anthropic's protocol", ""),
        (returns({"candidates": []}), "Gemini's own protocol", ""),
        (
            returns({"error": {"message": "insufficient balance"}}),
            "insufficient balance",
            RefusalKind.NO_MONEY,
        ),
        (fails(429, message="insufficient_quota"), "insufficient_quota", RefusalKind.NO_MONEY),
    ],
)
async def test_each_fault_is_a_sentence_with_its_kind(model, connect, answer, words, kind):
    model.script([answer])
    with pytest.raises(LLMError, match=words) as caught:
        await connect().complete(HELLO)
    assert caught.value.kind == kind


async def test_a_certificate_that_nobody_vouches_for_is_named(connect):
    def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    tls = ServerTls("localhost").server
    server = await asyncio.start_server(hang_up, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(LLMError, match="certificate is not trusted") as caught:
        await connect(url=f"https://localhost:{port}/v1").complete(HELLO, is_last=False)
    server.close()
    assert caught.value.kind == RefusalKind.DOWN


def test_a_proxy_that_took_the_name_over_is_named():
    assert "fake-ip" in lost_try(OSError("Connect call failed ('198.18.0.7', 443)")).words


@pytest.mark.parametrize("answer", [fails(503), fails(429), drops()])
async def test_where_another_endpoint_is_there_one_quick_try_more_is_enough(
    model, connect, answer, monkeypatch
):
    monkeypatch.setattr("agent.llm.client.transport.FIRST_PAUSE", 0.01)
    model.script([answer, answer])
    with pytest.raises(LLMError):
        await connect().complete(HELLO, is_last=False)
    assert len(model.requests) == 2


async def test_where_another_endpoint_is_there_no_long_wish_is_waited_for(model, connect):
    model.script([fails(429, retry_after=3)])
    with pytest.raises(LLMError) as caught:
        await connect().complete(HELLO, is_last=False)
    assert caught.value.kind == RefusalKind.LIMITED


# --- What an answer says ----------------------------------------------------------------


async def test_a_call_in_the_text_is_made_where_tools_were_offered(model, connect):
    text = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    model.script([text, text, text])
    assert [call.name for call in (await connect().complete(TOOL)).tool_calls] == ["f"]
    assert (await connect().complete(HELLO)).tool_calls == ()
    assert (await connect(text_calls="off").complete(TOOL)).tool_calls == ()


async def test_a_call_is_priced_with_what_is_reported(model, connect):
    model.script(["fine"])
    response = await connect(prices=TokenPrices(2.0, None, 8.0, None, "CNY")).complete(HELLO)
    assert response.cost_nano == 11 * 2_000 + 7 * 8_000
    assert response.rest["choices"] == [{"index": 0, "finish_reason": "stop"}]


async def test_tokens_are_estimated_where_none_are_reported(model, connect):
    text = '{"name": "f", "arguments": {"a": "several words"}}'
    said = [{"content": "a word or two"}, {"content": text}]
    model.script([returns({"choices": [{"message": message}]}) for message in said])
    for _ in said:
        response = await connect().complete(TOOL)
        assert response.input_tokens > 5
        assert response.output_tokens > 3


async def test_thoughts_are_no_words(model, connect, heard: Heard):
    model.script(["<think>secret</think>Hello"])
    response = await connect().complete(HELLO)
    assert (response.text, response.reasoning) == ("Hello", "secret")
    assert response.message == {"role": "assistant", "content": "Hello"}
    assert "secret" in response.recorded_message["content"]

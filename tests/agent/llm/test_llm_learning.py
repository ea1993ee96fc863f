"""What a client learns of its endpoint by being refused, over real HTTP."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError
from agent.llm.client.client import OpenAIClient
from agent.llm.endpoints.endpoint_pool import Fault, judge_fault
from agent.llm.errors.refusals import RefusalKind
from agent.llm.requests.base import LLMRequest, RequestEncoder
from tests.scripted_model import Answer, Request, call, fails, returns, says

SYSTEM = {"role": "system", "content": "be brief"}
HELLO = {"role": "user", "content": "hello"}
TOOLS: list[dict[str, Any]] = [
    {"name": name, "description": "", "parameters_schema": None} for name in "fgh"
]
REQUEST = LLMRequest([SYSTEM, HELLO], TOOLS)


class Heard:
    """Notices, as they came."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.windows: list[int] = []
        self.keys: list[tuple[int, str]] = []
        self.factors: list[float] = []

    def learnt(self, endpoint: Endpoint, kind: str, words: str) -> None:
        self.kinds.append(kind)

    def learnt_window(self, endpoint: Endpoint, tokens: int) -> None:
        self.windows.append(tokens)

    def key_refused(self, endpoint: Endpoint, place: int, words: str) -> None:
        self.keys.append((place, words))

    def factor(self, endpoint: Endpoint, factor: float) -> None:
        self.factors.append(factor)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
async def connect(model, heard) -> AsyncIterator[Callable[..., OpenAIClient]]:
    """Make clients of the scripted model: ``connect(keys=…, window=…)``."""
    clients = []

    def connect(url: str = model.url, **fields: Any) -> OpenAIClient:
        fields = {"model": "scripted", "timeout_seconds": 10, **fields}
        clients.append(OpenAIClient(Endpoint(url, **fields), notices=heard))
        return clients[-1]

    yield connect
    for client in clients:
        await client.close()


def picky(refusal: str, is_fine: Callable[[dict[str, Any]], bool]) -> Callable[[Request], Answer]:
    """Refuses with ``refusal`` until the body ``is_fine``."""
    return lambda request: says("fine") if is_fine(request.body) else fails(400, message=refusal)


def is_without_null(body: dict[str, Any]) -> bool:
    return all(message["content"] is not None for message in body["messages"])


PICKY: list[tuple[str, str, Callable[[dict[str, Any]], bool]]] = [
    (RefusalKind.NO_TOOLS, "m does not support tools", lambda body: "tools" not in body),
    (
        RefusalKind.NO_SYSTEM,
        "system role not supported",
        lambda body: body["messages"][0]["role"] == "user",
    ),
    (
        RefusalKind.NO_CONSECUTIVE_USER,
        "Conversation roles must alternate user/assistant",
        lambda body: body["messages"][-2]["role"] != "user",
    ),
    (RefusalKind.NO_NULL_CONTENT, "invalid message content type: <nil>", is_without_null),
    (
        RefusalKind.ONLY_STREAMED,
        "This model only support stream mode",
        lambda body: bool(body.get("stream")),
    ),
    (
        RefusalKind.NO_TEMPERATURE,
        "invalid temperature: only 1 is allowed for this model",
        lambda body: "temperature" not in body,
    ),
    (
        RefusalKind.MAX_COMPLETION_TOKENS,
        "Unsupported parameter: use 'max_completion_tokens' instead.",
        lambda body: "max_tokens" not in body,
    ),
]


def asked_calls() -> LLMRequest:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": "c1", "type": "function", "function": function}]
    said = {"role": "assistant", "content": None, "tool_calls": calls}
    result = {"role": "tool", "tool_call_id": "c1", "content": "42"}
    return LLMRequest([SYSTEM, HELLO, said, result, HELLO, HELLO], TOOLS)


@pytest.mark.parametrize(("kind", "refusal", "is_fine"), PICKY)
async def test_what_is_refused_is_left_out_at_once_and_from_then_on(
    model, connect, heard, kind, refusal, is_fine
):
    model.answer_with(picky(refusal, is_fine))
    client = connect(parameters={"temperature": 0.3, "max_tokens": 99})
    request = asked_calls()
    assert [(await client.complete(request)).text for _ in range(2)] == ["fine", "fine"]
    assert len(model.requests) == 3
    assert heard.kinds == [kind]


async def test_what_helps_nothing_is_not_learnt_and_not_asked_twice(model, connect, heard):
    model.script([fails(400, message="invalid temperature: only 1 is allowed")])
    with pytest.raises(LLMError, match="temperature") as caught:
        await connect().complete(REQUEST)
    assert (caught.value.kind, heard.kinds) == (RefusalKind.NO_TEMPERATURE, [])


async def test_nothing_is_learnt_where_the_other_form_is_refused_too(model, connect, heard):
    model.script([fails(400, message="m does not support tools"), fails(400, message="no")])
    with pytest.raises(LLMError, match="no") as caught:
        await connect().complete(REQUEST)
    assert (heard.kinds, caught.value.sent.tools) == ([], [])


async def test_several_refusals_are_met_in_one_call(model, connect, heard):
    def decide(request: Request) -> Answer:
        if request.tool_names:
            return fails(400, message="m does not support tools")
        if request.messages[0]["role"] == "system":
            return fails(400, message="system role not supported")
        return says("fine")

    model.answer_with(decide)
    assert (await connect().complete(REQUEST)).text == "fine"
    assert heard.kinds == [RefusalKind.NO_TOOLS, RefusalKind.NO_SYSTEM]


async def test_what_its_row_knows_is_never_sent(model, connect):
    model.script(["fine"])
    refuses = frozenset({"no_tools", "no_system"})
    response = await connect(refuses=refuses).complete(REQUEST)
    assert "tools" not in model.requests[0].body
    assert response.sent.tools == []
    assert response.sent.messages == model.requests[0].messages


async def test_a_request_can_be_made_again_byte_for_byte(model, connect):
    model.script(["fine"])
    parameters = {"temperature": 0.3, "x": {"deep": "值"}}
    sent = (await connect(parameters=parameters, max_tools=2).complete(REQUEST)).sent
    assert (sent.messages, sent.tools, sent.parameters) == (None, TOOLS[:2], parameters)
    encoder = RequestEncoder("scripted", sent.parameters)
    body = encoder.encode(REQUEST.messages, sent.tools)
    assert list(model.requests[0].body) == ["model", "messages", "tools", "temperature", "x"]
    assert len(body) == int(model.requests[0].headers["content-length"])


# --- The window -------------------------------------------------------------------------


def long_talk(count: int = 40) -> LLMRequest:
    history = [
        {"role": "assistant" if place % 2 else "user", "content": f"第{place}句话" + "好" * 100}
        for place in range(count)
    ]
    return LLMRequest([SYSTEM, *history, HELLO], begin=count + 1)


def too_long(words: str, most: int) -> Callable[[Request], Answer]:
    def decide(request: Request) -> Answer:
        length = sum(len(message["content"]) for message in request.messages)
        return fails(400, message=words) if length > most else says("fine")

    return decide


async def test_a_request_is_fitted_to_the_window_before_it_is_sent(model, connect):
    model.script(["fine"])
    response = await connect(window=2_000).complete(long_talk())
    sent = model.requests[0].messages
    assert sent == response.sent.messages
    assert (sent[0], sent[-1]) == (SYSTEM, HELLO)
    assert 2 < len(sent) < 30


@pytest.mark.parametrize(
    "words",
    [
        "context_length_exceeded",
        "This model's maximum context length is 700 tokens. You requested 4000",
        "the prompt is too long",
    ],
)
async def test_when_it_is_too_long_after_all_less_is_sent_until_it_fits(model, connect, words):
    model.answer_with(too_long(words, 250))
    client = connect(parameters={"max_tokens": 100})
    assert (await client.complete(long_talk())).text == "fine"
    assert model.requests[-1].messages[-1] == HELLO
    assert len(model.requests) <= 7


async def test_a_window_that_is_told_is_kept(model, connect, heard):
    model.answer_with(too_long("This model's maximum context length is 2048 tokens", 1500))
    client = connect()
    await client.complete(long_talk())
    before = len(model.requests)
    await client.complete(long_talk())
    assert (heard.windows, len(model.requests)) == ([2048], before + 1)


async def test_what_never_fits_ends_in_the_words_of_the_endpoint(model, connect):
    model.answer_with(lambda _request: fails(400, message="prompt is too long"))
    with pytest.raises(LLMError, match="prompt is too long") as caught:
        await connect().complete(long_talk())
    assert caught.value.kind == RefusalKind.TOO_LONG
    assert len(model.requests) <= 7


async def test_how_an_endpoint_counts_is_learnt_from_what_it_reports(model, connect, heard):
    def decide(request: Request) -> Answer:
        length = sum(len(message["content"]) for message in request.messages)
        message = {"role": "assistant", "content": "fine"}
        usage = {"prompt_tokens": 2 * length, "completion_tokens": 1}
        return returns({"choices": [{"message": message}], "usage": usage})

    model.answer_with(decide)
    client = connect(window=6_000)
    for _ in range(3):
        await client.complete(long_talk(20))
    assert heard.factors
    assert heard.factors[-1] > 1.5


async def test_of_many_tools_only_as_many_are_offered_as_the_row_says(model, connect):
    model.script([call("f"), call("f")])
    assert (await connect(max_tools=1).complete(REQUEST)).sent.tools == TOOLS[:1]
    await connect(max_tools=0).complete(REQUEST)
    assert [request.tool_names for request in model.requests] == [["f"], ["f", "g", "h"]]


# --- What somebody wrote ----------------------------------------------------------------


def repeats(status: int) -> Callable[[Request], Answer]:
    """Refuses each request that offers tools, with the last message in its words."""

    def answer(request: Request) -> Answer:
        said = request.body["messages"][-1]["content"]
        shown = f"could not read: {said}"
        return fails(status, message=shown) if "tools" in request.body else says("fine")

    return answer


async def test_a_refusal_in_the_words_of_a_chat_teaches_nothing(model, connect, heard):
    model.answer_with(repeats(500))
    words = "m does not support tools"
    request = LLMRequest([SYSTEM, {"role": "user", "content": f"I say: {words}"}], TOOLS)
    assert (await connect().complete(request)).text == "fine"
    assert heard.kinds == []


@pytest.mark.parametrize("words", ["Arrearage", "maximum context length is 99 tokens"])
async def test_no_word_of_a_chat_sets_a_key_aside_or_makes_a_window_small(
    model, connect, heard, words
):
    model.answer_with(repeats(400))
    request = LLMRequest([SYSTEM, {"role": "user", "content": words}], TOOLS)
    with pytest.raises(LLMError) as caught:
        await connect(keys=("sk-1", "sk-2")).complete(request)
    assert (heard.keys, heard.windows) == ([], [])
    assert judge_fault(caught.value) is Fault.REQUEST


async def test_a_key_that_the_status_refuses_is_set_aside_whatever_the_chat_says(
    model, connect, heard
):
    model.script([fails(401, message="invalid_api_key"), "fine"])
    request = LLMRequest([SYSTEM, {"role": "user", "content": "invalid_api_key"}], TOOLS)
    assert (await connect(keys=("sk-1", "sk-2")).complete(request)).text == "fine"
    assert [place for place, _ in heard.keys] == [0]

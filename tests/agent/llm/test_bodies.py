"""Request bodies as bytes: what is encoded once, and what is made of things that are no JSON."""

import json
from typing import Any

import pytest

from agent.domain.endpoint import Endpoint
from agent.llm.client.client import OpenAIClient
from agent.llm.requests.base import LLMRequest, RequestEncoder
from tests.scripted_model import ScriptedModel, drops, fails

HELLO = [{"role": "user", "content": "北京 🙂"}]


def definition(name: str, description: str = "") -> dict[str, Any]:
    return {"name": name, "description": description}


def sent(
    bodies: RequestEncoder, *tools: dict[str, Any], messages: list[dict[str, Any]] = HELLO
) -> Any:
    return json.loads(bodies.encode(messages, tools))


def test_a_body_is_compact_json_in_utf_8():
    assert (
        RequestEncoder('m"1').encode(HELLO, [])
        == '{"model":"m\\"1","messages":[{"role":"user","content":"北京 🙂"}]}'.encode()
    )


def test_tools_stand_in_a_body_in_the_order_in_which_they_are_offered():
    bodies, one, other = RequestEncoder("m"), definition("a"), definition("b")
    for offer in ([one, other], [other, one], [other]):
        assert [tool["function"]["name"] for tool in sent(bodies, *offer)["tools"]] == [
            tool["name"] for tool in offer
        ]


def test_another_definition_of_a_tool_is_told_at_once():
    bodies = RequestEncoder("m")
    told = [
        sent(bodies, definition("a", str(number)))["tools"][0]["function"]["description"]
        for number in range(100)
    ]
    assert told == [str(number) for number in range(100)]


def test_encoded_tools_that_are_kept_are_bounded(monkeypatch):
    monkeypatch.setattr("agent.llm.requests.base.MOST_KEPT", 10)
    bodies = RequestEncoder("m")
    for number in range(30):
        offer = [definition(f"{number}{letter}") for letter in "ab"]
        assert [tool["function"]["name"] for tool in sent(bodies, *offer)["tools"]] == [
            f"{number}a",
            f"{number}b",
        ]
        assert len(bodies) <= 10


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ("a\ud800b", "a�b"),
        ("\ud83d\ude42", "🙂"),
        (float("nan"), None),
        ([float("-inf"), 1.5], [None, 1.5]),
    ],
)
def test_what_is_no_json_never_breaks_a_request(odd, told):
    schema = {"type": "object", "properties": {"a": {"default": odd}}}
    body = sent(
        RequestEncoder("m"),
        definition("t") | {"parameters_schema": schema},
        messages=[{"role": "user", "content": odd}],
    )
    assert body["messages"][0]["content"] == told
    assert body["tools"][0]["function"]["parameters"]["properties"]["a"]["default"] == told


async def test_a_request_that_is_tried_again_is_the_same(model: ScriptedModel):
    model.script([fails(500, retry_after=0), drops(), "at last"])
    client = OpenAIClient(Endpoint(model.url, ("k",), "m", timeout_seconds=10))
    assert (await client.complete(LLMRequest(HELLO, [definition("a")]))).text == "at last"
    await client.close()
    assert [request.body for request in model.requests] == [model.requests[0].body] * 3
    assert model.requests[0].headers["content-type"] == "application/json"
    assert model.requests[0].body["tools"][0]["function"]["name"] == "a"

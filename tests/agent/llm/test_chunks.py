"""Chunks of a streamed answer become the completion that the endpoint would have sent at once."""

import json
import time
from typing import Any

import pytest

from agent.llm.answers.completion import parse_completion
from agent.llm.answers.reading import ChunkAssembler


def assembled(*chunks: object) -> dict[str, Any]:
    assembler = ChunkAssembler()
    for chunk in chunks:
        assembler.add(json.loads(json.dumps(chunk)))
    return assembler.body()


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk as the API documents it."""
    choice = {"index": 0, "delta": fields, "logprobs": None, "finish_reason": finish_reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": None,
        "obfuscation": "x9",
    }


def message(*chunks: object) -> dict[str, Any]:
    found: dict[str, Any] = assembled(*chunks)["choices"][0]["message"]
    return found


def part(index: int | None, call_id: str | None, name: str | None, arguments: Any) -> Any:
    """A piece of a tool call; what is None is left out."""
    function = {"name": name, "arguments": arguments}
    fields = {"index": index, "id": call_id, "type": "function"}
    kept = {key: value for key, value in fields.items() if value is not None}
    return kept | {"function": {key: v for key, v in function.items() if v is not None}}


def called(*parts: Any) -> list[tuple[str, str, str]]:
    """The calls that ``parts`` make, each in a chunk of its own, as they are read."""
    response = parse_completion(assembled(*(delta(tool_calls=[one]) for one in parts)))
    return [(call.call_id, call.name, call.arguments) for call in response.tool_calls]


def test_text_reason_and_usage_become_one_completion():
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    body = assembled(
        delta(role="assistant", content=""),
        delta(content="你"),
        delta(content="好"),
        delta("stop"),
        delta() | {"choices": [], "usage": usage},
    )
    assert body == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "usage": usage,
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "你好"},
            }
        ],
    }


def test_a_stream_that_ends_early_has_no_reason():
    assert assembled(delta(content="half a"))["choices"][0]["finish_reason"] is None
    assert assembled()["choices"] == []


def test_usage_in_every_chunk_counts_once_and_in_a_choice_too():
    counted = [delta(content="a") | {"usage": {"completion_tokens": n}} for n in (1, 2, 3)]
    assert assembled(*counted)["usage"] == {"completion_tokens": 3}
    last = delta("stop")
    last["choices"][0]["usage"] = {"completion_tokens": 9}
    assert assembled(delta(content="a"), last)["usage"] == {"completion_tokens": 9}


def test_thoughts_and_unknown_fields_are_kept():
    found = message(
        delta(reasoning_content="I ", reasoning="I ", mood="ca", trust=1, citations=["a"]),
        delta(reasoning_content="think", reasoning="think", mood="lm", trust=2, citations=["b"]),
        delta(content=None, refusal="no"),
    )
    assert found == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "I think",
        "reasoning": "I think",
        "mood": "calm",
        "trust": 2,
        "citations": ["a", "b"],
        "refusal": "no",
    }


def test_blocks_of_thoughts_are_merged_up_to_their_signature():
    def block(**fields: Any) -> dict[str, Any]:
        return delta(reasoning_details=[{"format": "anthropic-claude-v1", "index": 0, **fields}])

    found = message(
        block(type="reasoning.text", text="Let"),
        block(type="reasoning.text", text=" me see"),
        block(type="reasoning.text", signature="Et8B"),
        block(type="reasoning.text", text="Then", id=None),
    )
    assert found["reasoning_details"] == [
        {
            "format": "anthropic-claude-v1",
            "index": 0,
            "type": "reasoning.text",
            "text": "Let me see",
            "signature": "Et8B",
        },
        {
            "format": "anthropic-claude-v1",
            "index": 1,
            "type": "reasoning.text",
            "text": "Then",
            "id": None,
        },
    ]


def test_encrypted_thoughts_stay_whole_though_all_have_the_same_index():
    said = [
        {"type": "reasoning.summary", "summary": "I ", "index": 0},
        {"type": "reasoning.summary", "summary": "sum", "index": 0},
        {"type": "reasoning.encrypted", "data": "AAA", "id": "rs_1", "index": 0},
        {"type": "reasoning.encrypted", "data": "BBB", "id": "rs_2", "index": 0},
    ]
    found = message(*(delta(reasoning_details=[one]) for one in said))["reasoning_details"]
    assert [(one.get("summary") or one["data"], one["index"]) for one in found] == [
        ("I sum", 0),
        ("AAA", 1),
        ("BBB", 2),
    ]


def test_content_in_parts_stays_in_parts():
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    found = message(delta(content=[thought]), delta(content=[thought]), delta(content="Yes"))
    thoughts, words = found["content"]
    assert thoughts == {"type": "thinking", "thinking": [{"type": "text", "text": "hmhm"}]}
    assert words == {"type": "text", "text": "Yes"}


@pytest.mark.parametrize(
    "parts",
    [
        [part(0, "a", "f", ""), part(0, None, None, '{"x"'), part(0, None, None, ": 1}")],
        [part(0, "a", "f", '{"x"'), part(0, "a", "f", ": 1}")],  # llama.cpp
        [part(0, "a", "f", '{"x"'), part(0, "other", None, ": 1}")],
        [part(0, "a", "f", '{"x"'), part(0, "", None, ": 1}")],  # vLLM
        [part(0, None, "f", '{"x"'), part(0, "a", "f", ": 1}")],
        [part(None, "a", "f", '{"x"'), part(None, None, None, ": 1}")],
        [part(None, "a", "f", '{"x"'), part(None, "a", "f", ": 1}")],
        [part(0, "a", "f", '{"x"'), part(None, None, None, ": 1}")],
        [part(0, "a", "f", {"x": 1})],
    ],
)
def test_the_pieces_of_a_call_are_put_together(parts):
    assert called(*parts) == [("a", "f", '{"x": 1}')]


@pytest.mark.parametrize("indices", [(0, 1), (0, 0), (None, None)])
def test_calls_are_kept_apart_whatever_their_indices(indices):
    """Ollama gives all calls the index 0, Gemini leaves it out."""
    wanted = [part(indices[0], "a", "f", "{}"), part(indices[1], "b", "f", "{}")]
    assert called(*wanted) == [("a", "f", "{}"), ("b", "f", "{}")]


def test_interleaved_calls_find_their_pieces():
    pieces = [
        part(0, "a", "f", '{"x'),
        part(1, "b", "g", '{"y'),
        part(0, None, None, '": 1}'),
        part(1, None, None, '": 2}'),
    ]
    assert called(*pieces) == [("a", "f", '{"x": 1}'), ("b", "g", '{"y": 2}')]


def test_a_name_in_parts_is_joined():
    assert called(part(0, "a", "get_", ""), part(0, None, "weather", "{}"))[0][1] == "get_weather"


def test_a_name_does_not_grow_for_ever():
    (call,) = called(*(part(0, "a", f"n{number}", "") for number in range(2_000)))
    assert len(call[1]) < 300


def test_a_thought_signature_stays_on_its_call():
    signed = {"google": {"thought_signature": "EjQK"}}
    first = part(None, "a", "f", "{}") | {"extra_content": signed}
    found = message(
        delta(tool_calls=[first], extra_content={"google": {"thought": True}}),
        delta(tool_calls=[part(None, "b", "f", "{}")], extra_content=signed),
    )
    assert [call.get("extra_content") for call in found["tool_calls"]] == [signed, None]
    assert found["extra_content"] == {"google": {"thought": True, "thought_signature": "EjQK"}}


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "overloaded"}},
        [{"error": {"message": "overloaded"}}],
        {"object": "error", "message": "overloaded", "code": 503},
    ],
)
def test_an_error_on_the_way_is_kept_beside_what_was_said(error):
    body = assembled(delta(content="half"), error)
    assert body["error"]["message"] == "overloaded"
    assert body["choices"][0]["message"]["content"] == "half"


def test_an_answer_that_was_not_streamed_is_itself():
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    whole = {
        "id": "1",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, "tool_calls": [call, call]},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 1},
    }
    assert assembled(whole) == whole


def test_a_whole_message_at_the_end_doubles_nothing():
    end = delta("stop")
    end["choices"][0]["message"] = {"role": "assistant", "content": "hello", "name": "bot"}
    assert message(delta(content="hel"), delta(content="lo"), end) == {
        "role": "assistant",
        "content": "hello",
        "name": "bot",
    }


def test_other_choices_and_nonsense_say_nothing():
    other = delta(content="no")
    other["choices"][0]["index"] = 1
    nonsense = [None, 1, "ping", {"choices": None}, {"choices": [None, {"index": 0}]}]
    assert message(other, *nonsense, delta(content="yes"))["content"] == "yes"


def test_many_pieces_take_linear_time():
    assembler = ChunkAssembler()
    began = time.process_time()
    for _ in range(100_000):
        assembler.add(delta(content="ab", tool_calls=[part(0, "a", "f", "12")]))
    found = assembler.body()["choices"][0]["message"]
    assert len(found["content"]) == len(found["tool_calls"][0]["function"]["arguments"]) == 200_000
    assert time.process_time() - began < 20

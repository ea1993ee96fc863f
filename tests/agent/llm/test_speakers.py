"""What a model says beside its words goes back to it, and to no other."""

from typing import Any

from agent.domain.endpoint import Endpoint
from agent.llm.answers.completion import parse_completion, parse_recorded
from agent.llm.requests.messages import SPEAKER, messages_for

HERE, THERE = Endpoint("http://a/v1", model="m"), Endpoint("http://b/v1", model="m")
SIGNED: dict[str, Any] = {
    "id": "c1",
    "type": "function",
    "function": {"name": "f", "arguments": '{"a": 1}'},
    "extra_content": {"google": {"thought_signature": "sig"}},
}
MESSAGE: dict[str, Any] = {
    "role": "assistant",
    "content": "hm",
    "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}],
    "unknown": {"deep": [1]},
    "annotations": [],
    "audio": None,
    "tool_calls": [SIGNED],
}
USER = {"role": "user", "content": "hi"}


def echoed() -> dict[str, Any]:
    body = {"choices": [{"message": MESSAGE}]}
    return parse_completion(body, speaker=HERE.speaker).message


def test_all_that_was_said_goes_back_unchanged_to_who_said_it():
    sent = messages_for(HERE, [USER, echoed()])
    assert sent[0] is USER
    assert sent[1] == {key: MESSAGE[key] for key in MESSAGE.keys() - {"annotations", "audio"}}


def test_another_endpoint_is_sent_words_and_calls_alone():
    plain = {key: SIGNED[key] for key in ("id", "type", "function")}
    assert messages_for(THERE, [echoed()]) == [
        {"role": "assistant", "content": "hm", "tool_calls": [plain]}
    ]


def test_it_is_the_same_after_a_resume():
    assert parse_recorded(MESSAGE, ["c1"], speaker=HERE.speaker).message == echoed()


def test_of_a_record_without_a_speaker_nobody_is_sent_the_extras():
    recorded = parse_recorded(MESSAGE, ["c1"]).message
    assert messages_for(HERE, [recorded]) == messages_for(THERE, [echoed()])


def test_messages_without_extras_stay_the_very_same():
    messages = [USER, {"role": "assistant", "content": "yes"}]
    assert messages_for(HERE, messages) is messages
    plain = parse_completion({"choices": [{"message": {"content": "yes"}}]}, speaker="a").message
    assert SPEAKER not in plain

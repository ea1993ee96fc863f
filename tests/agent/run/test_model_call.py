"""What the record keeps of a model call beside its messages."""

from agent.domain.endpoint import Endpoint
from agent.llm.answers.completion import parse_completion
from agent.llm.requests.base import SentRequest
from agent.llm.requests.messages import SPEAKER
from agent.record.runs.runs import RecordedStep
from agent.run.model_call import _recorded_rest, _recorded_sent, recorded_response

ME = Endpoint("http://me/v1", model="m")
SENT = SentRequest(ME, [], {})


def said_by(speaker: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": "a", "thought": "x", SPEAKER: speaker}]


def test_messages_are_kept_where_anothers_thoughts_were_left_out():
    sent = _recorded_sent(SENT, said_by("other"))
    assert sent is not None
    assert sent.messages == [{"role": "assistant", "content": "a"}]
    assert _recorded_sent(SENT, said_by(ME.speaker)) is SENT


def test_who_thought_is_known_after_a_resume():
    body = {"choices": [{"message": {"content": "a", "reasoning_content": "because"}}]}
    answer = parse_completion(body, speaker=ME.speaker)
    rest = _recorded_rest(answer) or {}
    step = RecordedStep([], answer.recorded_message, [], speaker=rest[SPEAKER])
    assert recorded_response(step).message == answer.message

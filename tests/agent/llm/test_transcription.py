"""Speech to text against a real HTTP server."""

from collections.abc import AsyncIterator, Callable

import pytest

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.client.client import OpenAIClient
from agent.llm.endpoints.transcription import Transcriber
from tests.scripted_model import drops, fails, hangs, returns

SOUND = b"ID3\x03\x00" + bytes(range(256)) * 20


@pytest.fixture
async def listen(model) -> AsyncIterator[Callable[..., Transcriber]]:
    """Make transcribers of the scripted endpoint: ``listen(timeout_seconds=…)``."""
    made = []

    def listen(timeout_seconds: float = 10) -> Transcriber:
        made.append(
            Transcriber(
                OpenAIClient(
                    Endpoint(model.url, ("sk-secret",), "whisper", timeout_seconds=timeout_seconds)
                )
            )
        )
        return made[-1]

    yield listen
    for transcriber in made:
        await transcriber.close()


async def test_the_sound_goes_out_as_a_file_with_the_models_name(model, listen):
    model.script([returns({"text": " 你好 "})])
    assert await listen().transcribe(SOUND, "mp3", "audio/mpeg") == "你好"
    (request,) = model.requests
    assert request.path == "/v1/audio/transcriptions"
    assert request.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert request.headers["authorization"] == "Bearer sk-secret"
    assert SOUND in request.body
    assert b'name="file"; filename="voice.mp3"' in request.body
    assert b'name="model"\r\n\r\nwhisper\r\n' in request.body


async def test_the_same_sound_is_sent_again_after_a_lost_connection(model, listen):
    model.script([drops(), fails(503, retry_after=0.01), returns({"text": "again"})])
    assert await listen().transcribe(SOUND, "wav", "audio/wav") == "again"
    assert all(SOUND in request.body for request in model.requests)


async def test_silence_is_no_failure(model, listen):
    model.script([returns({"text": "", "usage": {"type": "duration", "seconds": 3}})])
    assert await listen().transcribe(SOUND, "mp3", "audio/mpeg") == ""


@pytest.mark.parametrize(
    "answer",
    [returns({"text": None}), returns(["a"]), returns(b"plain words"), returns({"error": "x"})],
)
async def test_an_answer_without_text_is_an_error(model, listen, answer):
    model.script([answer])
    with pytest.raises(LLMError):
        await listen().transcribe(SOUND, "mp3", "audio/mpeg")


async def test_a_refusal_is_told_without_the_key(model, listen):
    model.script([fails(401, message="wrong key sk-secret")])
    with pytest.raises(LLMError, match="401") as caught:
        await listen().transcribe(SOUND, "mp3", "audio/mpeg")
    assert "sk-secret" not in str(caught.value)


async def test_an_endpoint_that_does_not_answer_is_given_up(model, listen):
    model.script([hangs()])
    with pytest.raises(LLMTimeout):
        await listen(timeout_seconds=0.3).transcribe(SOUND, "mp3", "audio/mpeg")

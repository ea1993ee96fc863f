"""Speech to text over HTTP: the ``/audio/transcriptions`` of an OpenAI-compatible endpoint.

https://platform.openai.com/docs/api-reference/audio/createTranscription; which file
endings an endpoint takes is in :data:`agent.media.voice_reader.ENDINGS`.
"""

from typing import Protocol

from agent.domain.errors import LLMError
from agent.llm.endpoints.endpoint_pool import EndpointClient


class SoundTranscriber(Protocol):
    """What turns sounds into words: a :class:`Transcriber`, or several, one after the other."""

    @property
    def name(self) -> str:
        """What the record says did it."""
        ...

    async def transcribe(self, sound: bytes, ending: str, mime_type: str) -> str:
        """As :meth:`Transcriber.transcribe`."""
        ...


class Transcriber:
    """The words in sounds, transcribed by the model that ``client`` names."""

    def __init__(self, client: EndpointClient) -> None:
        self._client = client

    @property
    def name(self) -> str:
        """What the record says did it."""
        return self._client.name

    async def transcribe(self, sound: bytes, ending: str, mime_type: str) -> str:
        """The words in ``sound``, "" where there are none.

        The endpoint goes by ``ending``, without a dot. Raises :class:`LLMError`, whose
        text is for the record. After cancellation the endpoint may still finish its work.
        """
        answer: object = await self._client.post(
            "/audio/transcriptions",
            data={"model": self.name, "response_format": "json"},
            files={"file": (f"voice.{ending}", sound, mime_type)},
        )
        if not isinstance(answer, dict) or not isinstance(answer.get("text"), str):
            raise LLMError("the answer holds no text")
        return str(answer["text"]).strip()

    async def close(self) -> None:
        await self._client.close()

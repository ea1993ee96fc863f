"""Texts as vectors over HTTP: the ``/embeddings`` of an OpenAI-compatible endpoint.

https://platform.openai.com/docs/api-reference/embeddings/create
"""

from typing import Any

from agent.domain.errors import LLMError
from agent.llm.client import OpenAIClient
from agent.llm.vectors import LENGTH_LIMIT, pack_vector

#: Characters of one text that are sent: endpoints refuse what is too long for their model.
TEXT_LIMIT = 2_000


class Embedder:
    """The meaning of texts, as the model that ``client`` names has it."""

    def __init__(self, client: OpenAIClient) -> None:
        self._client = client

    @property
    def name(self) -> str:
        """Vectors can be compared with those of the same name."""
        return self._client.name

    async def embed(self, texts: list[str]) -> list[bytes]:
        """A packed vector (:mod:`agent.llm.vectors`) for each of ``texts``, in order.

        Raises :class:`LLMError`. After cancellation the endpoint may still finish its work.
        """
        body = {
            "model": self.name,
            "input": [text[:TEXT_LIMIT] for text in texts],
            "encoding_format": "float",
        }
        return _vectors(await self._client.post("/embeddings", body=body), len(texts))

    async def close(self) -> None:
        await self._client.close()


def _vectors(answer: Any, count: int) -> list[bytes]:
    data = answer.get("data") if isinstance(answer, dict) else None
    if (
        not isinstance(data, list)
        or len(data) != count
        or not all(isinstance(item, dict) for item in data)
    ):
        raise LLMError(f"the answer holds no {count} embeddings")
    by_place = {item.get("index", place): item.get("embedding") for place, item in enumerate(data)}
    vectors = [by_place.get(place) for place in range(count)]
    if not all(_is_vector(vector) for vector in vectors):
        raise LLMError("an embedding in the answer is no list of numbers")
    return [pack_vector(vector) for vector in vectors if vector]


def _is_vector(vector: Any) -> bool:
    is_list = isinstance(vector, list) and 0 < len(vector) <= LENGTH_LIMIT
    return (
        is_list
        and all(type(number) in (int, float) for number in vector)
        and bool(pack_vector(vector))
    )

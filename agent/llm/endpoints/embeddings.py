"""Texts as vectors over HTTP: the ``/embeddings`` of an OpenAI-compatible endpoint.

A vector is kept with length one, as bytes, and with its signs for looking through many: one bit
for each number. Two texts of like meaning differ in few of them, which one operation on two whole
numbers counts; the few nearest are then compared in full (binary quantisation with rescoring, as
vector databases do it).

https://platform.openai.com/docs/api-reference/embeddings/create
"""

import heapq
import math
from array import array
from collections.abc import Iterable, Sequence
from operator import mul
from typing import Any, Protocol

from agent.domain.errors import LLMError
from agent.llm.endpoints.endpoint_pool import EndpointClient

#: Characters of one text that are sent: endpoints refuse what is too long for their model.
TEXT_LIMIT = 2_000


class TextEmbedder(Protocol):
    """What gives texts a meaning: an :class:`Embedder`, or several of one model."""

    @property
    def name(self) -> str:
        """Vectors can be compared with those of the same name."""
        ...

    async def embed(self, texts: list[str]) -> list[bytes]:
        """As :meth:`Embedder.embed`."""
        ...


class Embedder:
    """The meaning of texts, as the model that ``client`` names has it."""

    def __init__(self, client: EndpointClient) -> None:
        self._client = client

    @property
    def name(self) -> str:
        """Vectors can be compared with those of the same name."""
        return self._client.name

    async def embed(self, texts: list[str]) -> list[bytes]:
        """A packed vector (:func:`pack_vector`) for each of ``texts``, in order.

        Raises :class:`LLMError`. After cancellation the endpoint may still finish its work.
        """
        body = {
            "model": self.name,
            "input": [text[:TEXT_LIMIT] for text in texts],
            "encoding_format": "float",
        }
        return _vectors(await self._client.post("/embeddings", json=body), len(texts))

    async def close(self) -> None:
        await self._client.close()


def _vectors(answer: object, count: int) -> list[bytes]:
    data = answer.get("data") if isinstance(answer, dict) else None
    if (
        not isinstance(data, list)
        or len(data) != count
        or not all(isinstance(item, dict) for item in data)
    ):
        raise LLMError(f"the answer holds no {count} embeddings")
    by_index = {item.get("index", index): item.get("embedding") for index, item in enumerate(data)}
    vectors = [by_index.get(index) for index in range(count)]
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


#: Numbers of a vector, at most.
LENGTH_LIMIT = 8_192


def pack_vector(numbers: Sequence[float]) -> bytes:
    """``numbers``, brought to length one, four bytes each; b"" for what has no direction."""
    length = math.sqrt(sum(map(mul, numbers, numbers)))
    return (
        array("f", [number / length for number in numbers]).tobytes()
        if 0 < length < math.inf
        else b""
    )


def sign_bits(vector: bytes) -> bytes:
    """One bit for each number of a packed vector: whether it is positive."""
    bits = 0
    for number in array("f", vector):
        bits = bits << 1 | (number > 0)
    return bits.to_bytes((len(vector) // 4 + 7) // 8, "big")


def cosine_similarity(one: bytes, other: bytes) -> float:
    """The cosine of two packed vectors, 1 for the same direction; 0 where they are of different
    kinds."""
    return sum(map(mul, array("f", one), array("f", other))) if len(one) == len(other) else 0.0


def find_nearest(vector: bytes, notes: Iterable[tuple[int, bytes]], count: int) -> list[int]:
    """Keys of the ``count`` of ``notes`` (keys with their signs) that differ in the fewest signs,
    the nearest first."""
    own = sign_bits(vector)
    wanted, size = int.from_bytes(own, "big"), len(own)
    distances = (
        ((int.from_bytes(bits, "big") ^ wanted).bit_count(), pk)
        for pk, bits in notes
        if len(bits) == size
    )
    return [pk for _, pk in heapq.nsmallest(count, distances)]

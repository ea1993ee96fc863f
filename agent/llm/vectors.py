"""Meaning as numbers: vectors of length one as bytes, and their signs for looking through many.
Pure.

The signs of a vector are one bit for each number. Two texts of like meaning differ in
few of them, which one operation on two whole numbers counts; the few nearest are
then compared in full. Sources: binary quantisation with rescoring, as vector databases do it.
"""

import heapq
import math
from array import array
from collections.abc import Iterable, Sequence
from operator import mul

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

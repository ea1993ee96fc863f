"""How much one JSON message may decode to, counted in its bytes before it is decoded.

A message is decoded on the event loop, and everything else waits. How long that takes depends
less on its bytes than on its values: two bytes of JSON are a list of 60 bytes of memory.
"""

MAX_CONTAINERS = 50_000
"""Objects and lists of one message. Each may cost 3 µs with the pass of the garbage collector that
it brings, so that these take less than 0.2 s."""
MAX_VALUES = 200_000
"""Values of one message, objects and lists among them. A text with a key of its own costs 0.8 µs,
so that these take less than 0.2 s."""
TOO_MANY_VALUES = "more values than a message may have"
"""In the error for a message that is beyond one of the two."""
_OTHER_BYTES = bytes(set(range(256)) - set(b'",[{'))


def has_too_many_values(text: bytes) -> bool:
    """Whether the JSON ``text`` is beyond one of the two limits, found in 40 ms for 8 MiB."""
    if len(text) <= MAX_CONTAINERS:
        return False
    containers, values = count_values(text)
    return containers > MAX_CONTAINERS or values > MAX_VALUES


def count_values(text: bytes) -> tuple[int, int]:
    """The objects and lists of the JSON ``text``, and its values: each, an empty object or list
    twice. With far more texts than are allowed, they alone are counted.

    Of a text that is no JSON, what comes before the first error is counted as in one that is.
    """
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")  # an escaped quote ends no text
    signs = plain.translate(None, _OTHER_BYTES)
    # Each text is a value, or a key with one. Beyond the limit it is not worth a closer look.
    from_texts = signs.count(b'"') // 4
    if from_texts > MAX_VALUES:
        return 0, from_texts
    # Two quotes side by side enclose no sign, or stand between two texts: either way what
    # follows is as much inside of a text, or outside, as before.
    outside = b"".join(signs.replace(b'""', b"").split(b'"')[::2])
    # Each value is the first of a list or object, or comes after a comma.
    return len(outside) - outside.count(b","), max(len(outside), from_texts)

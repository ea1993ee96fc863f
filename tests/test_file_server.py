"""The file server of the suite: that its lies are what they say."""

import gzip
import socket
import zlib

import pytest

from tests import file_server as server


async def test_a_client_that_leaves_is_noticed(file_server):
    file_server.serve("/", server.never_answers())
    with socket.create_connection(("127.0.0.1", file_server.port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        await file_server.wait_for_requests(1)
        with pytest.raises(AssertionError, match="the end of all connections"):
            await file_server.wait_until_unused(timeout=0.05)
    await file_server.wait_until_unused()


def test_a_bomb_is_small_and_unpacks_to_its_size():
    for encoding, wbits in {"gzip": 31, "deflate": 15, "raw": -15}.items():
        packed = server.packed(encoding, 2)
        assert len(packed) < 10_000
        assert len(zlib.decompress(packed, wbits)) == 2 * 2**20


def test_the_stream_without_end_is_valid_and_empty():
    start, first = (piece for piece, _ in zip(server.gzip_without_end(), range(2), strict=False))
    assert zlib.decompressobj(31).decompress(start + first) == b""
    assert start == gzip.compress(b"")[:10]

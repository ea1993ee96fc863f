"""The file server of the suite: that its lies are what they say."""

import asyncio
import gzip
import socket
import zlib

import pytest

from tests import file_server as server
from tests.file_server import FileServer, ScriptedNames


async def test_an_answer_is_what_was_told_and_the_request_is_kept(file_server: FileServer):
    file_server.serve("/a", server.sends(b"x", "image/png", status=201, x_more="1"))
    answer = await _asked(file_server, b"POST /a?b HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi")
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert answer.endswith(b"Content-Type: image/png\r\nContent-Length: 1\r\nX-More: 1\r\n\r\nx")
    request = file_server.requests[0]
    assert (request.method, request.target, request.body) == ("POST", "/a?b", b"hi")


async def test_what_was_not_told_is_not_found(file_server):
    assert (await _asked(file_server)).startswith(b"HTTP/1.1 404 ")


async def test_a_wrong_length_is_claimed(file_server):
    file_server.serve("/", server.claims_length(b"x", 99))
    assert (await _asked(file_server)).endswith(b"Content-Length: 99\r\n\r\nx")


async def test_a_drip_comes_byte_by_byte_and_ends(file_server):
    file_server.serve("/", server.drips(b"abc", pause=0))
    assert (await _asked(file_server)).endswith(b"\r\n\r\nabc")


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


async def test_names_answer_in_turn_and_the_last_answer_stays():
    names = ScriptedNames(a_test=[["1.1.1.1"], ["2.2.2.2"]])
    assert [await names("a.test") for _ in range(3)] == [["1.1.1.1"], ["2.2.2.2"], ["2.2.2.2"]]
    with pytest.raises(socket.gaierror):
        await names("b.test")


async def _asked(files: FileServer, request: bytes = b"GET / HTTP/1.1\r\n\r\n") -> bytes:
    """The whole answer to ``request`` as it stands on the wire."""
    reader, writer = await asyncio.open_connection("127.0.0.1", files.port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer

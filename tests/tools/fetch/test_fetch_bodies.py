"""Bodies that are too large, too slow, packed, cut off or not what they claim, over real HTTP."""

import asyncio
import gzip
import resource
import zlib
from collections.abc import AsyncIterator

import pytest

from tests import file_server as server
from tests.file_server import FileServer
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import Fetcher
from tools.fetch.pinned_session import PIECE, BodyDecoder
from tools.fetch.request import (
    ConnectionFailed,
    FetchError,
    FetchRequest,
    TookTooLong,
    TooLarge,
    UnreadableAnswer,
)

MIB = 2**20
TEXT = b"the quick brown fox" * 50_000


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(AllowList.parse(["127.0.0.1"]))
    yield fetcher
    await fetcher.close()


async def error_of(
    fetcher: Fetcher, files: FileServer, reply: server.Reply, **limits
) -> FetchError:
    """What a download of ``reply`` raises; its connection is gone by then."""
    with pytest.raises(FetchError) as raised:
        await fetcher.fetch(FetchRequest(files.serve("/", reply), **{"seconds": 20, **limits}))
    await files.wait_until_unused()
    return raised.value


async def test_bodies_that_come_side_by_side_take_the_loop_one_piece_at_a_time(
    fetcher, file_server
):
    url = file_server.serve("/", server.sends(bytes(MIB)))
    async with fetcher._turn_to_read:
        downloads = [asyncio.create_task(fetcher.fetch(FetchRequest(url))) for _ in range(4)]
        await file_server.wait_for_requests(4)
        assert not (await asyncio.wait(downloads, timeout=0.1))[0]
    assert [len((await download).body) for download in downloads] == [MIB] * 4


# --- Size -----------------------------------------------------------------------


async def test_a_body_of_exactly_the_limit_comes(fetcher, file_server):
    url = file_server.serve("/", server.sends(TEXT))
    assert (await fetcher.fetch(FetchRequest(url, max_bytes=len(TEXT)))).body == TEXT


async def test_a_body_that_claims_more_than_the_limit_is_not_read(fetcher, file_server):
    reply = server.says_raw(server.head(200, {"Content-Length": str(2**40)}), is_held=True)
    error = await error_of(fetcher, file_server, reply, max_bytes=MIB)
    assert isinstance(error, TooLarge)
    assert error.text == "该网址的内容超过 1 MiB，请不要重试。"


@pytest.mark.parametrize("size", [100, MIB])
async def test_a_body_without_end_is_cut_at_the_limit(fetcher, file_server, size):
    reply = server.sends_endlessly(bytes(size))
    assert isinstance(await error_of(fetcher, file_server, reply, max_bytes=100_000), TooLarge)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_bomb_is_cut_at_the_limit_and_takes_no_memory(fetcher, file_server, encoding):
    reply = server.bombs(encoding, mebibytes=256)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert isinstance(await error_of(fetcher, file_server, reply, max_bytes=4 * MIB), TooLarge)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 * 1024  # KiB


async def test_a_packed_body_that_unpacks_to_nothing_for_ever_is_cut_at_the_limit(
    fetcher, file_server
):
    start = server.head(200, {"Content-Encoding": "gzip"})
    reply = server.Reply(
        lambda: (piece for part in ([start], server.gzip_without_end()) for piece in part)
    )
    assert isinstance(await error_of(fetcher, file_server, reply, max_bytes=MIB), TooLarge)


# --- Packed bodies --------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("X-GZIP ", gzip.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", zlib.compress(TEXT, wbits=-15)),
        ("identity", TEXT),
        ("gzip", b""),
    ],
)
async def test_a_packed_body_is_unpacked(fetcher, file_server, encoding, packed):
    url = file_server.serve("/", server.sends(packed, content_encoding=encoding))
    assert (await fetcher.fetch(FetchRequest(url))).body == (TEXT if packed else b"")


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress", "nonsense"])
async def test_an_encoding_that_was_not_asked_for_is_unreadable(fetcher, file_server, encoding):
    reply = server.sends(gzip.compress(TEXT), content_encoding=encoding)
    assert isinstance(await error_of(fetcher, file_server, reply), UnreadableAnswer)
    assert file_server.requests[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize(
    "packed",
    [b"not packed", gzip.compress(TEXT) + b"more", gzip.compress(b"") * 1000],
    ids=["plain", "followed by more", "many streams"],
)
async def test_a_packed_body_that_is_none_is_unreadable(fetcher, file_server, packed):
    assert isinstance(
        await error_of(fetcher, file_server, server.sends(packed, content_encoding="gzip")),
        UnreadableAnswer,
    )


async def test_a_packed_body_that_stops_in_the_middle_is_incomplete(fetcher, file_server):
    reply = server.sends(gzip.compress(TEXT)[:-9], content_encoding="gzip")
    assert isinstance(await error_of(fetcher, file_server, reply), ConnectionFailed)


def test_unpacking_goes_piece_by_piece():
    pieces = list(BodyDecoder("gzip").pieces(server.packed("gzip", 4)))
    assert max(map(len, pieces)) == PIECE
    assert sum(map(len, pieces)) == 4 * MIB


# --- Lies and slowness ----------------------------------------------------------


async def test_a_body_shorter_than_claimed_is_incomplete(fetcher, file_server):
    error = await error_of(fetcher, file_server, server.claims_length(b"short", 1000))
    assert isinstance(error, ConnectionFailed)
    assert error.is_retryable


async def test_a_body_longer_than_claimed_is_unreadable(fetcher, file_server):
    reply = server.says_raw(server.head(200, {"Content-Length": "4"}) + b"0123456789")
    assert isinstance(await error_of(fetcher, file_server, reply), UnreadableAnswer)


@pytest.mark.parametrize("length", ["-1", "1e3", "1, 2", "x"])
async def test_a_length_that_is_no_number_is_unreadable(fetcher, file_server, length):
    assert isinstance(
        await error_of(fetcher, file_server, server.claims_length(b"x", length)), UnreadableAnswer
    )


async def test_a_broken_chunk_is_no_body(fetcher, file_server):
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n"
    assert isinstance(
        await error_of(fetcher, file_server, server.says_raw(raw)),
        ConnectionFailed | UnreadableAnswer,
    )


@pytest.mark.parametrize(
    "raw",
    [b"HTTP/1.1 200 OK\r\nX: " + b"x" * MIB, b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000],
    ids=["one line", "many"],
)
async def test_a_head_without_end_is_unreadable(fetcher, file_server, raw):
    assert isinstance(
        await error_of(fetcher, file_server, server.says_raw(raw, is_held=True)), UnreadableAnswer
    )


async def test_interim_answers_without_end_are_cut_by_the_time(fetcher, file_server):
    reply = server.Reply(
        lambda: server.forever(b"HTTP/1.1 100 Continue\r\n\r\n"), pause=server.PAUSE
    )
    assert isinstance(await error_of(fetcher, file_server, reply, seconds=0.3), TookTooLong)


async def test_an_answer_that_drips_is_cut_by_the_time(fetcher, file_server):
    assert isinstance(
        await error_of(fetcher, file_server, server.drips(), seconds=0.3), TookTooLong
    )


async def test_an_answer_that_drips_and_ends_in_time_comes(fetcher, file_server):
    url = file_server.serve("/", server.drips(b"slow", pause=0))
    assert (await fetcher.fetch(FetchRequest(url))).body == b"slow"


async def test_a_connection_that_ends_without_an_answer_may_be_tried_again(fetcher, file_server):
    error = await error_of(fetcher, file_server, server.hangs_up())
    assert isinstance(error, ConnectionFailed)
    assert error.is_retryable

"""From what a client names to our own copy, within what one message may have."""

import asyncio
import base64
from functools import partial

import pytest

from agent.domain.file_types import PICTURES
from agent.domain.types import MediaRef, MediaUnavailable
from agent.media.downloads import (
    NO_ADDRESS,
    NOT_BASE64,
    TOO_MUCH,
    WRONG_KIND,
    DownloadAllowance,
    MediaDownloader,
    decode_base64,
)
from agent.media.file_store import FileStore
from tests.agent.media.perceiving import Client
from tests.agent.talk import PRIVATE
from tests.file_server import FileServer, sends
from tests.pictures import picture
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import Fetcher
from tools.fetch.request import TooLarge


@pytest.fixture
async def fetcher():
    fetcher = Fetcher(AllowList.parse(["127.0.0.1"]))
    yield fetcher
    await fetcher.close()


@pytest.fixture
def files(tmp_path) -> FileStore:
    return FileStore(tmp_path / "received")


async def got(fetcher, files, ref: MediaRef, *fresh: MediaRef, total: int = 2**20):
    return await MediaDownloader(fetcher, files, Client(fresh=list(fresh))).get(
        PRIVATE, ref, DownloadAllowance(total), PICTURES.__contains__
    )


async def test_the_copy_is_what_the_server_sent_under_the_hash_of_it(
    fetcher, files, file_server: FileServer
):
    content = picture("PNG")
    ref = MediaRef("image", url=file_server.serve("/a", sends(content, "text/html")))
    kept, again = await got(fetcher, files, ref), await got(fetcher, files, ref)
    assert kept == again == files.find(kept.sha256)
    assert (kept.mime, kept.path.read_bytes()) == ("image/png", content)


async def test_each_way_to_have_it_is_tried_once(fetcher, files, file_server: FileServer):
    old = MediaRef("image", url=file_server.serve("/old", sends(status=404)))
    wrong = MediaRef(
        "image", url=file_server.serve("/wrong", sends(b"<html>expired</html>", "image/png"))
    )
    good = MediaRef("image", url=file_server.serve("/good", sends(picture())))
    await got(fetcher, files, old, old, wrong, good)
    assert [request.target for request in file_server.requests] == ["/old", "/wrong", "/good"]


@pytest.mark.parametrize(
    ("ref", "reason"),
    [
        (MediaRef("image"), NO_ADDRESS),
        (MediaRef("image", data="!!!!"), NOT_BASE64),
        (MediaRef("image", data=base64.b64encode(b"no picture").decode()), WRONG_KIND),
        (MediaRef("image", data=base64.b64encode(bytes(3_000)).decode()), TOO_MUCH),
        (MediaRef("image", url="file:///etc/passwd"), "http"),
    ],
)
async def test_what_cannot_be_had_says_why(fetcher, files, ref, reason):
    with pytest.raises(MediaUnavailable, match=reason):
        await got(fetcher, files, ref, total=2_000)


async def test_an_address_of_the_inside_is_not_asked(files, file_server: FileServer):
    strict = Fetcher()
    with pytest.raises(MediaUnavailable, match="not public"):
        await got(strict, files, MediaRef("image", url=file_server.serve("/a", sends(picture()))))
    assert file_server.requests == []


def test_base64_with_line_breaks_is_decoded():
    assert decode_base64("aGVs\nbG8=\n", 100) == b"hello"


async def sized(size: int, limit: int) -> bytes:
    if size > limit:
        raise TooLarge(limit)
    return bytes(size)


async def test_one_file_may_have_all_that_the_others_leave():
    allowance = DownloadAllowance(2**20, sharers=8)
    sizes = [100_000, 500_000, 100_000]
    contents = await asyncio.gather(*(allowance.spend(partial(sized, size)) for size in sizes))
    assert [len(content) for content in contents] == sizes
    assert allowance.left == 2**20 - sum(sizes)


async def test_all_together_never_have_more_than_the_message_may():
    allowance = DownloadAllowance(2**20, sharers=4)
    tasks = [allowance.spend(partial(sized, 400_000)) for _ in range(4)]
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(outcome, bytes) for outcome in outcomes) == 2
    assert all(isinstance(outcome, bytes | TooLarge) for outcome in outcomes)

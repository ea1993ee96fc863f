"""The forms of media on their way out: as Base64 while there is room, for all of a message
together."""

from pathlib import Path
from typing import Any

import pytest

from agent.domain.errors import MediaError
from onebot.gateway import media as media
from onebot.protocol.segments import Base64File, Segment


@pytest.fixture
def pictures(settings: Any, tmp_path: Path) -> list[Segment]:
    """Three pictures of 600 bytes in the media folder."""
    settings.MEDIA_DIR = tmp_path
    paths = [tmp_path / f"{number}.png" for number in range(3)]
    for path in paths:
        path.write_bytes(bytes(600))
    return [{"type": "image", "data": {"file": f"file://{path}"}} for path in paths]


def is_inline(segment: Segment) -> bool:
    return isinstance(segment["data"]["file"], Base64File)


def test_files_share_the_room_of_a_message_and_the_others_go_by_path(pictures: list[Segment]):
    assert [is_inline(one) for one in media.to_first_attempt(pictures, 1_300)] == [
        True,
        True,
        False,
    ]


def test_what_does_not_fit_into_one_frame_together_is_given_up(pictures: list[Segment]):
    assert all(map(is_inline, media.to_base64_attempt(pictures, 1_800)))
    with pytest.raises(MediaError, match=r"2\.png is too large"):
        media.to_base64_attempt(pictures, 1_300)


def test_a_full_frame_is_smaller_than_what_clients_take():
    assert media.INLINE_ROOM_BYTES * 4 // 3 < media.MAX_FRAME_BYTES == 48 * 2**20

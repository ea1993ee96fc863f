"""Large frames made small: files out of the text and onto the disk, long texts cut, values bounded
before anything is decoded."""

import base64
import hashlib
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from onebot.protocol.frames import (
    MAX_BYTES,
    MAX_VALUES,
    SLICE,
    TEXT_BYTES,
    FrameLimitExceeded,
    cut_large_values,
)
from onebot.protocol.media_refs import parse_media_refs
from onebot.protocol.segments import parse_message

CONTENT = hashlib.shake_256(b"a picture").digest(3 * 2**20 + 1)
TEXT = base64.b64encode(CONTENT).decode()
TEXTS = st.text(max_size=600) | st.text("\\\"/'{}[],:u0\u4e2d\U0001f600", max_size=600)
ANY_JSON = st.recursive(
    st.none() | st.integers() | TEXTS, lambda one: st.lists(one) | st.dictionaries(TEXTS, one)
)


class Files:
    """Where the files of a frame go."""

    def __init__(self) -> None:
        self.contents: list[bytes] = []
        self.longest_piece = 0

    def keep(self, pieces: Iterable[bytes]) -> str:
        content = list(pieces)
        self.longest_piece = max(self.longest_piece, *map(len, content))
        self.contents.append(b"".join(content))
        return f"kept://{hashlib.sha256(self.contents[-1]).hexdigest()}"


def small(frame: str) -> tuple[Any, Files]:
    files = Files()
    return json.loads(cut_large_values(frame.encode(), files.keep)), files


KEPT = f"kept://{hashlib.sha256(CONTENT).hexdigest()}"


@given(ANY_JSON, st.booleans())
def test_what_holds_nothing_large_stays_as_it_is(value, is_ascii):
    assert small(json.dumps(value, ensure_ascii=is_ascii))[0] == value


@pytest.mark.parametrize(
    "written",
    [
        f'"base64://{TEXT}"',
        '"base64://{}"'.format(TEXT.replace("/", "\\/").replace("=", "\\u003d")),
        '"base64:\\/\\/{}"'.format(TEXT.replace("+", "\\u002B")),
        '"base64://{}"'.format("\\r\\n".join(TEXT[at : at + 76] for at in range(0, len(TEXT), 76))),
    ],
    ids=["plain", "slashes escaped", "plus signs escaped", "in lines"],
)
def test_a_file_is_kept_in_slices_however_its_base64_is_written(written):
    frame, files = small(f'{{"message":[{{"type":"image","data":{{"file":{written}}}}}]}}')
    assert frame == {"message": [{"type": "image", "data": {"file": KEPT}}]}
    assert files.contents == [CONTENT]
    assert files.longest_piece <= SLICE


def test_a_file_without_a_prefix_is_known_by_its_key():
    assert small(f'{{"data":{{"base64" : "{TEXT}"}}}}')[0] == {"data": {"base64": KEPT}}


def test_a_file_inside_a_cq_code_is_kept_and_found_by_its_hash():
    frame, files = small(
        json.dumps({"message": f"看😀[CQ:image,file=base64://{TEXT}]吧"}, ensure_ascii=False)
    )
    segments = parse_message(frame["message"])
    assert [segment["type"] for segment in segments] == ["text", "image", "text"]
    assert parse_media_refs(segments)[0].sha256 == hashlib.sha256(files.contents[0]).hexdigest()


def test_what_only_looks_like_base64_is_said_to_be_none():
    frame, files = small(json.dumps({"file": "base64://" + "A=" * 5_000}))
    assert (frame, files.contents) == ({"file": "base64://..."}, [])


@pytest.mark.parametrize("sign", ["x", "字", "😀", '"', "\\", "\n", "\x01"])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_the_rest_of_a_long_text_is_told_by_its_length(sign, is_ascii):
    text = "a" + sign * (TEXT_BYTES // 2)
    frame, _ = small(
        json.dumps({"a": text + sign * TEXT_BYTES, "b": 1, "c": text}, ensure_ascii=is_ascii)
    )
    kept, _, left_out = frame["a"].partition("……（略去 ")
    assert text.startswith(kept[: len(text)])
    assert left_out.endswith(" 字节）")
    assert (
        TEXT_BYTES - 12 <= len(json.dumps(kept, ensure_ascii=is_ascii).encode()) - 2 <= TEXT_BYTES
    )
    assert frame["b"] == 1
    assert len(frame["c"]) < 40  # nothing was left for it


def test_ten_thousand_long_segments_are_still_a_message():
    segments = [
        {"type": "text", "data": {"text": f"{number} " + "字，" * 1_000}}
        for number in range(10_000)
    ]
    frame, _ = small(json.dumps({"message": segments}, ensure_ascii=False))
    assert len(frame["message"]) == 10_000
    assert frame["message"][0] == segments[0]


@pytest.mark.parametrize(
    "frame",
    [
        "[" + "1," * MAX_VALUES + "1]",
        "[" + "[]," * MAX_VALUES + "1]",
        "[" + '"",' * MAX_VALUES + "1]",
        "[" + '{"a":{}},' * (MAX_VALUES // 2) + "1]",
        "[" + '"",' * (2 * MAX_VALUES) + "1]",
        "[" + "1234567890," * (MAX_BYTES // 11) + "1]",
        "[" + f'"{"x" * 200}",' * (MAX_BYTES // 200) + "1]",
        " " * (MAX_BYTES + 1),
        '"' * (5 * MAX_VALUES),
    ],
    ids=[
        "numbers",
        "lists",
        "texts",
        "objects",
        "more texts",
        "long numbers",
        "longer texts",
        "blanks",
        "quotes",
    ],
)
def test_a_frame_of_too_many_values_is_refused_before_it_is_decoded(frame):
    with pytest.raises(FrameLimitExceeded):
        cut_large_values(frame.encode(), Files().keep)


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "{",
        '"',
        '{"a":"',
        '"' + "x" * 500,
        '"\\',
        '"' + "\\u12" * 500 + '"',
        "base64://" + "A" * 9_000,
    ],
)
def test_what_is_no_json_is_none_afterwards(frame):
    with pytest.raises(json.JSONDecodeError):
        small(frame)

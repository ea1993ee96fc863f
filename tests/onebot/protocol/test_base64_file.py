"""Files in frames: what the client decodes is what was read."""

import base64
import io
import json
from pathlib import Path

import pytest

from onebot.protocol import segments
from onebot.protocol.actions import encode_action
from onebot.protocol.segments import encode_base64, read_base64


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 11, 12, 13, 25])
def test_a_file_of_any_length_is_the_base64_of_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
):
    monkeypatch.setattr(segments, "_PIECE", 12)
    content = bytes(range(length))
    (tmp_path / "f").write_bytes(content)
    with (tmp_path / "f").open("rb", buffering=0) as file:
        whole = read_base64(file, 25)
    assert whole is not None
    assert base64.b64decode("".join(whole.pieces), validate=True) == content
    assert whole.pieces == encode_base64(content).pieces
    assert whole.size == length


def test_a_file_larger_than_the_room_is_not_read(tmp_path: Path):
    (tmp_path / "f").write_bytes(b"12345")
    with (tmp_path / "f").open("rb", buffering=0) as file:
        assert read_base64(file, 4) is None
        assert file.tell() == 0


def test_a_file_that_grows_while_it_is_read_is_given_up(tmp_path: Path):
    class Growing(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return b"x" * 4

    (tmp_path / "f").touch()
    with Growing(tmp_path / "f") as file:
        assert read_base64(file, 10) is None


def test_a_file_read_in_small_portions_is_one_text(tmp_path: Path):
    class Slow(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(1) or b""

    (tmp_path / "f").write_bytes(b"seven b")
    with Slow(tmp_path / "f") as file:
        whole = read_base64(file, 10)
    assert whole is not None
    assert base64.b64decode("".join(whole.pieces), validate=True) == b"seven b"


def test_files_stand_in_the_frame_where_they_belong_and_leave_the_rest_as_it_was():
    params = {
        "a": encode_base64(b"first"),
        "text": 'base64:// "你好"\ud800 \\u0000',
        "list": [encode_base64(b"second"), encode_base64(b"")],
    }
    frame = json.loads(encode_action("x", params, "e"))
    assert frame["params"] == {
        "a": "base64://" + base64.b64encode(b"first").decode(),
        "text": 'base64:// "你好"\ufffd \\u0000',
        "list": ["base64://" + base64.b64encode(b"second").decode(), "base64://"],
    }


def test_what_is_neither_json_nor_a_file_is_refused():
    with pytest.raises(TypeError):
        encode_action("x", {"n": object()}, "e")

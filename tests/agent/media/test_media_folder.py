"""The media folder: nothing else leaves the machine, whatever has become of a file since it was
found."""

import os
from pathlib import Path
from typing import Any

import pytest

from agent.domain.errors import MediaError
from agent.media import media_folder
from agent.media.media_folder import locate_media_file, open_media_file


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    """The media folder, with one picture in a folder of its own, and a secret beside it."""
    settings.MEDIA_DIR = tmp_path / "media"
    (settings.MEDIA_DIR / "cats").mkdir(parents=True)
    (settings.MEDIA_DIR / "cats" / "cat.png").write_bytes(b"cat")
    (tmp_path / "secret").write_bytes(b"secret")
    return Path(settings.MEDIA_DIR)


def content(path: Path) -> bytes:
    with open_media_file(path) as file:
        return file.read()


def found(name: str) -> Path:
    path = locate_media_file(name)
    assert path is not None
    return path


def test_a_file_is_found_and_read(folder: Path):
    assert content(found("cats/cat.png")) == b"cat"
    assert media_folder.regular_file_size(found("cats/cat.png")) == 3


def test_a_link_within_the_folder_is_followed_when_it_is_looked_for(folder: Path):
    (folder / "link").symlink_to("cats/cat.png")
    assert content(found("link")) == b"cat"


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "cats/../../secret", "\0"])
def test_what_lies_outside_is_not_found(folder: Path, name: str):
    assert locate_media_file(name) is None


def test_a_media_folder_that_is_a_link_itself_is_one(folder: Path, settings: Any, tmp_path: Path):
    (tmp_path / "elsewhere").symlink_to(folder)
    settings.MEDIA_DIR = tmp_path / "elsewhere"
    assert content(found("cats/cat.png")) == b"cat"


def test_a_file_that_became_a_link_is_not_opened(folder: Path):
    path = found("cats/cat.png")
    path.unlink()
    path.symlink_to(folder.parent / "secret")
    with pytest.raises(MediaError):
        content(path)


def test_a_folder_on_the_way_that_became_a_link_is_not_entered(folder: Path):
    path = found("cats/cat.png")
    (folder / "cats").rename(folder / "dogs")
    (folder.parent / "cat.png").write_bytes(b"secret")
    (folder / "cats").symlink_to(folder.parent)
    with pytest.raises(MediaError):
        content(path)


def test_a_pipe_is_refused_without_waiting_for_a_writer(folder: Path):
    os.mkfifo(folder / "pipe")
    assert media_folder.regular_file_size(found("pipe")) is None
    with pytest.raises(MediaError, match="pipe is not a regular file"):
        content(found("pipe"))


@pytest.mark.parametrize(
    "path", ["cats", "gone.png", "cats/cat.png/x", "", "../secret", "cats/../../secret"]
)
def test_what_is_no_file_of_the_folder_is_refused_in_words(folder: Path, path: str):
    with pytest.raises(MediaError):
        content(folder / path)


def test_another_place_is_refused_by_its_path(folder: Path):
    with pytest.raises(MediaError, match="not in the media folder"):
        content(folder.parent / "secret")


def test_our_own_copy_is_read_and_no_name_leads_to_it(folder: Path, settings: Any, tmp_path: Path):
    settings.RECEIVED_DIR = tmp_path / "received"
    copy = settings.RECEIVED_DIR / "ab" / "abcd"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"cat")
    (copy.parent / "link").symlink_to(tmp_path / "secret")
    assert content(copy) == b"cat"
    assert (locate_media_file("../received/ab/abcd"), locate_media_file(str(copy))) == (None, None)
    for elsewhere in (copy.parent / "link", copy.parent / ".." / ".." / "secret"):
        with pytest.raises(MediaError):
            content(elsewhere)

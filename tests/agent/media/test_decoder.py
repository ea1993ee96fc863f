"""Pictures made fit for a model, and what is refused instead."""

from pathlib import Path

import pytest
from PIL import Image, PngImagePlugin

from agent.media.image_decoder import ORIENTATION, ImageLimits, answer_job, process_image
from tests.pictures import BLUE, HEIC, animated, colour_of, noise, opened, picture, plain, saved

LIMITS = ImageLimits(side=256, size=2**16, pixels=10**6)


def made(content: bytes, folder: Path, limits: ImageLimits = LIMITS) -> bytes:
    """What a model is shown of ``content``."""
    source, target = folder / "source", folder / "target"
    source.write_bytes(content)
    process_image(source, target, limits)
    return (target if target.exists() else source).read_bytes()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP"])
def test_a_small_still_picture_stays_as_it_is(kind, tmp_path):
    content = picture(kind)
    assert made(content, tmp_path) == content


@pytest.mark.parametrize(
    "content", [picture("BMP"), HEIC, picture("AVIF")], ids=["BMP", "HEIC", "AVIF"]
)
def test_a_format_of_its_own_becomes_a_common_one(content, tmp_path):
    result = opened(made(content, tmp_path))
    assert (result.format, result.size) == ("JPEG", (64, 48))


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_an_animation_becomes_its_first_frame(kind, tmp_path):
    result = made(animated(kind), tmp_path)
    assert colour_of(result) == "red"
    assert getattr(opened(result), "n_frames", 1) == 1


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_the_longest_side_is_bounded_and_the_form_kept(kind, tmp_path):
    width, height = opened(made(saved(plain(size=(900, 300)), kind), tmp_path)).size
    assert max(width, height) <= 256
    assert abs(width / height - 3) < 0.05


def test_a_picture_of_too_many_bytes_is_made_smaller_until_it_has_fewer(tmp_path):
    content = saved(noise((250, 250)), "PNG")
    assert len(content) > 2**13
    assert len(made(content, tmp_path, LIMITS._replace(size=2**13))) <= 2**13


def test_transparency_is_kept_where_there_is_room_for_it(tmp_path):
    clear = Image.new("RGBA", (400, 300), (255, 0, 0, 0))
    assert opened(made(saved(clear), tmp_path)).mode == "RGBA"


def test_a_picture_held_sideways_is_set_upright(tmp_path):
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    result = opened(made(saved(plain(size=(60, 40)), "JPEG", exif=exif), tmp_path))
    assert result.size == (40, 60)
    assert result.getexif().get(ORIENTATION, 1) == 1


def test_a_cut_off_jpeg_is_not_passed_on(tmp_path):
    source = tmp_path / "source"
    source.write_bytes(saved(noise((200, 200)), "JPEG")[:-3000])
    outcome = answer_job({"source": str(source), "target": str(tmp_path / "t"), **job()})
    assert "error" in outcome


def job(**changes: object) -> dict[str, object]:
    return {"side": 256, "bytes": 2**16, "pixels": 10**6, "always": False} | changes


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded(tmp_path):
    source = tmp_path / "bomb.png"
    plain(size=(4000, 4000)).save(source)
    outcome = answer_job({"source": str(source), "target": str(tmp_path / "t"), **job()})
    assert "too many pixels" in outcome["error"]


@pytest.mark.parametrize(
    "content",
    [b"", b"GIF89a", b"\x89PNG\r\n\x1a\nrubbish", b"\xff\xd8\xff" + bytes(100), b"BM" + bytes(60)],
)
def test_a_broken_file_is_an_answer_and_no_crash(content, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(content)
    assert answer_job({"source": str(source), "target": str(tmp_path / "t"), **job()})["error"]


def test_a_bomb_in_a_pictures_text_is_survived(tmp_path):
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Comment", "0" * (64 * 2**20), zip=True)
    source = tmp_path / "source.png"
    plain().save(source, pnginfo=notes)
    assert "error" in answer_job({"source": str(source), "target": str(tmp_path / "t"), **job()})


def test_a_thumbnail_is_made_anew_of_any_picture(tmp_path):
    content = picture("JPEG", BLUE)
    result = made(content, tmp_path, LIMITS._replace(always=True))
    assert (tmp_path / "target").exists()
    assert colour_of(result) == "blue"

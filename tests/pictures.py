"""Real pictures of every format, made by the test that wants them."""

import io
from pathlib import Path
from typing import Any

from pi_heif import register_heif_opener
from PIL import Image

register_heif_opener()

#: Red, of the usual size; kept, because what is installed reads this format and does not write it.
HEIC = (Path(__file__).parent / "payloads" / "red.heic").read_bytes()
SIZE = (64, 48)
RED, BLUE, GREEN = (200, 30, 30), (30, 30, 200), (30, 180, 30)


def plain(colour: tuple[int, int, int] = RED, size: tuple[int, int] = SIZE) -> Image.Image:
    return Image.new("RGB", size, colour)


def noise(size: tuple[int, int], seed: int = 0) -> Image.Image:
    """A picture that hardly compresses."""
    grey = Image.effect_noise((size[0] // 2, size[1] // 2), 90).resize(size)
    return Image.merge(
        "RGB",
        (
            grey,
            grey.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
            grey.point(lambda v: (v + seed) % 256),
        ),
    )


def saved(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """``image`` as a file of that format: JPEG, PNG, GIF, WEBP, BMP or AVIF."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def picture(
    kind: str = "PNG",
    colour: tuple[int, int, int] = RED,
    size: tuple[int, int] = SIZE,
    **options: Any,
) -> bytes:
    return saved(plain(colour, size), kind, **options)


def animated(kind: str = "GIF") -> bytes:
    """Three frames: red, blue, green."""
    frames = [plain(colour) for colour in (RED, BLUE, GREEN)]
    return saved(frames[0], kind, save_all=True, append_images=frames[1:], duration=100)


def opened(content: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(content))
    image.load()
    return image


def colour_of(content: bytes) -> str:
    """``red``, ``blue`` or ``green``: what is most of the picture's first frame."""
    pixel = opened(content).convert("RGB").resize((1, 1)).getpixel((0, 0))
    assert isinstance(pixel, tuple)
    return ("red", "green", "blue")[max(range(3), key=lambda band: pixel[band])]

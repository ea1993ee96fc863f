"""The program in which pictures are decoded: ``python -m agent.media.image_decoder``.

Pictures come from strangers, and decoders have had holes. So they are opened in a
process that holds nothing else, may not use more than a fixed amount of memory, and
lets everything else go first. It reads one job a line from its standard input and
answers with one line of JSON: ``{"mime", "width", "height", "copied"}`` or ``{"error"}``.
It ends with its input.
"""

import contextlib
import io
import json
import os
import struct
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from pi_heif import register_heif_opener
from PIL import Image, ImageFile, ImageOps

try:
    import resource
except ImportError:  # not a Unix
    resource = None  # type: ignore[assignment]

#: Address space of the process, in bytes; the largest picture that is allowed takes some 300 MiB.
MEMORY_LIMIT = 2**30
#: Formats that every vision endpoint takes, and that are passed on as they are when they are small
#: enough.
PASSED_ON = {
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",
    "PNG": "image/png",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "AVIF", "HEIF")
#: Bytes at the end of a JPEG in which its end mark stands.
TAIL = 4096
#: What Pillow and its plugins raise for broken files; anything else ends the process, which costs
#: the next job some time.
DECODER_ERRORS = (
    *(
        OSError,
        ValueError,
        SyntaxError,
        MemoryError,
        OverflowError,
        EOFError,
        RuntimeError,
        LookupError,
        TypeError,
    ),
    *(struct.error, zlib.error),
)
JPEG_QUALITIES = (88, 75, 60)
#: The Exif tag that says how the camera was held; 1 is upright.
ORIENTATION = 0x0112


class ImageLimits(NamedTuple):
    """Pixels per side, bytes, and pixels in all; ``always``: re-encode also a picture within the
    limits; ``lossless``: as PNG, which is the same again when it is re-encoded."""

    side: int
    size: int
    pixels: int
    always: bool = False
    lossless: bool = False


def main() -> None:
    """Serve jobs until the input ends."""
    _be_modest()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer
    for line in sys.stdin:
        answers.write(json.dumps(answer_job(json.loads(line))) + "\n")
        answers.flush()


def answer_job(job: dict[str, Any]) -> dict[str, Any]:
    """Do one job; every failure of a decoder is an answer too."""
    try:
        how = (job["always"], job.get("lossless", False))
        limits = ImageLimits(job["side"], job["bytes"], job["pixels"], *how)
        return process_image(Path(job["source"]), Path(job["target"]), limits)
    except DECODER_ERRORS as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def process_image(source: Path, target: Path, limits: ImageLimits) -> dict[str, object]:
    """Make ``source`` a still picture within ``limits``, in ``target``.

    A picture that is one already is left as it is, and no ``target`` made, unless it is
    to be made ``always``. Raises ValueError for one of too many pixels, before any of
    them is decoded.
    """
    with Image.open(source, formats=FORMATS) as image:
        width, height, kind = image.width, image.height, image.format or ""
        if width * height > limits.pixels:
            raise ValueError("too many pixels")
        if not limits.always and _is_fit(image, source, limits):
            return {"mime": PASSED_ON[kind], "width": width, "height": height, "copied": False}
        data, mime = _encoded(_scaled(image, limits.side), limits)
        # Whole or not at all: another job may make the same file.
        part = target.with_suffix(f".{os.getpid()}")
        part.write_bytes(data)
        part.replace(target)
        return {"mime": mime, "width": width, "height": height, "copied": True}


def _is_fit(image: Image.Image, source: Path, limits: ImageLimits) -> bool:
    """Whether the file can be shown as it is: small, upright, one frame, and whole."""
    if (
        image.format not in PASSED_ON
        or max(image.size) > limits.side
        or source.stat().st_size > limits.size
    ):
        return False
    if image.getexif().get(ORIENTATION, 1) not in (0, 1):
        return False
    if image.format in ("JPEG", "MPO"):
        # To decode it only for a look at its end would take most of the time.
        with source.open("rb") as file:
            file.seek(max(0, source.stat().st_size - TAIL))
            return b"\xff\xd9" in file.read()
    if getattr(image, "is_animated", False):
        return False
    image.load()
    return True


def _scaled(image: Image.Image, side: int) -> Image.Image:
    """The first frame, upright, at most ``side`` pixels a side."""
    longest = max(image.size)
    if longest > side:
        # A JPEG can be decoded at a half, a quarter or an eighth of its size, for a fraction of the
        # time.
        image.draft(
            "RGB", (image.width * side * 3 // 4 // longest, image.height * side * 3 // 4 // longest)
        )
    image.seek(0)
    ImageOps.exif_transpose(image, in_place=True)
    mode = "RGBA" if "A" in image.getbands() or "transparency" in image.info else "RGB"
    picture = image if image.mode == mode else image.convert(mode)
    picture.thumbnail((side, side), Image.Resampling.BILINEAR, reducing_gap=2.0)
    return picture


def _encoded(picture: Image.Image, limits: ImageLimits) -> tuple[bytes, str]:
    """``picture`` in no more bytes than it may have, made smaller until it is."""
    side = max(picture.size) if limits.lossless else limits.side
    while limits.lossless:
        data = _saved(picture, "PNG", icc_profile=None)  # a profile may be of any size
        if len(data) <= limits.size:
            return data, "image/png"
        side = side * 5 // 6
        picture.thumbnail((side, side), Image.Resampling.BILINEAR)
    if picture.mode == "RGBA":
        data = _saved(picture, "PNG")
        if len(data) <= limits.size:
            return data, "image/png"
        white = Image.new("RGB", picture.size, "white")
        white.paste(picture, mask=picture.getchannel("A"))
        picture = white
    while True:
        for quality in JPEG_QUALITIES:
            data = _saved(picture, "JPEG", quality=quality)
            if len(data) <= limits.size or side < 64:
                return data, "image/jpeg"
        side = max(picture.size) * 2 // 3
        picture.thumbnail((side, side), Image.Resampling.BILINEAR)


def _saved(picture: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def _be_modest() -> None:
    register_heif_opener(thumbnails=False)
    Image.MAX_IMAGE_PIXELS = None  # the job says how many there may be
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    warnings.simplefilter("ignore")
    with contextlib.suppress(OSError):
        os.nice(10)
    if resource is not None:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


if __name__ == "__main__":
    main()

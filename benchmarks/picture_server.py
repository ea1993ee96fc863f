"""Files, vision model and chat model in one child process: ``python -m benchmarks.picture_server``.

Pictures are JPEGs of 1 MiB, no two of them the same, so that nothing is described from
memory: ``GET /fit/N?delay=MS`` is one of 2000 × 1500 pixels, ``/large/N`` of 4000 × 3000.
``GET /report`` is what was asked for since the last report, with times in monotonic
microseconds. The port is printed on the first line.
"""

import asyncio
import io
import re
from typing import Any

from PIL import Image

from benchmarks.fake_model import HOST, FakeModel, ModelConnection, completion, port_of
from benchmarks.marks import now_us
from benchmarks.speedups import dumps, run

MIB = 2**20
SIZES = {"fit": (2000, 1500), "large": (4000, 3000)}
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_FILE = re.compile(rb"GET /(fit|large)/(\d+)\?delay=(\d+) ")
_HEAD = (
    b"HTTP/1.1 200 X\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
)
_DESCRIBED = {"role": "assistant", "content": "一张很吵的图片"}


class PictureModel(FakeModel):
    """The fake model, with pictures to hand out and a memory of when it was asked for what."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures = {name: jpeg(size) for name, size in SIZES.items()}
        self.downloads: list[tuple[int, int]] = []
        self.visions: list[tuple[int, int]] = []

    def report(self) -> bytes:
        """Begin and end of every download and of every request for a description, and forget
        them."""
        said = dumps(
            {
                "downloads": self.downloads,
                "visions": self.visions,
                "bytes": {n: len(p) for n, p in self.pictures.items()},
            }
        )
        self.downloads, self.visions = [], []
        return said

    def picture(self, name: str, number: int) -> bytes:
        """The picture with a comment that makes it another file."""
        content, comment = self.pictures[name], str(number).encode()
        return content[:2] + b"\xff\xfe" + (len(comment) + 2).to_bytes(2) + comment + content[2:]


class PictureConnection(ModelConnection):
    """Pictures of a request for a description are counted and not kept, lest the rig is what is
    measured."""

    model: PictureModel
    began_us = 0
    awaited = 0
    sent = False

    def data_received(self, data: bytes) -> None:
        if self.awaited:
            self.awaited -= len(data)
            if self.awaited <= 0:
                self.described()
            return
        if not self.buffer:
            self.began_us = now_us()
        _head, end, body = data.partition(b"\r\n\r\n")
        length = LENGTH.search(data)
        if not self.buffer and end and length and b'"bench-vision"' in body[:200]:
            self.awaited = int(length[1]) - len(body)
            return
        super().data_received(data)

    def described(self) -> None:
        self.awaited = 0
        self.model.visions.append((self.began_us, now_us()))
        self.reply(200, completion({"model": "bench-vision"}, _DESCRIBED))

    def on_request(self, head: bytes, body: bytes) -> None:
        if wanted := _FILE.match(head):
            asyncio.get_running_loop().call_later(
                int(wanted[3]) / 1000, self.send, wanted[1].decode(), int(wanted[2])
            )
        elif head.startswith(b"GET /report"):
            self.reply(200, self.model.report())
        else:
            super().on_request(head, body)

    def send(self, name: str, number: int) -> None:
        content = self.model.picture(name, number)
        self.transport.write(_HEAD % len(content) + content)
        self.transport.close()  # once all is written
        self.sent = True

    def connection_lost(self, exc: Exception | None) -> None:
        if self.sent:
            self.model.downloads.append((self.began_us, now_us()))
        super().connection_lost(exc)


def jpeg(size: tuple[int, int]) -> bytes:
    """A photograph of nothing, of about 1 MiB."""
    for step in (2, 3, 4, 6, 8, 12, 16):
        grey = Image.effect_noise((size[0] // step, size[1] // step), 60).resize(
            size, Image.Resampling.BICUBIC
        )
        noise = Image.merge("RGB", (grey, grey.transpose(Image.Transpose.FLIP_LEFT_RIGHT), grey))
        for quality in (95, 90, 85, 80, 70, 60):
            buffer = io.BytesIO()
            noise.save(buffer, "JPEG", quality=quality)
            if 0.9 * MIB < buffer.tell() < 1.1 * MIB:
                return buffer.getvalue()
    raise AssertionError(f"no picture of {size} has 1 MiB")


async def main() -> None:
    loop, model = asyncio.get_running_loop(), PictureModel()
    server = await loop.create_server(lambda: PictureConnection(model), HOST, 0, backlog=4096)
    print(port_of(server), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with_server: Any = main()
    run(with_server)

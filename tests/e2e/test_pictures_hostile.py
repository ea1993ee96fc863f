"""Servers and models that mean harm: a picture keeps its placeholder, the record says why, and the
chat is answered."""

import sys
import zlib
from collections.abc import Callable

import pytest
from PIL import Image

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.e2e.chat import client, words
from tests.e2e.seeing import VISION, answered, image, medium, run_notes, text
from tests.file_server import (
    FileServer,
    Reply,
    bombs,
    claims_length,
    drips,
    hangs_up,
    redirects,
    sends,
    sends_endlessly,
)
from tests.live_server import LiveServer
from tests.pictures import picture, saved
from tests.scripted_model import ScriptedModel, fails, hangs, returns

INSIDE = "not public"


def of_size(png: bytes, pixels: int) -> bytes:
    """A PNG that says that it is as wide and as high as that."""
    head = bytearray(png[12:29])
    head[4:12] = pixels.to_bytes(4, "big") * 2
    return png[:12] + head + zlib.crc32(head).to_bytes(4, "big") + png[33:]


HOSTILE: dict[str, tuple[Callable[[], Reply], str]] = {
    "leads to the metadata of a cloud": (
        lambda: redirects("http://169.254.169.254/latest/meta-data"),
        INSIDE,
    ),
    "leads to this machine": (lambda: redirects("http://[::1]:8000/admin/"), INSIDE),
    "leads to a file": (lambda: redirects("file:///etc/passwd"), "http"),
    "leads in a circle": (lambda: redirects("/a"), "redirect"),
    "unpacks to very much": (lambda: bombs(mebibytes=64), "more than may be fetched"),
    "has no end": (sends_endlessly, "more than may be fetched"),
    "drips": (drips, "in time"),
    "hangs up": (hangs_up, "connect"),
    "is shorter than it says": (lambda: claims_length(picture(), 10_000), "not completed"),
    "claims to be endless": (lambda: claims_length(picture(), 2**60), "more than may be fetched"),
    "is a page and says picture": (
        lambda: sends(b"<html><script>", "image/png"),
        "not what the message says",
    ),
    "has very many pixels": (
        lambda: sends(of_size(saved(Image.new("1", (8, 8))), 30_000)),
        "too many pixels",
    ),
    "is a picture cut in half": (
        lambda: sends(picture("PNG", size=(900, 900))[:-900], "image/png"),
        "decoded",
    ),
}


@pytest.fixture(scope="module")
def wary(model_server: ScriptedModel):
    """A server that gives a message five seconds and a mebibyte, and a model four."""
    env = {
        "UPSTREAM_ENDPOINT": model_server.url,
        "MODEL_NAME": "scripted",
        "VISUAL_MODEL_NAME": VISION,
    }
    env |= {"ONEBOT_ACCESS_TOKEN": TOKEN, "FETCH_ALLOW": "127.0.0.1"}
    with LiveServer(
        {**env, "MEDIA_FETCH_SECONDS": "5", "MEDIA_FETCH_MIB": "1", "LLM_TIMEOUT": "4"}
    ) as server:
        yield server


@pytest.mark.parametrize("what", HOSTILE)
async def test_a_picture_of_a_hostile_server_costs_itself_alone(
    wary, model, file_server: FileServer, what
):
    make, reason = HOSTILE[what]
    reply, user = make(), fresh_id()
    model.script(["I see nothing"])
    async with client(wary) as bot:
        (asked,) = await answered(
            bot, model, [text(what), image(file_server.serve("/a", reply))], user
        )
    assert words(asked) == f"{what}[图片]"
    assert reason in (await medium(wary, user))["reason"]
    assert "could not be had" in await run_notes(wary, user)


_REBOUND = """
import sys, django
django.setup()
from tools.fetch import request
answers = ["127.0.0.1", "127.0.0.2"]
async def rebinding(host):
    if host != "rebinds.test":
        return [host]
    return [answers.pop(0) if len(answers) > 1 else answers[0]]
request.resolve_system_addresses = rebinding
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""


class ReboundServer(LiveServer):
    """The real server, for which the name ``rebinds.test`` has a permitted address once and another
    one from then on."""

    def _command(self) -> list[str]:
        return [sys.executable, "-c", _REBOUND, "runserver", f"127.0.0.1:{self.port}", "--noreload"]


async def test_a_name_that_rebinds_is_not_followed_inside(
    model_server: ScriptedModel, model, file_server: FileServer
):
    env = {
        "UPSTREAM_ENDPOINT": model_server.url,
        "MODEL_NAME": "scripted",
        "VISUAL_MODEL_NAME": VISION,
    }
    file_server.serve("/a", redirects("/b"))
    file_server.serve("/b", sends(picture()))
    user = fresh_id()
    model.script(["I see nothing"])
    with ReboundServer({**env, "ONEBOT_ACCESS_TOKEN": TOKEN, "FETCH_ALLOW": "127.0.0.1"}) as server:
        async with client(server) as bot:
            (asked,) = await answered(
                bot, model, [image(f"{file_server.url_for('rebinds.test')}/a")], user
            )
        assert INSIDE in (await medium(server, user))["reason"]
    assert words(asked) == "[图片]"
    assert [request.target for request in file_server.requests] == ["/a"]


FAILURES = {
    "refuses for ever": [fails(500, message="internal sk-secret", retry_after=0.05)] * 4,
    "answers no JSON": [returns("<html>502 Bad Gateway</html>")],
    "answers another thing": [returns({"choices": []})],
    "does not answer": [hangs()],
}


@pytest.mark.parametrize("what", FAILURES)
async def test_a_vision_model_that_fails_costs_the_description_alone(
    wary, model, file_server: FileServer, what
):
    user = fresh_id()
    model.script(FAILURES[what], model=VISION)
    model.script(["fine"])
    async with client(wary) as bot:
        asked = (
            await answered(
                bot, model, [text(what), image(file_server.serve("/a", sends(picture())))], user
            )
        )[-1]
        assert [action["params"]["message"][0]["data"]["text"] for action in bot.actions] == [
            "fine"
        ]
    assert words(asked) == f"{what}[图片]"
    assert "were not described" in await run_notes(wary, user)

"""Requests with pictures that are on disk until they are sent."""

import base64
import json
from pathlib import Path

import pytest

from agent.domain.endpoint import Endpoint
from agent.llm.client.client import OpenAIClient
from agent.llm.requests.base import LLMRequest, RequestEncoder
from agent.llm.requests.messages import (
    CHUNK,
    ModelPicture,
    encode_with_pictures,
    has_kept_pictures,
    kept_hash,
    picture_part,
)
from tests.scripted_model import ScriptedModel, fails


@pytest.fixture
def picture(tmp_path: Path) -> ModelPicture:
    path = tmp_path / "a"
    path.write_bytes(bytes(range(256)) * 2_000)
    return ModelPicture("image/png", path.stat().st_size, path)


def message(*parts: dict) -> dict:
    return {"role": "user", "content": [{"type": "text", "text": "kept:abc"}, *parts]}


def written(messages) -> bytes:
    return RequestEncoder("m").encode(messages, [])


async def joined(body) -> bytes:
    return b"".join([chunk async for chunk in body])


async def test_a_kept_picture_is_sent_as_a_data_url(picture):
    body = await encode_with_pictures(
        [message(picture_part("abc"), picture_part("abc"))], lambda _: picture, written
    )
    sent = await joined(body)
    assert len(sent) == body.size
    text, *pictures = json.loads(sent)["messages"][0]["content"]
    assert text == {"type": "text", "text": "kept:abc"}  # words are left alone
    for part in pictures:
        assert (
            part["image_url"]["url"]
            == f"data:image/png;base64,{base64.b64encode(picture.path.read_bytes()).decode()}"
        )


@pytest.mark.parametrize("size", [0, 1, 2, 3, CHUNK - 1, CHUNK, CHUNK + 1])
async def test_pictures_of_any_size_are_sent_whole(tmp_path, size):
    path = tmp_path / "a"
    path.write_bytes(b"x" * size)
    body = await encode_with_pictures(
        [message(picture_part("abc"))], lambda _: ModelPicture("image/png", size, path), written
    )
    sent = await joined(body)
    assert len(sent) == body.size
    url = json.loads(sent)["messages"][0]["content"][1]["image_url"]["url"]
    assert base64.b64decode(url.partition(",")[2]) == b"x" * size


async def test_in_the_place_of_a_picture_that_is_gone_stand_words():
    sent = await joined(
        await encode_with_pictures([message(picture_part("abc"))], lambda _: None, written)
    )
    assert json.loads(sent)["messages"][0]["content"][1] == {"type": "text", "text": "[图片]"}


async def test_a_request_with_pictures_is_tried_again_from_its_beginning(
    model: ScriptedModel, picture
):
    model.script([fails(500, retry_after=0), "seen"])
    client = OpenAIClient(
        Endpoint(model.url, ("k",), "m", timeout_seconds=10), album=lambda _: picture
    )
    response = await client.complete(LLMRequest([message(picture_part("abc"))]))
    await client.close()
    assert response.text == "seen"
    first, second = model.requests
    assert first.body == second.body
    assert second.headers["content-length"] == str(
        len(json.dumps(second.body, separators=(",", ":")))
    )


@pytest.mark.parametrize(
    "part",
    [None, "x", {}, {"type": "image_url"}, {"type": "image_url", "image_url": {"url": "http://x"}}],
)
def test_other_parts_show_no_kept_picture(part):
    assert kept_hash(part) == ""
    assert not has_kept_pictures(
        [{"role": "user", "content": [part]}, {"role": "user", "content": "kept:abc"}]
    )

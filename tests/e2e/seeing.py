"""What the end-to-end tests of pictures say and look at again and again."""

import base64
from typing import Any

from tests.cast import fresh_id
from tests.e2e.chat import tell
from tests.fake_onebot import FakeOneBot, Frame
from tests.live_server import LiveServer
from tests.scripted_model import Request, ScriptedModel

VISION = "scripted-vision"
OF_USER = "JOIN agent_message m ON m.id = {} WHERE m.sender_id = ? AND m.direction = 'in'"


def image(url: str = "", **data: str) -> Frame:
    return {"type": "image", "data": {"file": "a.png", "url": url, **data}}


def text(words: str) -> Frame:
    return {"type": "text", "data": {"text": words}}


def shown(request: Request) -> list[tuple[str, bytes]]:
    """Type and content of each picture in the last message of a request."""
    urls = [
        part["image_url"]["url"]
        for part in request.messages[-1]["content"]
        if part["type"] == "image_url"
    ]
    return [
        (url.partition(";")[0].removeprefix("data:"), base64.b64decode(url.partition("base64,")[2]))
        for url in urls
    ]


async def answered(
    bot: FakeOneBot, model: ScriptedModel, message: Any, user: int | None = None, **fields: Any
) -> list[Request]:
    """Tell a message in private and wait for the answer; the requests that were made for it."""
    before = len(model.requests)
    await tell(bot, message, user=user or fresh_id(), **fields)
    await bot.next_action(20)
    return model.requests[before:]


async def run_notes(server: LiveServer, user: int) -> str:
    """The notes of the newest run for a message of ``user``, as JSON."""
    of_user = OF_USER.format("r.message_id")
    newest = (
        "NOT EXISTS (SELECT 1 FROM agent_run n WHERE n.session_id = r.session_id AND n.id > r.id)"
    )
    row = await server.row(
        f"SELECT r.notes FROM agent_run r {of_user} AND r.state = 'finished' AND {newest}",
        str(user),
    )
    return str(row["notes"])


async def medium(server: LiveServer, user: int) -> Frame:
    """What is on record of the first medium of a message of ``user``."""
    of_user = OF_USER.format("x.message_id")
    return await server.row(
        f"SELECT x.* FROM agent_messagemedia x {of_user} ORDER BY x.position", str(user)
    )

"""What the end-to-end tests say and look at again and again."""

from typing import Any

from tests.cast import fresh_id, sender
from tests.conftest import TOKEN
from tests.fake_onebot import FakeOneBot, Frame, spoken
from tests.live_server import LiveServer
from tests.scripted_model import Request


def client(server: LiveServer, account: int | None = None, **options: Any) -> FakeOneBot:
    """A client of ``account``, or of one that no other test uses."""
    return FakeOneBot(server.ws_url, account or fresh_id(), token=TOKEN, **options)


async def tell(
    bot: FakeOneBot, message: Any, *, user: int | str, group: int | None = None, **fields: Any
) -> Frame:
    """Tell a message of any shape, as it is: to a ``group``, or in private."""
    kind: Frame = (
        {"message_type": "private"}
        if group is None
        else {"message_type": "group", "group_id": group}
    )
    usual = {"user_id": user, "message_id": fresh_id(), "sender": sender(user), "message": message}
    return await bot.tell(fields.pop("post_type", "message"), **(kind | usual | fields))


def words(request: Request) -> str:
    """What the user said, by the request: everything after the frame of one line."""
    return request.last_text.partition("\n")[2]


async def verdict(
    server: LiveServer, peer: int | str, event: Frame | None = None
) -> tuple[str, str]:
    """State and reason of the newest incoming message in the chats with ``peer``, once it is
    settled. Where others came before it, name its ``event``: it may not be on record yet."""
    ids = [] if event is None else [str(event["message_id"])]
    row = await server.row(
        "SELECT state, reason FROM agent_message WHERE state NOT IN ('waiting', 'running') "
        "AND id = (SELECT max(m.id) "
        "FROM agent_message m JOIN agent_chatsession s ON s.id = m.session_id WHERE s.peer_id "
        f"= ? AND m.direction = 'in' {'AND m.message_id = ?' * len(ids)})",
        *(str(peer), *ids),
    )
    return row["state"], row["reason"]


async def outgoing(
    server: LiveServer, peer: int | str, condition: str = "m.settled_at IS NOT NULL"
) -> Frame:
    """The newest outgoing message to ``peer`` that fulfils ``condition``."""
    return await server.row(
        "SELECT m.* FROM agent_message m JOIN agent_chatsession s ON s.id = m.session_id "
        f"WHERE s.peer_id = ? AND m.direction = 'out' AND {condition} ORDER BY m.id DESC",
        str(peer),
    )


def put_notes_aside(bot: FakeOneBot, owner: int) -> list[Frame]:
    """Leave questions in the private chat of ``owner`` out of the actions of ``bot``; those that
    came."""
    usual, notes = bot.next_action, list[Frame]()

    async def next_action(*limits: float, **named: float) -> Frame:
        while True:
            action = await usual(*limits, **named)
            if action["params"].get("user_id") != owner or "来自" not in spoken(action):
                return action
            notes.append(action)

    bot.next_action = next_action  # type: ignore[method-assign]
    return notes

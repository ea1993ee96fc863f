"""What the model is shown beside the history and the words it answers: what else was said in the
group."""

from collections.abc import Sequence
from typing import Any

from agent.domain.manners import Manners
from agent.media.heard_words import cut_text, describe_sender
from agent.record.chats.ambient import AmbientRequest, find_ambient
from agent.record.chats.chat_record import RecordedMessage
from agent.record.record import Record
from agent.record.runs.runs import ActiveRun
from agent.record.waiting.recovery import PendingMessage
from tools.text.fences import FenceKind, fence_values

#: What a mention without words shows of the messages before it, whatever the row says.
LEAST_MESSAGES, LEAST_MINUTES, LEAST_CHARS = 10, 10, 2_000
#: Characters of one message.
TEXT_CHARS = 500


async def hear_group(record: Record, pending: PendingMessage, active: ActiveRun) -> str:
    """The recent messages of the group that were not for the bot, fenced; "" where nobody wants
    them or there are none. Asks the record only if they are wanted."""
    wish = wish_ambient(pending, active)
    if wish is None:
        return ""
    said = await record.submit(find_ambient, wish)
    return fence_ambient(said, _chars(active.manners, is_bare=pending.is_bare_mention))


def wish_ambient(pending: PendingMessage, active: ActiveRun) -> AmbientRequest | None:
    """What of the group is to be shown with a message; None for nothing."""
    manners, is_bare = active.manners, pending.is_bare_mention
    messages, minutes = manners.ambient_messages, manners.ambient_minutes
    if is_bare:
        messages = max(messages, LEAST_MESSAGES)
        minutes = max(minutes, LEAST_MINUTES) if manners.ambient_messages else LEAST_MINUTES
    is_heard = pending.message.chat.kind == "group" and not pending.is_later_result
    if not (is_heard and messages > 0):
        return None
    return AmbientRequest(
        pending.session_pk, pending.pk, messages, minutes, active.context_after or 0
    )


def fence_ambient(said: Sequence[RecordedMessage], chars: int) -> str:
    """The newest of ``said`` whose words are ``chars`` characters at most, in their order, fenced;
    "" for none."""
    shown = list[dict[str, Any]]()
    for one in reversed(said):
        text = cut_text(one.text, TEXT_CHARS)
        chars -= len(text)
        if chars < 0:
            break
        line = describe_sender(one.sender_id, one.sender_name, one.at)
        if one.message_id:
            line["message_id"] = one.message_id
        shown.append(line | {"text": text})
    return fence_values(FenceKind.AMBIENT, reversed(shown)) if shown else ""


def _chars(manners: Manners, *, is_bare: bool) -> int:
    return max(manners.ambient_chars, LEAST_CHARS) if is_bare else manners.ambient_chars

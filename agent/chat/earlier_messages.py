"""What was said in the messages that are answered together with a later one."""

from dataclasses import replace

from agent.chat.history import build_speech
from agent.chat.merging import QueuedMessage
from agent.chat.message_run import MessageRun
from agent.llm.requests.messages import SpokenMessage
from agent.media.pipeline import MOST, MediaPipeline, MediaText


async def hear_earlier(run: MessageRun, media: MediaPipeline | None) -> tuple[SpokenMessage, ...]:
    """The earlier messages of ``run``, oldest first, with what was read in their media: from the
    newest back, as many as are read for one message."""
    heard: list[SpokenMessage] = []
    left = MOST
    for one in reversed(run.earlier):
        left -= len(one.pending.message.media)
        seen = await _read_media(run, one, media) if media and left >= 0 else MediaText()
        run.notes += seen.notes
        heard.append(build_speech(one.pending.message, seen))
    return tuple(reversed(heard))


async def _read_media(run: MessageRun, one: QueuedMessage, media: MediaPipeline) -> MediaText:
    active = run.active
    pending = replace(
        one.pending, account=active.account, persona=active.persona, manners=active.manners
    )
    if one.resumed:
        return await media.describe_resumed(pending)
    return await media.describe(pending, one.prefetch)

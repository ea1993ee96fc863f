"""What a rule says of an event, or to a keyword, without a model."""

import asyncio
import json

from django.utils.translation import gettext_noop

from agent.chat.endings import RunEndings
from agent.chat.message_run import MessageRun
from agent.domain.errors import pick_sentence
from agent.domain.event_rules import EventAction, FiredRule
from agent.domain.notices import CallNews, outcome_sentence
from agent.domain.states import ToolCallState
from agent.domain.types import IncomingMessage, MediaSource, MessagePart
from agent.llm.requests.base import ToolCallRequest
from agent.media.media_folder import locate_media_file, regular_file_size
from agent.media.pipeline import ask_names
from agent.stickers.store import locate_sticker
from tools.text.fences import clean_name

NO_FILE = gettext_noop("the picture of the rule is not there")
LACKING = gettext_noop("no row says what the rule cannot do without")
#: What is said of a call that a process did not live to finish, in Chinese and in English.
UNKNOWN = (
    "{tool} 的结果未知，没有再执行一次。",
    "What came of {tool} is not known. It was not repeated.",
)
OPEN = (ToolCallState.WAITING, ToolCallState.RUNNING, ToolCallState.PENDING)


async def name_people(
    message: IncomingMessage, rule: FiredRule, source: MediaSource | None
) -> dict[str, str]:
    """What those are called of whom ``rule`` speaks, as far as it is known in time."""
    is_private = message.chat.kind == "private"
    names = {message.sender_id: message.sender_name or (message.chat_title if is_private else "")}
    if source is not None and not (is_private or message.sender_name):
        people = dict.fromkeys(filter(None, (*rule.named, rule.operator)))
        names = await ask_names(source, message.chat, list(people))
    return {who: clean_name(name) for who, name in names.items() if name}


async def say_by_rule(
    run: MessageRun, rule: FiredRule, endings: RunEndings, source: MediaSource | None
) -> None:
    """Say what ``rule`` has to say, and end the run of its message; nothing in a chat that was
    silenced meanwhile."""
    silence = run.silence if run.pending.is_later_result else ""
    text, picture = "", None
    if not silence and rule.action != EventAction.SAY:
        picture = await asyncio.to_thread(_find_picture, rule)
        silence = "" if picture else NO_FILE
    if not silence:
        await run.sender.wait_turn()
        group = clean_name(run.message.chat_title) or run.message.chat.peer_id
        names = await name_people(run.message, rule, source) if "{" in rule.text else {}
        text = rule.fill(names, group)
    await endings.tell(run, text, picture, detail=silence or rule.name)


def _find_picture(rule: FiredRule) -> MessagePart | None:
    """The file of ``rule``; None where there is none. Asks the disk."""
    if rule.file.startswith(("http://", "https://")):
        return MessagePart("image", url=rule.file)
    is_sticker = rule.action == EventAction.STICKER
    for locate in (*([locate_sticker] if is_sticker else []), locate_media_file):
        path = locate(rule.file)
        if path is not None and regular_file_size(path):
            return MessagePart("image", path=str(path))
    return None


def build_call(rule: FiredRule, run_pk: int) -> ToolCallRequest:
    """The call that ``rule`` makes."""
    arguments = json.dumps(rule.arguments, ensure_ascii=False)
    return ToolCallRequest(f"rule_{run_pk}", rule.tool, arguments)


def tell_call(call: CallNews, *, has_spoken: bool, language: str) -> str:
    """What is said of a call that a rule has made; "" where the tool has said it, or it is still
    open."""
    if call.state in OPEN or (has_spoken and call.state == ToolCallState.SUCCEEDED):
        return ""
    if call.state == ToolCallState.UNKNOWN:
        return pick_sentence(UNKNOWN, call.asked, language).format(tool=call.tool)
    is_done = call.state == ToolCallState.SUCCEEDED
    return call.result.strip() if is_done else outcome_sentence(call, language)

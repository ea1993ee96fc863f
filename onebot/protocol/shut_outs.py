"""What keeps an account from speaking in a group, as clients report it: in notices, and in the
refusal of a message. Also whether a refusal is about the quote.

Only what certainly says so counts: NapCat's 1200 alone also stands for risk control, for a banned
link, and for messages that were delivered.
"""

import re
from dataclasses import dataclass
from typing import Literal

from agent.domain.states import PauseReason
from onebot.protocol.actions import ActionResponse
from onebot.protocol.events import OtherEvent
from onebot.protocol.values import parse_id

#: QQ's own results: NapCat names them in its words (NapCatQQ#398), Lagrange has them as retcode
#: (Lagrange.Core#482).
QQ_RESULTS = {120: PauseReason.MUTED, 110: PauseReason.LEFT}
#: Words of clients for it; the first that fit count.
_WORDS = {
    PauseReason.ALL_MUTED: re.compile(r"全(?:员|体|群)(?:已被)?禁言|(?i:\bgroup is muted\b)"),
    PauseReason.MUTED: re.compile(
        r"被(?:管理员|群主)?禁言|禁言中|(?i:\b(?:bot|account|you) (?:is|are|was|were) muted\b)"
    ),
    PauseReason.LEFT: re.compile(
        r"不在(?:该|此|这个)?群|不是(?:该|本)?群成员|已被(?:移出|踢出)|已退出(?:该|此)?群"
        r"|(?i:\bnot (?:in|a member of) (?:the|this) group\b)"
    ),
}
_GUESS = re.compile(r"可能|或者|疑似|(?i:\b(?:may|might|maybe)\b)")
#: Words for a message that cannot be quoted. Lagrange's are those of .NET (Lagrange.Core#887).
_QUOTE_WORDS = re.compile(
    r"引用|回复的?消息|\brepl(?:y|ied)\b|\bquoted?\b|\b(?:msg|message)[ _]not[ _](?:found|exist)"
    r"|Sequence contains no matching element",
    re.IGNORECASE,
)
#: What Lagrange answers without any words: an error while the message was put together, as by a
#: quote of a message that it does not know, and a message that got no number from QQ.
_LAGRANGE_WORDLESS = (200, 9000)


def find_pause(response: ActionResponse) -> PauseReason | None:
    """Why the account cannot speak in the group to which the refused message was sent; None where
    the refusal does not say so."""
    if response.is_success:
        return None
    for result in (response.retcode, response.qq_result):
        if result in QQ_RESULTS:
            return QQ_RESULTS[result]
    if _GUESS.search(response.error_text):
        return None
    found = (reason for reason, words in _WORDS.items() if words.search(response.error_text))
    return next(found, None)


def is_about_quote(response: ActionResponse, user_agent: str) -> bool:
    """Whether a message with a quote was refused because of it, as far as the client says."""
    if response.retcode in _LAGRANGE_WORDLESS and user_agent.startswith("Lagrange"):
        return True
    return bool(_QUOTE_WORDS.search(response.error_text))


SpeechChange = Literal["muted", "unmuted", "all_muted", "all_unmuted", "left", "joined", "promoted"]


@dataclass(frozen=True, slots=True)
class SpeechNotice:
    """That the account may speak no more in a group, or again; ``seconds`` where a mute ends by
    itself."""

    group_id: str
    change: SpeechChange
    seconds: int | None = None


def read_speech_notice(event: OtherEvent, self_id: str) -> SpeechNotice | None:
    """What a notice says of the account's own speech; None for one that says nothing of it."""
    group_id = parse_id(event.raw.get("group_id"))
    if event.post_type != "notice" or group_id in ("", "0"):
        return None
    user_id = parse_id(event.raw.get("user_id"))
    if event.detail_type == "group_ban":
        return _read_ban(event, group_id, user_id, self_id)
    if "group_dismiss" in (event.detail_type, event.sub_type):  # LLBot
        return SpeechNotice(group_id, "left")
    if event.detail_type == "group_decrease" and (
        event.sub_type in ("kick_me", "disband") or user_id == self_id
    ):
        return SpeechNotice(group_id, "left")
    if event.detail_type == "group_increase" and user_id == self_id:
        return SpeechNotice(group_id, "joined")
    if (event.detail_type, event.sub_type) == ("group_admin", "set") and user_id == self_id:
        return SpeechNotice(group_id, "promoted")
    return None


def _read_ban(event: OtherEvent, group_id: str, user_id: str, self_id: str) -> SpeechNotice | None:
    """A mute of the whole group is one of user 0, for -1 (Lagrange, LLBot) or 0 seconds."""
    is_lifted = event.sub_type == "lift_ban"
    if user_id in ("0", ""):
        return SpeechNotice(group_id, "all_unmuted" if is_lifted else "all_muted")
    if user_id != self_id:
        return None
    duration = parse_id(event.raw.get("duration"))
    seconds = int(duration) if duration.isascii() and duration.isdigit() else None
    if is_lifted or seconds == 0:
        return SpeechNotice(group_id, "unmuted")
    return SpeechNotice(group_id, "muted", seconds)

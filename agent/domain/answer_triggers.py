"""Whether a message is answered, and why: a pure decision, made once, at receipt."""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agent.domain.states import MessageReason, MessageState
from agent.domain.types import IncomingMessage

#: A message older than this when it arrives is kept and not answered.
MAX_AGE = timedelta(minutes=5)

Reason = MessageReason
State = MessageState


@dataclass(frozen=True, slots=True)
class TriggerRules:
    """What the operator decided: wake words, and whether groups are answered at all."""

    wake_words: tuple[str, ...] = ()
    answer_groups: bool = True
    pattern: re.Pattern[str] | None = field(init=False, compare=False, default=None)

    def __post_init__(self) -> None:
        words = "|".join(re.escape(word) for word in self.wake_words if word)
        object.__setattr__(self, "pattern", re.compile(words, re.IGNORECASE) if words else None)

    def is_woken_by(self, text: str) -> bool:
        return self.pattern is not None and self.pattern.search(text) is not None


@dataclass(frozen=True, slots=True)
class TriggerDecision:
    """The state a message starts its life in, and the reason in one word."""

    state: MessageState
    reason: MessageReason
    detail: str = ""
    """For a message that is not answered: the notice for its chat, if ``state`` is ``waiting``."""
    opens_loop: bool = False
    """Whether a silence towards the sender begins here."""

    @property
    def is_to_be_answered(self) -> bool:
        return self.state is State.WAITING


def decide_trigger(
    message: IncomingMessage,
    rules: TriggerRules,
    *,
    now: datetime,
    quotes_bot: bool,
    is_decision: bool = False,
) -> TriggerDecision:
    """Judge one message: whether it quotes one of the bot's own, and whether it is a word on a call
    that waits."""
    if refusal := _never_answered(message):
        return TriggerDecision(State.RECORDED, refusal)
    reason = (
        Reason.DECISION if is_decision else _why_answered(message, rules, quotes_bot=quotes_bot)
    )
    if reason in (Reason.NOT_ADDRESSED, Reason.GROUPS_OFF):
        return TriggerDecision(State.RECORDED, reason)
    if message.happened_at is not None and now - message.happened_at > MAX_AGE:
        return TriggerDecision(State.EXPIRED, Reason.TOO_OLD)
    return TriggerDecision(State.WAITING, reason)


def _never_answered(message: IncomingMessage) -> MessageReason | None:
    if message.from_own_account:
        return Reason.OWN_MESSAGE
    if message.from_other_bot:
        return Reason.OTHER_BOT
    if message.is_notice:
        return Reason.SYSTEM_NOTICE
    if not message.text and not message.mentions_bot:
        return Reason.EMPTY
    return None


def _why_answered(
    message: IncomingMessage, rules: TriggerRules, *, quotes_bot: bool
) -> MessageReason:
    if message.chat.kind == "private":
        return Reason.PRIVATE
    if not rules.answer_groups:
        return Reason.GROUPS_OFF
    if message.mentions_bot:
        return Reason.MENTION
    if rules.is_woken_by(message.spoken_text):
        return Reason.WAKE_WORD
    return Reason.QUOTE if quotes_bot else Reason.NOT_ADDRESSED

"""Whether a message is answered, and why: a pure decision, made once, at receipt."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from django.utils import timezone

from agent.domain.manners import Manners, PrivateChats
from agent.domain.states import MessageReason, MessageState, PauseReason
from agent.domain.types import IncomingMessage
from tools.schemas.patterns import PatternRefused, search_pattern

#: A message older than this when it arrives is kept and not answered.
MAX_AGE = timedelta(minutes=5)
#: Characters of a message in which a wake pattern is looked for.
PATTERN_CHARS = 10_000

Reason = MessageReason
State = MessageState

#: By what messages are answered that were not said to the bot.
UNADDRESSED = frozenset({Reason.PATTERN, Reason.ALWAYS, Reason.FOLLOW_UP, Reason.CHANCE})

#: Reasons whose detail is the name of the row of manners that keeps the bot silent.
OF_ROWS = frozenset(
    {
        *(Reason.SILENCED, Reason.QUIET_HOURS, Reason.PRIVATE_OFF, Reason.NOT_FRIEND),
        *(Reason.BLOCKED, Reason.NOT_LISTED, Reason.GROUPS_OFF),
    }
)

#: Silences in which an operator still hears what is said to the bot, where he has taken over.
HEARD_BY_HAND = frozenset({Reason.SILENCED, Reason.QUIET_HOURS})


@dataclass(frozen=True, slots=True)
class Occasion:
    """What is known of a message besides its words, when it is judged."""

    now: datetime
    quotes_bot: bool = False
    """Whether it quotes one of the bot's own messages."""
    is_decision: bool = False
    """Whether it is a word on a call that waits for approval."""
    is_command: bool = False
    is_follow_up: bool = False
    """Whether it follows, in time, a message of the same person that is to be answered."""
    is_owner: bool = False
    pause: PauseReason | None = None
    """Why the account cannot speak in the chat."""
    taken_over_by: str = ""
    """The operator who answers in the chat instead of the bot."""
    roll: float = 100.0
    """A random number from 0 to below 100, for the chance to be answered."""


@dataclass(frozen=True, slots=True)
class TriggerDecision:
    """The state a message starts its life in, and the reason in one word."""

    state: MessageState
    reason: MessageReason
    detail: str = ""
    """For a message that is not answered: the notice for its chat, if ``state`` is ``waiting``;
    else the name of the row that keeps the bot silent."""
    opens_loop: bool = False
    """Whether a silence towards the sender begins here."""

    @property
    def is_to_be_answered(self) -> bool:
        return self.state is State.WAITING


def decide_trigger(
    message: IncomingMessage, manners: Manners, occasion: Occasion
) -> TriggerDecision:
    """Judge one message by the manners of its chat. The limits of answers come after this."""
    if refusal := _never_answered(message):
        return TriggerDecision(State.RECORDED, refusal)
    reason = _why_answered(message, manners, occasion)
    if reason == Reason.GROUPS_OFF:
        return TriggerDecision(State.RECORDED, reason, manners.said_by.get("groups", ""))
    if reason == Reason.NOT_ADDRESSED:
        return TriggerDecision(State.RECORDED, reason)
    if message.happened_at is not None and occasion.now - message.happened_at > MAX_AGE:
        return TriggerDecision(State.EXPIRED, Reason.TOO_OLD)
    if silence := _why_silent(message, manners, occasion, reason):
        return silence
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


def _why_answered(message: IncomingMessage, manners: Manners, occasion: Occasion) -> MessageReason:
    if occasion.is_decision:
        return Reason.DECISION
    is_private = message.chat.kind == "private"
    if occasion.is_command and (is_private or _may_command(message, manners, occasion)):
        return Reason.COMMAND
    if is_private:
        return Reason.PRIVATE
    if not manners.groups:
        return Reason.GROUPS_OFF
    if manners.wake_mention and message.mentions_bot:
        return Reason.MENTION
    if manners.wake_names and _holds_name(message.spoken_text, manners.wake_names):
        return Reason.WAKE_WORD
    if manners.wake_quote and occasion.quotes_bot:
        return Reason.QUOTE
    return _why_woken(message.spoken_text, manners, occasion)


def _may_command(message: IncomingMessage, manners: Manners, occasion: Occasion) -> bool:
    """Whether a command in a group is for this bot: others know the program's own prefix too, so
    that it has to address the bot, unless an owner gives it or a row names the prefix."""
    if occasion.is_owner:
        return True
    is_ours = "command_prefix" in manners.said_by or message.mentions_bot or occasion.quotes_bot
    return manners.groups and (is_ours or _holds_name(message.spoken_text, manners.wake_names))


def _why_woken(typed: str, manners: Manners, occasion: Occasion) -> MessageReason:
    """By what a message of a group is answered that is not addressed to the bot."""
    if manners.wake_prefixes and typed.lstrip().startswith(manners.wake_prefixes):
        return Reason.PREFIX
    if manners.wake_pattern and _is_found(manners.wake_pattern, typed):
        return Reason.PATTERN
    if manners.wake_always:
        return Reason.ALWAYS
    if occasion.is_follow_up:
        return Reason.FOLLOW_UP
    return Reason.CHANCE if occasion.roll < manners.wake_chance else Reason.NOT_ADDRESSED


def _why_silent(
    message: IncomingMessage, manners: Manners, occasion: Occasion, reason: MessageReason
) -> TriggerDecision | None:
    """Why a message is not answered that would be. Owners can always give commands and decide over
    calls, unless the account cannot speak."""
    if occasion.pause is not None:
        return TriggerDecision(State.SILENT, Reason.PAUSED, occasion.pause.value)
    if occasion.is_owner and reason in (Reason.COMMAND, Reason.DECISION):
        return None
    silence = _find_silence(message, manners, occasion)
    if occasion.taken_over_by and (silence is None or silence.reason in HEARD_BY_HAND):
        return TriggerDecision(State.SILENT, Reason.TAKEN_OVER, occasion.taken_over_by)
    return silence


def _find_silence(
    message: IncomingMessage, manners: Manners, occasion: Occasion
) -> TriggerDecision | None:
    """What the manners of the chat say against an answer."""
    if silenced_by := manners.find_silence(occasion.now):
        return TriggerDecision(State.SILENT, Reason.SILENCED, silenced_by)
    if occasion.is_owner:
        return None
    moment = timezone.localtime(occasion.now).time()
    if any(span.covers(moment) for span in manners.quiet_hours):
        return _silent(Reason.QUIET_HOURS, manners, "quiet_hours")
    if message.chat.kind == "private":
        if manners.private == PrivateChats.OFF:
            return _silent(Reason.PRIVATE_OFF, manners, "private")
        if manners.private == PrivateChats.FRIENDS and not message.is_friend:
            return _silent(Reason.NOT_FRIEND, manners, "private")
    if message.sender_id in manners.denied_people:
        return _silent(Reason.BLOCKED, manners, "denied_people")
    if manners.allowed_people and message.sender_id not in manners.allowed_people:
        return _silent(Reason.NOT_LISTED, manners, "allowed_people")
    return None


def _silent(reason: MessageReason, manners: Manners, said: str) -> TriggerDecision:
    return TriggerDecision(State.SILENT, reason, manners.said_by.get(said, ""))


def _holds_name(typed: str, names: tuple[str, ...]) -> bool:
    folded = typed.casefold()
    return any(name in folded for name in _fold_names(names))


@lru_cache(maxsize=1_000)
def _fold_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.casefold() for name in names if name)


def _is_found(pattern: str, typed: str) -> bool:
    """A pattern that RE2 refuses, from before this version knew it, finds nothing."""
    try:
        return search_pattern(pattern, typed[:PATTERN_CHARS])
    except PatternRefused:
        return False

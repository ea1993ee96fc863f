"""Whether a message is answered, and why: a pure decision, made once, at receipt.

It is made by lists of judges, asked in order. The first that finds its reason has said it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from agent.domain.manners import Audience, ChatManners, PrivateChats
from agent.domain.states import MessageReason, MessageState, PauseReason
from agent.domain.types import IncomingMessage
from tools.schemas.patterns import PatternRefused, search_pattern
from tools.time_limits import TIME_LIMITS

#: A message older than this when it arrives is kept and not answered.
MAX_AGE = timedelta(minutes=5)
#: Characters of a message in which a wake pattern is looked for.
PATTERN_CHARS = 10_000

Reason = MessageReason
State = MessageState

#: By what messages are answered that were not said to the bot.
UNADDRESSED = frozenset(
    {
        *(Reason.PATTERN, Reason.ALWAYS, Reason.FOLLOW_UP, Reason.CHANCE, Reason.REMINDER),
        *(Reason.EVENT, Reason.KEYWORD),
    }
)
#: What a keyword does not take the place of.
BEFORE_KEYWORDS = frozenset(
    {
        *(Reason.OWN_MESSAGE, Reason.OTHER_BOT, Reason.SYSTEM_NOTICE, Reason.EMPTY),
        *(Reason.DECISION, Reason.COMMAND, Reason.GROUPS_OFF, Reason.TOO_OLD),
    }
)


@dataclass(frozen=True, slots=True)
class Occasion:
    """What is known of a message besides its words, when it is judged."""

    now: datetime
    quotes_bot: bool = False
    """Whether it quotes one of the bot's own messages."""
    is_decision: bool = False
    """Whether it is a word on a call that waits for approval."""
    is_command: bool = False
    is_for_managers: bool = False
    """Whether that is one of :data:`agent.domain.commands.MEMBER_COMMANDS`, of who leads the
    group."""
    is_follow_up: bool = False
    """Whether it follows, in time, a message of the same person that is to be answered."""
    is_owner: bool = False
    all_for_me: bool = False
    """Whether all that arrives from groups is taken for a mention: bridges of official bots take
    mentions off."""
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


class Case(NamedTuple):
    """What judges look at."""

    message: IncomingMessage
    manners: ChatManners
    occasion: Occasion
    is_private: bool

    def addresses(self, names: tuple[str, ...]) -> bool:
        """Whether one of ``names`` is found in what was typed, whatever its case."""
        folded = self.message.spoken_text.casefold()
        return any(name in folded for name in _fold_names(names))


class Judge(NamedTuple):
    """One reason, and whether it is there."""

    reason: MessageReason
    finds: Callable[[Case], object]


class Silence(NamedTuple):
    """One reason against an answer that there would be otherwise."""

    reason: MessageReason
    finds: Callable[[Case], object]
    field: str = ""
    """The field of the manners whose row is to blame."""
    counts_for_owners: bool = False
    """Whether owners are kept out by it too, but for their commands and decisions."""
    counts_for_orders: bool = False
    """Whether not even these are spared."""
    is_heard_by_hand: bool = False
    """Whether an operator who has taken over hears what is said to the bot meanwhile."""


def decide_trigger(
    message: IncomingMessage, manners: ChatManners, occasion: Occasion
) -> TriggerDecision:
    """Judge one message by the manners of its chat. The limits of answers come after this."""
    case = Case(message, manners, occasion, message.chat.kind == "private")
    for never in NEVER_ANSWERED:
        if never.finds(case):
            return TriggerDecision(State.RECORDED, never.reason)
    for judge in ANSWERED:
        if judge.finds(case):
            reason = judge.reason
            break
    else:
        return TriggerDecision(State.RECORDED, Reason.NOT_ADDRESSED)
    if reason == Reason.GROUPS_OFF:
        return TriggerDecision(State.RECORDED, reason, manners.said_by.get("groups", ""))
    if message.happened_at is not None and occasion.now - message.happened_at > MAX_AGE:
        return TriggerDecision(State.EXPIRED, Reason.TOO_OLD)
    return _find_silence(case, reason) or TriggerDecision(State.WAITING, reason)


def decide_by_rule(
    message: IncomingMessage, manners: ChatManners, occasion: Occasion, reason: MessageReason
) -> TriggerDecision:
    """Judge what a row of rules is for: an event, caused by the sender of ``message``, or a
    keyword in it."""
    case = Case(message, manners, occasion, message.chat.kind == "private")
    if not (case.is_private or manners.groups):
        row = manners.said_by.get("groups", "")
        return TriggerDecision(State.RECORDED, Reason.GROUPS_OFF, row)
    if message.happened_at is not None and occasion.now - message.happened_at > MAX_AGE:
        return TriggerDecision(State.EXPIRED, Reason.TOO_OLD)
    return _find_silence(case, reason) or TriggerDecision(State.WAITING, reason)


def _find_silence(case: Case, reason: MessageReason) -> TriggerDecision | None:
    """Why a message is not answered that would be. Owners can always give commands and decide over
    calls, unless the account cannot speak or nobody is answered in the group."""
    manners, occasion = case.manners, case.occasion
    if occasion.pause is not None:
        return TriggerDecision(State.SILENT, Reason.PAUSED, occasion.pause.value)
    is_order = occasion.is_owner and reason in (Reason.COMMAND, Reason.DECISION)
    judges = (
        one
        for one in SILENCES
        if not occasion.is_owner
        or one.counts_for_orders
        or (one.counts_for_owners and not is_order)
    )
    found = next((one for one in judges if one.finds(case)), None)
    is_by_hand = bool(occasion.taken_over_by) and not is_order
    if is_by_hand and (found is None or found.is_heard_by_hand):
        return TriggerDecision(State.SILENT, Reason.TAKEN_OVER, occasion.taken_over_by)
    if found is None:
        return None
    row = manners.said_by.get(found.field, "") if found.field else manners.silenced_by
    return TriggerDecision(State.SILENT, found.reason, row)


# --- The judges -----------------------------------------------------------------------


def _is_command(case: Case) -> bool:
    """Whether a command is for this bot. In a group others know the program's own prefix too, so
    that it has to address the bot, unless an owner gives it, or a row names the prefix, or has
    who leads the group give it."""
    message, manners, occasion, is_private = case
    if not occasion.is_command or is_private or occasion.is_owner:
        return occasion.is_command
    is_ours = "command_prefix" in manners.said_by or message.mentions_bot or occasion.quotes_bot
    is_ours = is_ours or occasion.all_for_me or occasion.is_for_managers
    return manners.groups and (is_ours or case.addresses(manners.wake_names))


def is_pattern_found(pattern: str, typed: str) -> bool:
    """A pattern that RE2 refuses, from before this version knew it, finds nothing."""
    try:
        return bool(pattern) and search_pattern(pattern, typed[:PATTERN_CHARS])
    except PatternRefused:
        return False


def _is_nobody_answered(case: Case) -> bool:
    """In their private chats owners are, so that nobody shuts himself out."""
    is_own_chat = case.is_private and case.occasion.is_owner
    return case.manners.answered == Audience.NOBODY and not is_own_chat


def _is_left_out(case: Case) -> bool:
    if case.manners.answered == Audience.EVERYBODY:
        return False
    is_friend = case.is_private and case.message.is_friend
    return case.manners.leaves_out(case.message.sender_id, is_friend=is_friend)


@lru_cache(maxsize=1_000)
def _fold_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.casefold() for name in names if name)


#: What is on record alone, whatever manners say.
NEVER_ANSWERED = (
    Judge(Reason.OWN_MESSAGE, lambda case: case.message.from_own_account),
    Judge(Reason.OTHER_BOT, lambda case: case.message.from_other_bot),
    Judge(Reason.SYSTEM_NOTICE, lambda case: case.message.is_notice),
    Judge(Reason.EMPTY, lambda case: not (case.message.text or case.message.mentions_bot)),
)
#: By what a message is for the bot; those after ``GROUPS_OFF`` are of groups.
ANSWERED = (
    Judge(Reason.DECISION, lambda case: case.occasion.is_decision),
    Judge(Reason.COMMAND, _is_command),
    Judge(Reason.PRIVATE, lambda case: case.is_private),
    Judge(Reason.GROUPS_OFF, lambda case: not case.manners.groups),
    Judge(
        Reason.MENTION,
        lambda case: (
            case.manners.wake_mention and (case.message.mentions_bot or case.occasion.all_for_me)
        ),
    ),
    Judge(Reason.WAKE_WORD, lambda case: case.addresses(case.manners.wake_names)),
    Judge(Reason.QUOTE, lambda case: case.manners.wake_quote and case.occasion.quotes_bot),
    Judge(
        Reason.PREFIX,
        lambda case: case.message.spoken_text.lstrip().startswith(case.manners.wake_prefixes),
    ),
    Judge(
        Reason.PATTERN,
        lambda case: is_pattern_found(case.manners.wake_pattern, case.message.spoken_text),
    ),
    Judge(Reason.ALWAYS, lambda case: case.manners.wake_always),
    Judge(Reason.FOLLOW_UP, lambda case: case.occasion.is_follow_up),
    Judge(Reason.CHANCE, lambda case: case.occasion.roll < case.manners.wake_chance),
)
#: What keeps the bot silent where it is spoken to.
SILENCES = (
    Silence(
        Reason.SILENCED,
        lambda case: case.manners.silenced_by and case.manners.find_silence(case.occasion.now),
        counts_for_owners=True,
        is_heard_by_hand=True,
    ),
    Silence(
        Reason.ONLY_ONE,
        lambda case: (
            case.manners.only_person
            and case.manners.is_for_another(case.message.sender_id, case.occasion.now)
        ),
        "only_person",
        counts_for_owners=True,
        is_heard_by_hand=True,
    ),
    Silence(
        Reason.QUIET_HOURS,
        lambda case: bool(case.manners.quiet_hours) and case.manners.is_quiet(case.occasion.now),
        "quiet_hours",
        is_heard_by_hand=True,
    ),
    Silence(
        Reason.PRIVATE_OFF,
        lambda case: case.is_private and case.manners.private == PrivateChats.OFF,
        "private",
    ),
    Silence(
        Reason.NOT_FRIEND,
        lambda case: (
            case.is_private
            and case.manners.private == PrivateChats.FRIENDS
            and not case.message.is_friend
        ),
        "private",
    ),
    Silence(
        Reason.BLOCKED,
        lambda case: case.message.sender_id in case.manners.denied_people,
        "denied_people",
    ),
    Silence(
        Reason.NOT_LISTED,
        lambda case: (
            case.manners.allowed_people
            and case.message.sender_id not in case.manners.allowed_people
        ),
        "allowed_people",
    ),
    Silence(
        Reason.BLOCKED,
        _is_nobody_answered,
        "answered",
        counts_for_owners=True,
        counts_for_orders=True,
        is_heard_by_hand=True,
    ),
    Silence(Reason.NOT_LISTED, _is_left_out, "answered", is_heard_by_hand=True),
)
#: Reasons whose detail is the name of the row of manners that keeps the bot silent.
OF_ROWS = frozenset({Reason.GROUPS_OFF, *(one.reason for one in SILENCES)})


#: How long a mention without words waits for the next words of the same person, in seconds.
NEXT_WORDS = TIME_LIMITS.next_words


def is_bare_mention(message: IncomingMessage) -> bool:
    """Whether nothing was said but the bot's own mention: no word, no medium, no quote."""
    return (
        message.mentions_bot
        and not message.text.strip()
        and not message.media
        and not message.quoted_id
    )


def merge_window(message: IncomingMessage, manners: ChatManners) -> float:
    """Seconds in which further messages of the same person are awaited; 0.0: it is answered at
    once."""
    if is_bare_mention(message):
        return max(NEXT_WORDS, manners.merge_seconds)
    return manners.merge_seconds

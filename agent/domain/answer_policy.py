"""Which senders an account answers, and how often at most: the operator's settings, as stored.
Pure."""

from dataclasses import dataclass
from typing import Literal

from agent.domain.states import MessageReason

AnswerAudience = Literal["everybody", "friends", "listed"]
Reason = MessageReason
LimitOverrides = tuple[int | None, int | None, int | None, int | None]
"""The limits of a row, in the order of :class:`AnswerLimits`; None where it has none of its own."""
NO_OVERRIDES: LimitOverrides = (None, None, None, None)


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Answers at most; 0 for no limit. ``person_*`` are one person's in all chats of an account."""

    person_per_minute: int = 0
    person_per_day: int = 0
    chat_per_minute: int = 0
    chat_per_day: int = 0

    def overridden(self, rows: "LimitOverrides") -> "AnswerLimits":
        """With what a row says, in the order of the fields; None leaves a limit as it is."""
        person_minute, person_day, chat_minute, chat_day = rows
        return AnswerLimits(
            self.person_per_minute if person_minute is None else person_minute,
            self.person_per_day if person_day is None else person_day,
            self.chat_per_minute if chat_minute is None else chat_minute,
            self.chat_per_day if chat_day is None else chat_day,
        )

    @property
    def are_none(self) -> bool:
        return self == NO_LIMITS


NO_LIMITS = AnswerLimits()


@dataclass(frozen=True, slots=True)
class AnswerPolicy:
    """The decisions of one account: who is answered, and its own limits, where a None leaves the
    installation's."""

    answered: AnswerAudience = "everybody"
    people: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    blocked_people: frozenset[str] = frozenset()
    blocked_groups: frozenset[str] = frozenset()
    limits: LimitOverrides = NO_OVERRIDES

    def refusal(
        self, sender_id: str, group_id: str, *, is_friend: bool, is_owner: bool
    ) -> MessageReason | None:
        """Why the sender is not answered here; None where he is. ``group_id`` is "" in a private
        chat.

        A block outdoes a listing. An owner is kept out by nothing but the block of a group.
        """
        if group_id in self.blocked_groups:
            return Reason.BLOCKED
        if is_owner:
            return None
        if sender_id in self.blocked_people:
            return Reason.BLOCKED
        if self.answered == "everybody" or sender_id in self.people or group_id in self.groups:
            return None
        if self.answered == "friends" and is_friend and not group_id:
            return None
        return Reason.NOT_LISTED

"""The rules of events and keywords, as the transactions of one process see them."""

from dataclasses import dataclass, field
from typing import TypeVar

from agent.domain.answer_triggers import is_pattern_found
from agent.domain.event_rules import KEYWORD, EventAction, FiredRule, KeywordMatch, combine_rules
from agent.domain.types import ChatAddress, IncomingMessage
from agent.models import EventRule
from agent.models.scope import rank_row
from agent.record.settings.manners import REMEMBERED, is_for

Rule = TypeVar("Rule", EventRule, FiredRule)


@dataclass(frozen=True, slots=True)
class EventRules:
    """The rows that are switched on, the most particular first."""

    rows: tuple[EventRule, ...] = ()
    keywords: tuple[EventRule, ...] = ()
    _known: dict[ChatAddress, tuple[EventRule, ...]] = field(default_factory=dict, compare=False)
    _whole: dict[tuple[str, ChatAddress], FiredRule | None] = field(
        default_factory=dict, compare=False
    )

    def find(self, kind: str, chat: ChatAddress) -> FiredRule | None:
        """What is done about events of ``kind`` in ``chat``, put together from the rows for both;
        None for nothing."""
        if (kind, chat) not in self._whole:
            if len(self._whole) >= REMEMBERED:
                self._whole.clear()
            rows = [row.fire() for row in self.rows if row.kind == kind and is_for(row, chat)]
            self._whole[kind, chat] = _acting(combine_rules(rows) if rows else None)
        return self._whole[kind, chat]

    def find_keyword(self, message: IncomingMessage) -> EventRule | None:
        """What is done about a keyword of ``message``; None where it says none."""
        if (rows := self._known.get(message.chat)) is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            rows = tuple(row for row in self.keywords if is_for(row, message.chat))
            self._known[message.chat] = rows
        return _acting(next((row for row in rows if _says(message, row)), None))


def load_event_rules() -> EventRules:
    rows = sorted(EventRule.objects.filter(enabled=True).order_by("pk"), key=rank_row)
    return EventRules(
        tuple(row for row in rows if row.kind != KEYWORD),
        tuple(row for row in rows if row.kind == KEYWORD),
    )


def _acting(row: Rule | None) -> Rule | None:
    return None if row is None or row.action in ("", EventAction.NOTHING) else row


def _says(message: IncomingMessage, row: EventRule) -> bool:
    """Whether ``message``, but for the bot's own mention, says a keyword of ``row``."""
    text = message.text.strip()
    if row.match != KeywordMatch.PATTERN:
        return text in row.lines if row.match == KeywordMatch.WORD else text.startswith(row.lines)
    typed = message.spoken_text.strip()
    return any(is_pattern_found(pattern, typed) for pattern in row.lines)

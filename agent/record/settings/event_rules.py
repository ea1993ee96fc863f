"""The rules of events and keywords, as the transactions of one process see them."""

from dataclasses import dataclass, field

from agent.domain.answer_triggers import is_pattern_found
from agent.domain.event_rules import KEYWORD, EventAction, KeywordMatch
from agent.domain.types import ChatAddress, IncomingMessage
from agent.models import EventRule
from agent.record.settings.manners import REMEMBERED, is_for, rank_row


@dataclass(frozen=True, slots=True)
class EventRules:
    """The rows that are switched on, the most particular first."""

    rows: tuple[EventRule, ...] = ()
    keywords: tuple[EventRule, ...] = ()
    _known: dict[ChatAddress, tuple[EventRule, ...]] = field(default_factory=dict, compare=False)

    def find(self, kind: str, chat: ChatAddress) -> EventRule | None:
        """What is done about events of ``kind`` in ``chat``; None for nothing."""
        rows = (row for row in self.rows if row.kind == kind and is_for(row, chat))
        return _acting(next(rows, None))

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


def _acting(row: EventRule | None) -> EventRule | None:
    return None if row is None or row.action == EventAction.NOTHING else row


def _says(message: IncomingMessage, row: EventRule) -> bool:
    """Whether ``message``, but for the bot's own mention, says a keyword of ``row``."""
    text = message.text.strip()
    if row.match != KeywordMatch.PATTERN:
        return text in row.lines if row.match == KeywordMatch.WORD else text.startswith(row.lines)
    typed = message.spoken_text.strip()
    return any(is_pattern_found(pattern, typed) for pattern in row.lines)

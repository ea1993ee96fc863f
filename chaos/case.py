"""What is judged: the evidence, by what it belongs to, and what was found in it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from chaos import marks
from chaos.client import Heard
from chaos.hands import TakeOver, Written
from chaos.marks import Mark
from chaos.record import Message, Record

#: Every way in which a scenario can fail.
KINDS = (
    "lost",
    "doubled",
    "misordered",
    "misrouted",
    "tool_twice",
    "unended",
    "false_apology",
    "unrecorded",
    "wire",
    "unbounded",
    "not_ready",
    "false_ready",
    "crashed",
    "refused",
    "sums",
    "spoke_over",
    "overspent",
)
SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Told:
    """A message that a client wrote. ``may_be_missing``: it may have been in the buffers of a
    socket that was cut."""

    mark: Mark
    account: str
    may_be_missing: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """All there is to judge. ``excuses``: sends were cut off, so that an outcome may be unknown."""

    told: Sequence[Told]
    heard: Sequence[Heard]
    record: Record
    hits: Counter[str] = field(default_factory=Counter)
    crossings: Sequence[str] = ()
    wire_violations: Sequence[str] = ()
    most_read: int = 0
    hands: Sequence[Written] = ()
    taken: Sequence[TakeOver] = ()
    spent: Counter[str] = field(default_factory=Counter)
    """Tokens of the chats that have a budget, as the model counted them."""
    may_spend: int = 0
    excuses: bool = False


@dataclass(slots=True)
class Verdict:
    """How often each of :data:`KINDS` was found, with the first few; and what is no fault but worth
    knowing."""

    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(KINDS, 0)))
    samples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    unknown: Counter[str] = field(default_factory=Counter)
    """Messages whose outcome nobody can know and that were not heard, by the reason on record."""
    figures: Counter[str] = field(default_factory=Counter)
    _met: set[tuple[str, str]] = field(default_factory=set)

    def fault(self, kind: str, words: str, about: str = "") -> None:
        """``about``: what counts once, however often it is met."""
        if about and (kind, about) in self._met:
            return
        self._met.add((kind, about))
        self.counts[kind] += 1
        if len(self.samples[kind]) < SAMPLES:
            self.samples[kind].append(words)

    @property
    def is_clean(self) -> bool:
        return not self.counts.total()


class Case:
    """The evidence, by what it belongs to."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        record = evidence.record
        self.told = {one.mark: one for one in evidence.told}
        self.hands = {one.mark: one for one in evidence.hands}
        self.rows: dict[Mark, list[Message]] = defaultdict(list)
        self.by_echo = {row.echo: row for row in record.messages if row.echo}
        self.by_id = {row.id: row for row in record.messages}
        self.asked = {run.id: run.message for run in record.runs}
        self.sent: dict[int, list[Message]] = defaultdict(list)
        """Outgoing messages by the id of the incoming one that they answer."""
        for row in record.messages:
            if row.direction == "in" and (mark := marks.mark_in(row.text)):
                self.rows[mark].append(row)
            elif (
                row.direction == "out"
                and (asked := self.asked.get(row.run or 0))
                and not by_hand(row)
            ):
                self.sent[asked].append(row)
        self.by_text = {row.text: row for row in record.messages if row.direction == "out"}
        self.finals, self.announcements, self.apologies = self._sort_heard()

    def _sort_heard(self) -> tuple[Counter[Mark], Counter[Mark], Counter[Mark]]:
        finals: Counter[Mark] = Counter()
        announcements: Counter[Mark] = Counter()
        apologies: Counter[Mark] = Counter()
        for heard in self.evidence.heard:
            mark = self.mark_of(heard)
            if mark is not None and not is_part(heard):
                kind = (
                    finals
                    if is_final(heard) or mark.story == "command"
                    else announcements
                    if is_announcement(heard)
                    else apologies
                )
                kind[mark] += 1
        return finals, announcements, apologies

    def has_apology_of_chat(self, mark: Mark) -> bool:
        """Whether ``mark`` was due an apology, and one was heard in its chat: it is not repeated
        within a minute."""
        return mark.may_fail and any(
            count for other, count in self.apologies.items() if other.chat == mark.chat
        )

    def mark_of(self, heard: Heard) -> Mark | None:
        """The message that an action is about: by its own words, or by the record where it quotes
        none."""
        if mark := marks.mark_in(heard.text):
            return mark
        row = self.by_echo.get(heard.echo)
        asked = self.by_id.get(self.asked.get(row.run or 0) or 0) if row else None
        return marks.mark_in(asked.text) if asked else None

    def by_hand(self, mark: Mark) -> Message | None:
        """What an operator wrote, as it is on record."""
        return self.by_text.get(marks.by_hand(mark))

    def may_be_left(self, row: Message) -> bool:
        """Whether an operator had taken the chat over, and not handed it back before ``row``."""
        for taken in self.evidence.taken:
            if (taken.account, taken.first.chat) == (row.account, row.chat):
                back = self.by_hand(taken.back) if taken.back else None
                return back is None or row.id < back.id
        return False

    def account_of(self, mark: Mark) -> str:
        told = self.told.get(mark) or self.hands.get(mark)
        return told.account if told else ""

    def recorded(self) -> Iterator[tuple[Mark, Message]]:
        """Each message on record, once."""
        for mark, rows in self.rows.items():
            yield mark, rows[0]


def by_hand(row: Message) -> bool:
    """Whether an operator wrote it; it stands behind a run of its chat."""
    mark = marks.mark_in(row.text)
    return mark is not None and mark.story == "hand"


def is_final(heard: Heard) -> bool:
    mark = marks.mark_in(heard.text)
    return mark is not None and marks.answer(mark) in heard.text


def is_part(heard: Heard) -> bool:
    """Whether it is a later part of an answer."""
    mark = marks.mark_in(heard.text)
    return mark is not None and heard.text.lstrip().startswith("part ")


def is_announcement(heard: Heard) -> bool:
    mark = marks.mark_in(heard.text)
    return mark is not None and marks.announcement(mark) in heard.text

"""The verdict: what clients told and heard, what the tool and the model saw, and the record, held
against each other."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from chaos import marks
from chaos.client import Heard
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
)
SAMPLES = 5
#: Bytes of one answer of the model that a server may take before it hangs up: twice its limit.
MOST_READ = 16 * 2**20


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


def judge(evidence: Evidence) -> Verdict:
    verdict, case = Verdict(), _Case(evidence)
    checks: tuple[Callable[[_Case, Verdict], None], ...] = (
        _arrivals,
        _answers,
        _sends,
        _order,
        _places,
        _rest,
    )
    for check in checks:
        check(case, verdict)
    return verdict


class _Case:
    """The evidence, by what it belongs to."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        record = evidence.record
        self.told = {one.mark: one for one in evidence.told}
        self.rows: dict[Mark, list[Message]] = defaultdict(list)
        self.by_echo = {row.echo: row for row in record.messages if row.echo}
        self.by_id = {row.id: row for row in record.messages}
        self.asked = {run.id: run.message for run in record.runs}
        self.sent: dict[int, list[Message]] = defaultdict(list)
        """Outgoing messages by the id of the incoming one that they answer."""
        for row in record.messages:
            if row.direction == "in" and (mark := marks.mark_in(row.text)):
                self.rows[mark].append(row)
            elif row.direction == "out" and (asked := self.asked.get(row.run or 0)):
                self.sent[asked].append(row)
        self.finals, self.announcements, self.apologies = self._sort_heard()

    def _sort_heard(self) -> tuple[Counter[Mark], Counter[Mark], Counter[Mark]]:
        finals: Counter[Mark] = Counter()
        announcements: Counter[Mark] = Counter()
        apologies: Counter[Mark] = Counter()
        for heard in self.evidence.heard:
            mark = self.mark_of(heard)
            if mark is not None:
                kind = (
                    finals
                    if is_final(heard)
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

    def account_of(self, mark: Mark) -> str:
        told = self.told.get(mark)
        return told.account if told else ""

    def recorded(self) -> Iterator[tuple[Mark, Message]]:
        """Each message on record, once."""
        for mark, rows in self.rows.items():
            yield mark, rows[0]


def is_final(heard: Heard) -> bool:
    mark = marks.mark_in(heard.text)
    return mark is not None and marks.answer(mark) in heard.text


def is_announcement(heard: Heard) -> bool:
    mark = marks.mark_in(heard.text)
    return mark is not None and marks.announcement(mark) in heard.text


# --- The checks ---------------------------------------------------------------------------


def _arrivals(case: _Case, verdict: Verdict) -> None:
    """What was written is on record, once."""
    for told in case.told.values():
        count = len(case.rows.get(told.mark, ()))
        verdict.figures["told"] += 1
        verdict.figures["recorded"] += bool(count)
        if count > 1:
            verdict.fault("doubled", f"{told.mark} is on record {count} times")
        elif not count and told.may_be_missing:
            verdict.figures["in_buffers"] += 1
        elif not count:
            verdict.fault("lost", f"{told.mark} was never put on record")


def _answers(case: _Case, verdict: Verdict) -> None:
    """What is on record was answered, or apologised for where the model gave nothing, once."""
    for mark, row in case.recorded():
        finals, apologies = case.finals[mark], case.apologies[mark]
        verdict.figures["answered"] += bool(finals)
        verdict.figures["apologies"] += bool(apologies)
        if finals + apologies > 1:
            verdict.fault("doubled", f"{mark} got {finals} answers and {apologies} apologies")
        if apologies and not mark.may_fail:
            verdict.fault("false_apology", f"{mark}: {row.state} {row.detail[:200]}")
        if not finals and not apologies and not row.is_unended:
            finishing = [sent for sent in case.sent[row.id] if sent.call is None]
            if not finishing and row.state == "failed" and case.has_apology_of_chat(mark):
                verdict.figures["apologies_spared"] += 1
            else:
                _unheard(verdict, case, finishing, f"{mark}: {row.state} {row.detail[:200]}")


def _sends(case: _Case, verdict: Verdict) -> None:
    """What the tools did, they did once; what a tool says it sent was heard."""
    for name, hits in case.evidence.hits.items():
        verdict.figures["tool_calls"] += hits
        if hits > 1:
            verdict.fault("tool_twice", f"{name} was called {hits} times")
    for mark, row in case.recorded():
        count = case.announcements[mark]
        verdict.figures["announcements"] += count
        if count > 1:
            verdict.fault("doubled", f"{mark} was announced {count} times")
        made = [sent for sent in case.sent[row.id] if sent.call is not None and not sent.is_unended]
        if made and not count:
            if all(sent.state == "failed" for sent in made):
                verdict.figures["sends_refused"] += 1  # and the model was told so
            else:
                _unheard(
                    verdict,
                    case,
                    made,
                    f"the announcement of {mark}: {[sent.state for sent in made]}",
                )


def _unheard(verdict: Verdict, case: _Case, sent: Sequence[Message], words: str) -> None:
    """Nothing was heard of a message that has its end: by design, or lost."""
    unknown = next((row for row in sent if row.state == "unknown"), None)
    if unknown is not None and case.evidence.excuses:
        verdict.unknown[unknown.detail or "no reason"] += 1
    else:
        reason = (
            f", sent as unknown: {unknown.detail}"
            if unknown
            else f", sent: {[row.state for row in sent]}"
        )
        verdict.fault("lost", words + reason)


def _order(case: _Case, verdict: Verdict) -> None:
    """In a chat, everything about a message comes before anything about the next, and its answer
    last."""
    latest: dict[tuple[str, str], tuple[int, bool]] = {}
    met: set[tuple[int, bool]] = set()
    for heard in sorted(case.evidence.heard, key=lambda one: one.order):
        mark = case.mark_of(heard)
        rows = case.rows.get(mark) if mark else None
        if not rows:
            continue
        place, now = (heard.account, heard.chat), (rows[0].id, not is_announcement(heard))
        if now not in met and now < latest.get(place, now):
            verdict.fault("misordered", f"{heard.text[:100]} came late in {heard.chat}")
        met.add(now)
        latest[place] = max(now, latest.get(place, now))


def _places(case: _Case, verdict: Verdict) -> None:
    """Nothing of one chat is in another: not in what was heard, not on record, not in what the
    model was asked."""
    for heard in case.evidence.heard:
        row, mark = case.by_echo.get(heard.echo), case.mark_of(heard)
        words, about = (
            f"{heard.text[:100]} was heard in {heard.chat} of {heard.account}",
            str(mark or heard.echo),
        )
        if row is None:
            verdict.fault("unrecorded", f"{words} with an echo that is not on record")
        elif (row.account, row.chat) != (heard.account, heard.chat):
            verdict.fault("misrouted", f"{words}, recorded for {row.chat} of {row.account}", about)
        if mark and (mark.chat, case.account_of(mark)) != (heard.chat, heard.account):
            verdict.fault("misrouted", words, about)
    for row in case.evidence.record.messages:
        words = f"{row.direction} {row.text[:100]} is on record in {row.chat} of {row.account}"
        for mark in marks.marks_in(row.text):
            if (mark.chat, case.account_of(mark)) != (row.chat, row.account):
                verdict.fault("misrouted", words, str(mark))
        asked = case.by_id.get(case.asked.get(row.run or 0) or 0)
        if asked and asked.chat != row.chat:
            verdict.fault(
                "misrouted",
                f"{words}, made for {asked.chat}",
                str(marks.mark_in(row.text) or row.id),
            )
    for words in case.evidence.crossings:
        verdict.fault("misrouted", words, words)


def _rest(case: _Case, verdict: Verdict) -> None:
    """Everything has its end, the wire's rules were kept, and answers without an end were not read
    to theirs."""
    for words in case.evidence.record.unended():
        verdict.fault("unended", words)
    for words in case.evidence.wire_violations:
        verdict.fault("wire", words)
    if case.evidence.most_read > MOST_READ:
        verdict.fault("unbounded", f"{case.evidence.most_read >> 20} MiB of one answer were read")

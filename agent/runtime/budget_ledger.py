"""What may still be spent, as one process knows it: the record's sums, its own calls since, and
what calls under way may cost."""

import asyncio
import logging
import math
import time
from bisect import insort
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeVar

from agent.domain.budgets import (
    TOKENS,
    BudgetAction,
    BudgetPeriod,
    BudgetTerms,
    SpendKind,
    period_start,
)
from agent.domain.endpoint import Endpoint
from agent.domain.errors import BudgetSpent
from agent.domain.notices import ALL
from agent.llm.spending import CallCost, Spend, SpendHold, SpendScope, scope
from agent.record.record import Record
from agent.record.sums.budgets import IN_USE, BudgetAlarm, BudgetAlarms, load_budgets
from agent.record.sums.spendings import Posting, SpentAnswer, SumRange, spend_subjects
from tools.live_rows import LiveKind
from tools.local_time import current_day, first_of_day

K = TypeVar("K")
V = TypeVar("V")
logger = logging.getLogger(__name__)

#: Sums that are remembered.
REMEMBERED_SUMS = 10_000
#: After how long a sum is read again where other processes may add to it, in seconds.
REFRESH_SECONDS = 5.0
#: The same where this process serves alone: commands such as ``manage.py chat`` may add to it.
ALONE_SECONDS = 60.0
#: Percent of a budget at which owners are told.
TOLD_PERCENTS = (80, ALL)
#: Budgets and periods of which is remembered that owners were told.
REMEMBERED_ALARMS = 10_000
#: Which budget stops a call where several do: the strictest.
STRICTEST = (BudgetAction.SENTENCE, BudgetAction.OWNERS, BudgetAction.CHEAPER)


@dataclass(slots=True, eq=False)
class RunningSum:
    """What one subject spent from a day on, and what calls under way may cost it: by unit, which is
    a currency or tokens."""

    spent: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    read_at: float | None = None
    reading: "asyncio.Future[SpentAnswer | None] | None" = None
    turns: "list[Turn]" = field(default_factory=list)
    """Of calls that wait until others give back what they hold, the first to come first."""

    def add(self, cost: CallCost) -> None:
        self.spent[TOKENS] += cost.tokens
        if cost.cost_nano:
            self.spent[cost.currency] += cost.cost_nano

    def wake(self) -> None:
        """Have the first of those that wait look again; when it leaves, the next one does."""
        if self.turns:
            self.turns[0].wake()


class Turn:
    """The place of one call among those that wait. It waits for one sum at a time."""

    def __init__(self, arrival: int) -> None:
        self.arrival = arrival
        self._total: RunningSum | None = None
        self._woken: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Let it look again, where it waits."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def is_before(self, total: RunningSum) -> bool:
        """Whether nobody who came earlier waits for ``total``."""
        return not total.turns or self.arrival <= total.turns[0].arrival

    async def wait(self, total: RunningSum, until: float) -> None:
        """Wait until it may be worth while to look again. Raises :class:`TimeoutError` after
        ``until``, a time of the loop."""
        if total is not self._total:
            self.leave()
            self._total = total
            insort(total.turns, self, key=lambda turn: turn.arrival)
        self._woken = asyncio.get_running_loop().create_future()
        async with asyncio.timeout_at(until):
            await self._woken

    def leave(self) -> None:
        """Wait no more; the next one looks."""
        if self._total is not None:
            self._total.turns.remove(self)
            self._total.wake()
            self._total = None


class Hold:
    """What one call may cost, in the sums of all budgets that it counts against."""

    def __init__(self, held: "list[tuple[RunningSum, str, int]]") -> None:
        self._held = held

    def release(self) -> None:
        held, self._held = self._held, []
        for total, unit, amount in held:
            total.held[unit] -= amount
            if total.turns:
                total.wake()


class _Checked(NamedTuple):
    """A budget that a call counts against, the sum that it bounds, and by how much."""

    terms: BudgetTerms
    range: SumRange
    amount: int


class BudgetLedger:
    """The :class:`agent.llm.spending.SpendGate` of one process. Used on one event loop.

    A sum is read from the record when a budget first asks for it. ``shares_database``: other
    processes may add to it, so it is read again every few seconds.
    """

    def __init__(
        self, record: Record, alarms: BudgetAlarms, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.shares_database = False
        record.live.read_by(lambda known: replace(known, budgets=load_budgets()), LiveKind.BUDGETS)
        self._record = record
        self._alarms = alarms
        self._clock = clock
        self._budgets: tuple[BudgetTerms, ...] = ()
        self._bounded: frozenset[tuple[SpendKind, BudgetPeriod]] = frozenset()
        """Of which kinds and periods sums are kept."""
        self._sums: OrderedDict[SumRange, RunningSum] = OrderedDict()
        self._readings: dict[asyncio.Future[SpentAnswer | None], int] = {}
        """Under way, the oldest first: each with the number of the newest posting that it certainly
        holds, which was settled when it was asked for."""
        self._posted = 0
        self._settled = 0
        self._latest: deque[tuple[Posting, dict[SpendKind, str]]] = deque()
        """Own postings, in order, that an answer from the record may not hold yet."""
        self._arrivals = 0
        self._told: OrderedDict[tuple[int, str, int], None] = OrderedDict()
        self._stopped: OrderedDict[tuple[int, str, str], int] = OrderedDict()
        """Of those whom a budget turned away, the smallest call that it did not allow."""
        self._day = ""

    def spend(self, spend: Spend) -> None:
        """Count what a call cost, here and on record. Returns at once."""
        if self._record.is_closed:
            return
        self._posted += 1
        posting = Posting(self._today(), spend, self._posted)
        cost, who = spend
        subjects = spend_subjects(cost.endpoint_pk, cost.endpoint_name, who)
        self._latest.append((posting, subjects))
        self._record.post(posting).add_done_callback(partial(self._on_posted, posting))
        checked = self._checked(subjects, posting.day)
        first = first_of_day(posting.day)
        for kind, period in self._bounded if self._sums else ():
            if (subject := subjects.get(kind)) is None:
                continue
            total = self._sums.get(SumRange(kind, subject, period_start(period, first)))
            if total is not None and total.read_at is not None:
                total.add(cost)
        for one in checked:
            self._watch(*one, who)

    @property
    def is_idle(self) -> bool:
        """As :attr:`agent.llm.spending.SpendGate.is_idle`."""
        return not self._record.live.current.budgets

    def foresee(self, who: SpendScope) -> None:
        """Read with what is about to be put on record the sums that a call for ``who`` will count
        against, so that it need not wait for a transaction of its own. Returns at once."""
        subjects = spend_subjects(None, "", who)
        for _terms, wanted in self._checked(subjects, self._today()):
            if not self._is_known(wanted):
                self._read(wanted)

    async def hold(self, endpoint: Endpoint, input_tokens: int, output_tokens: int) -> SpendHold:
        """As :meth:`agent.llm.spending.SpendGate.hold`."""
        self._arrivals += 1
        who, turn = scope.get(), Turn(self._arrivals)
        until = asyncio.get_running_loop().time() + endpoint.timeout_seconds
        try:
            while True:
                checked = await self._check(endpoint, input_tokens, output_tokens, who)
                if stopped := [one for one in checked if self._is_over(one, endpoint, who)]:
                    raise self._refuse(stopped, who)
                busy = [one for one in checked if self._is_busy(one, endpoint, who, turn)]
                if not busy:
                    return self._take(checked)
                try:
                    await turn.wait(self._sums[busy[0].range], until)
                except TimeoutError:
                    raise self._refuse(busy, who) from None
        finally:
            turn.leave()

    async def _check(
        self, endpoint: Endpoint, input_tokens: int, output_tokens: int, who: SpendScope
    ) -> list[_Checked]:
        """The budgets that a call counts against, of which all sums are known now."""
        checked = []
        subjects = spend_subjects(endpoint.pk, endpoint.name, who)
        for terms, wanted in self._checked(subjects, self._today()):
            if terms.environment:
                if not self._is_known(wanted):
                    self._read(wanted)  # for the messages that come; no call waits for it
            elif amount := terms.amount(endpoint.prices, input_tokens, output_tokens):
                checked.append(_Checked(terms, wanted, amount))
        while stale := {one.range for one in checked if not self._is_known(one.range)}:
            done, _ = await asyncio.wait([self._read(wanted) for wanted in stale])
            for reading in done:
                reading.result()
        for one in checked:
            self._sums.move_to_end(one.range)
            self._watch(one.terms, one.range, who)
        return checked

    def _take(self, checked: list[_Checked]) -> SpendHold:
        held = [(self._sums[one.range], one.terms.unit, one.amount) for one in checked]
        for total, unit, amount in dict.fromkeys(held):  # two budgets may bound one sum
            total.held[unit] += amount
        return Hold(list(dict.fromkeys(held)))

    def _checked(
        self, subjects: Mapping[SpendKind, str], day: str
    ) -> list[tuple[BudgetTerms, SumRange]]:
        """The budgets that a call for all of these counts against, each with the sum that it
        bounds."""
        if self._record.live.current.budgets is not self._budgets:
            self._obey()
        if not self._budgets:
            return []
        first = first_of_day(day)
        return [
            (terms, SumRange(terms.kind, subject, period_start(terms.period, first)))
            for terms in self._budgets
            if (subject := subjects.get(terms.kind)) is not None and terms.subject in ("", subject)
        ]

    def _is_over(self, one: _Checked, endpoint: Endpoint, who: SpendScope) -> bool:
        """Whether a call may not be made because of what is spent of one budget."""
        spent = self._sums[one.range].spent[one.terms.unit]
        return spent + one.amount > _most(one.terms, endpoint, who)

    def _is_busy(self, one: _Checked, endpoint: Endpoint, who: SpendScope, turn: Turn) -> bool:
        """Whether a call has to wait until others have given back what they hold of one budget,
        or until those before it have had their turn."""
        total, unit = self._sums[one.range], one.terms.unit
        most = _most(one.terms, endpoint, who)
        is_full = total.spent[unit] + total.held[unit] + one.amount > most
        return is_full or (most != math.inf and not turn.is_before(total))

    def _refuse(self, stopped: list[_Checked], who: SpendScope) -> BudgetSpent:
        strictest = min(stopped, key=lambda one: STRICTEST.index(one.terms.action))
        for one in stopped:
            self._tell_stop(one, who)
        terms, total = strictest.terms, self._sums[strictest.range]
        spent = total.spent[terms.unit]
        is_over = spent + strictest.amount > terms.limit
        cheaper = terms.cheaper if terms.action is BudgetAction.CHEAPER else None
        shortage = terms.shortage(spent, strictest.amount if is_over else 0)
        return BudgetSpent(terms.name, terms.action, cheaper, shortage)

    # --- Telling owners -----------------------------------------------------------------

    def _watch(self, terms: BudgetTerms, wanted: SumRange, who: SpendScope) -> None:
        total = self._sums.get(wanted)
        if total is None or total.read_at is None:
            return
        used = terms.used_percent(total.spent[terms.unit])
        if reached := [percent for percent in TOLD_PERCENTS if used >= percent]:
            self._tell(terms, wanted, max(reached), who)

    def _tell_stop(self, one: _Checked, who: SpendScope) -> None:
        """That a budget turned somebody away."""
        terms, wanted, needed = one
        if self._sums[wanted].spent[terms.unit] + needed <= terms.limit:
            self._tell(terms, wanted, IN_USE, who)
            return
        key = (terms.pk, wanted.subject, wanted.first_day)
        if needed < self._stopped.get(key, needed + 1):
            _remember(self._stopped, key, needed)
            self._told.pop((terms.pk, wanted.first_day, ALL), None)
            self._tell(terms, wanted, ALL, who, needed)

    def _tell(
        self,
        terms: BudgetTerms,
        wanted: SumRange,
        percent: int,
        who: SpendScope,
        needed: int | None = None,
    ) -> None:
        key = (terms.pk, wanted.first_day, percent)
        if key in self._told or self._record.is_closed:
            return
        _remember(self._told, key, None)
        spent = self._sums[wanted].spent[terms.unit]
        alarm = BudgetAlarm(
            terms, wanted.subject, wanted.first_day, percent, spent, who.account, needed
        )

        def on_told(done: "asyncio.Future[bool]") -> None:
            if not done.cancelled() and (error := done.exception()):
                self._told.pop(key, None)
                self._stopped.pop((terms.pk, wanted.subject, wanted.first_day), None)
                logger.warning("Owners could not be told of the budget %s: %s", terms.name, error)

        self._record.submit(self._alarms.tell, alarm).add_done_callback(on_told)

    # --- What the record says ---------------------------------------------------------

    def _obey(self) -> None:
        """Follow the settings. What is known of sums may be of kinds that were not
        kept."""
        loaded = self._record.live.current.budgets
        if loaded != self._budgets:
            for total in self._sums.values():
                total.read_at = None
                total.wake()
            self._told.clear()
            self._stopped.clear()
        self._budgets = loaded
        self._bounded = frozenset((terms.kind, terms.period) for terms in loaded)

    def _today(self) -> str:
        day = current_day()
        if day != self._day:  # sums of periods that are over are of no use
            self._day = day
            starts = {period_start(period, first_of_day(day)) for period in BudgetPeriod}
            self._sums = OrderedDict(
                (wanted, total)
                for wanted, total in self._sums.items()
                if wanted.first_day in starts
            )
        return day

    def _is_known(self, wanted: SumRange) -> bool:
        total = self._sums.get(wanted)
        if total is None or total.read_at is None:
            return False
        seconds = REFRESH_SECONDS if self.shares_database else ALONE_SECONDS
        return self._clock() - total.read_at < seconds

    def known_tokens(self, day: str) -> int | None:
        """What all calls of a day have used, None where that is not known. In any thread."""
        wanted = SumRange(SpendKind.TOTAL, "", day)
        total = self._sums.get(wanted)
        return total.spent[TOKENS] if total is not None and self._is_known(wanted) else None

    def _read(self, wanted: SumRange) -> "asyncio.Future[SpentAnswer | None]":
        """The reading of a sum that is under way, or begins. Waiting for it must not cancel it."""
        total = self._sums.get(wanted)
        if total is None:
            total = self._sums[wanted] = RunningSum()
            self._make_room()
        if total.reading is None:
            total.reading = self._record.submit_batched(self._record.spend_book.post, wanted)
            self._readings[total.reading] = self._settled
            total.reading.add_done_callback(lambda done: self._on_read(wanted, total, done))
        return total.reading

    def _make_room(self) -> None:
        """Forget the sum that was needed longest ago, unless a call holds some of it."""
        if len(self._sums) > REMEMBERED_SUMS:
            wanted, total = self._sums.popitem(last=False)
            if total.reading is not None or total.turns or any(total.held.values()):
                self._sums[wanted] = total

    def _on_read(
        self, wanted: SumRange, total: RunningSum, done: "asyncio.Future[SpentAnswer | None]"
    ) -> None:
        self._readings.pop(done, None)
        total.reading = None
        if not done.cancelled() and done.exception() is None and (answer := done.result()):
            total.spent = Counter({TOKENS: answer.spent.tokens}) + Counter(answer.spent.costs)
            for posting, subjects in self._latest:
                is_later = posting.number > answer.number and posting.day >= wanted.first_day
                if is_later and subjects.get(wanted.kind) == wanted.subject:
                    total.add(posting.spend.cost)
            total.read_at = self._clock()
            total.wake()
        self._forget_settled()

    def _on_posted(self, posting: Posting, done: "asyncio.Future[SpentAnswer | None]") -> None:
        self._settled = posting.number
        if done.cancelled() or done.exception() is not None:
            for total in self._sums.values():  # it was counted here, and is not on record
                total.read_at = None
        self._forget_settled()

    def _forget_settled(self) -> None:
        held = next(iter(self._readings.values()), self._settled)
        while self._latest and self._latest[0][0].number <= held:
            self._latest.popleft()


def _most(terms: BudgetTerms, endpoint: Endpoint, who: SpendScope) -> float:
    """How much of a budget may be used by a call."""
    if terms.action is BudgetAction.OWNERS and who.is_owner:
        return math.inf
    if terms.action is BudgetAction.CHEAPER and terms.cheaper == endpoint.pk:
        return math.inf
    return terms.limit + (terms.reserve if who.is_outcome else 0)


def _remember(known: OrderedDict[K, V], key: K, value: V) -> None:
    known[key] = value
    if len(known) > REMEMBERED_ALARMS:
        known.popitem(last=False)

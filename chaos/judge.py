"""The verdict: what clients told and heard, what the tool and the model saw, and the record, held
against each other."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from chaos import marks
from chaos.case import Case, Evidence, Verdict, is_announcement, is_part
from chaos.marks import Mark
from chaos.record import Message
from chaos.silences import check_budgets, check_merged, check_take_overs, why_silent

#: Bytes of one answer of the model that a server may take before it hangs up: twice its limit.
MOST_READ = 16 * 2**20


def judge(evidence: Evidence) -> Verdict:
    verdict, case = Verdict(), Case(evidence)
    checks: tuple[Callable[[Case, Verdict], None], ...] = (
        _arrivals,
        _answers,
        _sends,
        _order,
        _places,
        check_parts,
        check_hands,
        check_merged,
        check_take_overs,
        check_budgets,
        _rest,
    )
    for check in checks:
        check(case, verdict)
    return verdict


# --- The checks ---------------------------------------------------------------------------


def _arrivals(case: Case, verdict: Verdict) -> None:
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


def _answers(case: Case, verdict: Verdict) -> None:
    """What is on record was answered, or apologised for where the model gave nothing, once."""
    for mark, row in case.recorded():
        finals, apologies = case.finals[mark], case.apologies[mark]
        verdict.figures["answered"] += bool(finals)
        verdict.figures["apologies"] += bool(apologies)
        if finals + apologies > 1:
            verdict.fault("doubled", f"{mark} got {finals} answers and {apologies} apologies")
        if apologies and not mark.may_fail and mark.story != "budget":
            verdict.fault("false_apology", f"{mark}: {row.state} {row.detail[:200]}")
        if not finals and not apologies and not row.is_unended:
            finishing = [sent for sent in case.sent[row.id] if sent.call is None]
            is_stopped = row.reason == "taken_over" and all(s.state == "failed" for s in finishing)
            if (not finishing or is_stopped) and (reason := why_silent(case, mark, row)):
                verdict.figures[reason] += 1
            else:
                _unheard(verdict, case, finishing, f"{mark}: {row.state} {row.detail[:200]}")


def _sends(case: Case, verdict: Verdict) -> None:
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


def _unheard(verdict: Verdict, case: Case, sent: Sequence[Message], words: str) -> None:
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


def check_parts(case: Case, verdict: Verdict) -> None:
    """Each part of a long answer was heard once, in order; one that is missing is lost."""
    heard: dict[Mark, list[str]] = defaultdict(list)
    for one in sorted(case.evidence.heard, key=lambda one: one.order):
        if is_part(one) and (mark := marks.mark_in(one.text)):
            heard[mark].append(one.text.strip().partition(" [[")[0])
    wanted = [f"part {number}" for number in range(2, marks.PARTS + 1)]
    for mark, row in case.recorded():
        if mark.story != "long" or not case.finals[mark] or heard[mark] == wanted:
            continue
        is_left = row.reason == "taken_over" and case.may_be_left(row)
        if len(set(heard[mark])) < len(heard[mark]):
            verdict.fault("doubled", f"of {mark} was heard {heard[mark]}")
        elif heard[mark] != sorted(heard[mark]):
            verdict.fault("misordered", f"of {mark} was heard {heard[mark]}")
        elif not is_left:
            _unheard(verdict, case, case.sent[row.id], f"of {mark} was heard {heard[mark]}")


def check_hands(case: Case, verdict: Verdict) -> None:
    """What the operator wrote, and the page took, was said once."""
    counts = Counter(marks.mark_in(one.text) for one in case.evidence.heard)
    for written in case.evidence.hands:
        row, count = case.by_hand(written.mark), counts[written.mark]
        verdict.figures["by_hand"] += bool(count)
        if count > 1:
            verdict.fault("doubled", f"{written.mark} by hand was heard {count} times")
        elif row is None and written.is_accepted:
            verdict.fault("lost", f"{written.mark} by hand was accepted and never put on record")
        elif row is None:
            verdict.figures["hands_refused"] += 1
        elif not count and not row.is_unended and row.state != "failed":
            _unheard(verdict, case, [row], f"{written.mark} by hand")


def _order(case: Case, verdict: Verdict) -> None:
    """In a chat, everything about a message comes before anything about the next, and its answer
    last. Commands wait for no turn."""
    latest: dict[tuple[str, str], tuple[int, bool]] = {}
    met: set[tuple[int, bool]] = set()
    for heard in sorted(case.evidence.heard, key=lambda one: one.order):
        mark = case.mark_of(heard)
        rows = case.rows.get(mark) if mark else None
        if not rows or (mark and mark.story == "command"):
            continue
        place, now = (heard.account, heard.chat), (rows[0].id, not is_announcement(heard))
        if now not in met and now < latest.get(place, now):
            verdict.fault("misordered", f"{heard.text[:100]} came late in {heard.chat}")
        met.add(now)
        latest[place] = max(now, latest.get(place, now))


def _places(case: Case, verdict: Verdict) -> None:
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


def _rest(case: Case, verdict: Verdict) -> None:
    """Everything has its end, the wire's rules were kept, and answers without an end were not read
    to theirs."""
    for words in case.evidence.record.unended():
        verdict.fault("unended", words)
    for words in case.evidence.record.wrong_sums():
        verdict.fault("sums", words)
    for words in case.evidence.wire_violations:
        verdict.fault("wire", words)
    if case.evidence.most_read > MOST_READ:
        verdict.fault("unbounded", f"{case.evidence.most_read >> 20} MiB of one answer were read")

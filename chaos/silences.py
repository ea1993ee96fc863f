"""Where a message may rightly go unanswered, and must: merged, left to an operator, turned away."""

from collections import Counter

from chaos.case import Case, Verdict
from chaos.marks import Mark
from chaos.record import Message


def why_silent(case: Case, mark: Mark, row: Message) -> str:
    """The figure that counts why nothing was said of a message that has its end; "" where there is
    no good reason."""
    if row.reason == "merged":
        target = case.by_id.get(row.merged_into or 0)
        same = target is not None and (target.account, target.chat) == (row.account, row.chat)
        return "merged" if same else ""
    if row.reason == "taken_over":
        return "left_to_operator" if case.may_be_left(row) else ""
    if row.reason == "budget" and mark.story == "budget":
        return "turned_away"
    if row.state == "failed" and case.has_apology_of_chat(mark):
        return "apologies_spared"
    return ""


def check_merged(case: Case, verdict: Verdict) -> None:
    """What was merged into a later message has no answer of its own."""
    for mark, row in case.recorded():
        if row.reason == "merged" and case.finals[mark] + case.apologies[mark]:
            verdict.fault("doubled", f"{mark} was answered, and merged into {row.merged_into}")


def check_take_overs(case: Case, verdict: Verdict) -> None:
    """What was put on record while an operator had the chat is not answered."""
    for taken in case.evidence.taken:
        first = case.by_hand(taken.first)
        last = case.by_hand(taken.last) if taken.last else None
        if first is None or last is None:
            continue
        verdict.figures["take_overs"] += 1
        for mark, row in case.recorded():
            is_there = (row.account, row.chat) == (taken.account, taken.first.chat)
            is_said = bool(case.finals[mark] + case.apologies[mark])
            if is_there and first.id < row.id < last.id and is_said and mark.story != "command":
                verdict.fault("spoke_over", f"{mark} was answered while an operator had the chat")


def check_budgets(case: Case, verdict: Verdict) -> None:
    """A chat is told once that its budget is spent, and no more than the budget is."""
    told = Counter[tuple[str, str]]()
    turned_away = set()
    for mark, row in case.recorded():
        if mark.story == "budget":
            told[row.account, row.chat] += case.apologies[mark]
            if row.reason == "budget":
                turned_away.add((row.account, row.chat))
    if turned_away:
        verdict.figures["told_of_budgets"] += told.total()
    for place, times in told.items():
        if times > 1:
            verdict.fault("doubled", f"{place} was told {times} times of its budget")
        elif not times and place in turned_away and not case.evidence.excuses:
            verdict.fault("lost", f"{place} was never told of its budget")
    for chat, spent in case.evidence.spent.items():
        if spent > case.evidence.may_spend:
            verdict.fault("overspent", f"{spent} of {case.evidence.may_spend} in {chat}")

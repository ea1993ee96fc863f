"""``make chaos`` can fail: whatever is wrong with what was heard or recorded is found."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from chaos import marks
from chaos.case import Evidence, Told
from chaos.client import Heard
from chaos.hands import TakeOver, Written
from chaos.judge import MOST_READ, judge
from chaos.load import Load, sayings
from chaos.marks import Mark
from chaos.model import asked, crossings, decide
from chaos.record import Call, Message, Record, Run

ACCOUNT, OTHER = "10001", "10002"
FIRST, SECOND = Mark("group", 50, 1, "both"), Mark("group", 50, 2, "plain")
PRIVATE = Mark("private", 60, 1, "both")
DONE = (FIRST, SECOND, PRIVATE)


# --- A record with nothing wrong, and ways to spoil it ---------------------------------


def clean() -> Evidence:
    """Three messages in two chats, each answered once; two of them were announced and called the
    tool."""
    messages: list[Message] = []
    runs: list[Run] = []
    calls: list[Call] = []
    heard: list[Heard] = []
    for number, mark in enumerate(DONE, 1):
        messages.append(
            Message(10 * number, "in", "answered", str(mark), ACCOUNT, mark.chat, reason="private")
        )
        runs.append(Run(number, 10 * number, "finished"))
        spoken: list[tuple[str, int | None]] = [(marks.answer(mark), None)]
        if mark.sends:
            calls += [
                Call(number, number, "chaos_count", "succeeded"),
                Call(100 + number, number, "send_message", "succeeded"),
            ]
            spoken.insert(0, (marks.announcement(mark), 100 + number))
        for words, call in spoken:
            echo = f"e{len(heard)}"
            place = 10 * number + len(heard) + 1
            messages.append(
                Message(
                    place,
                    "out",
                    "delivered",
                    words,
                    ACCOUNT,
                    mark.chat,
                    echo=echo,
                    run=number,
                    call=call,
                )
            )
            heard.append(Heard(len(heard), ACCOUNT, mark.chat, words, echo, 0.0))
    hits = Counter({FIRST.id: 1, PRIVATE.id: 1})
    return Evidence(
        [Told(mark, ACCOUNT) for mark in DONE], heard, Record(messages, runs, calls), hits
    )


def found(evidence: Evidence) -> dict[str, int]:
    return {kind: count for kind, count in judge(evidence).counts.items() if count}


def changed(evidence: Evidence, where: Callable[[Message], bool], **values: Any) -> Evidence:
    """The evidence with other ``values`` in some rows."""
    rows = [replace(row, **values) if where(row) else row for row in evidence.record.messages]
    return replace(evidence, record=replace(evidence.record, messages=rows))


def unheard(evidence: Evidence, words: str) -> Evidence:
    return replace(evidence, heard=[one for one in evidence.heard if one.text != words])


def heard_again(evidence: Evidence, place: int, **values: Any) -> Evidence:
    """Something that was heard, once more at the end."""
    return replace(
        evidence, heard=[*evidence.heard, replace(evidence.heard[place], order=99, **values)]
    )


def swapped(evidence: Evidence) -> Evidence:
    """The answers of the first chat in the wrong order."""
    orders = {marks.answer(FIRST): 2, marks.answer(SECOND): 1}
    return replace(
        evidence,
        heard=[replace(one, order=orders.get(one.text, one.order)) for one in evidence.heard],
    )


def apologised(evidence: Evidence) -> Evidence:
    """The second message got an apology in place of its answer."""
    words = marks.answer(SECOND)
    heard = [replace(one, text="sorry") if one.text == words else one for one in evidence.heard]
    return changed(replace(evidence, heard=heard), lambda row: row.text == words, text="sorry")


def without(evidence: Evidence, mark: Mark) -> Evidence:
    """Nothing of a message was recorded or heard."""
    rows = [row for row in evidence.record.messages if marks.mark_in(row.text) != mark]
    heard = [one for one in evidence.heard if marks.mark_in(one.text) != mark]
    return replace(evidence, heard=heard, record=replace(evidence.record, messages=rows))


def in_state(evidence: Evidence, words: str, state: str) -> Evidence:
    return changed(evidence, lambda row: row.text == words, state=state)


def with_runs(evidence: Evidence, **values: Any) -> Evidence:
    runs = [replace(run, **values) for run in evidence.record.runs]
    return replace(evidence, record=replace(evidence.record, runs=runs))


# --- The judge --------------------------------------------------------------------------


def test_nothing_is_found_where_nothing_is_wrong():
    verdict = judge(clean())
    assert verdict.is_clean
    assert verdict.figures == {
        "told": 3,
        "recorded": 3,
        "answered": 3,
        "apologies": 0,
        "tool_calls": 2,
        "announcements": 2,
    }


LOST: dict[str, Callable[[Evidence], Evidence]] = {
    "never recorded": lambda e: without(e, SECOND),
    "delivered and never heard": lambda e: unheard(e, marks.answer(SECOND)),
    "an announcement, likewise": lambda e: unheard(e, marks.announcement(PRIVATE)),
    "silent": lambda e: in_state(without_answer(e), str(SECOND), "silent"),
    "unknown though nobody was cut off": lambda e: in_state(
        unheard(e, marks.answer(SECOND)), marks.answer(SECOND), "unknown"
    ),
}


def without_answer(evidence: Evidence) -> Evidence:
    """Neither heard nor recorded: the answer to the second message."""
    words = marks.answer(SECOND)
    rows = [row for row in evidence.record.messages if row.text != words]
    return replace(unheard(evidence, words), record=replace(evidence.record, messages=rows))


@pytest.mark.parametrize("how", LOST)
def test_what_was_lost_is_found(how):
    assert found(LOST[how](clean())) == {"lost": 1}


DOUBLED: dict[str, Callable[[Evidence], Evidence]] = {
    "an answer": lambda e: heard_again(e, 4),
    "an announcement": lambda e: heard_again(e, 3),
    "a row": lambda e: replace(
        e,
        record=replace(
            e.record, messages=[*e.record.messages, replace(e.record.messages[0], id=999)]
        ),
    ),
}


@pytest.mark.parametrize("what", DOUBLED)
def test_what_came_twice_is_found(what):
    assert found(DOUBLED[what](clean())) == {"doubled": 1}


def test_an_apology_beside_an_answer_is_found():
    both = heard_again(clean(), 4, text="sorry")
    assert found(both) == {"doubled": 1, "false_apology": 1}


def test_an_apology_that_a_chat_has_just_had_is_not_missed():
    failing = [Mark("group", 1, number, "hang_9") for number in (1, 2)]
    rows = [
        replace(clean().record.messages[0], id=number, state="failed", text=str(mark))
        for number, mark in enumerate(failing, 900)
    ]
    heard = [replace(clean().heard[-1], text=f"sorry {failing[0]}")]
    told = [replace(clean().told[0], mark=mark) for mark in failing]
    record = replace(clean().record, messages=rows, runs=[])
    verdict = judge(replace(clean(), told=told, heard=heard, record=record, hits=Counter()))
    assert verdict.counts["lost"] == 0
    assert verdict.figures["apologies_spared"] == 1


def test_what_is_out_of_order_is_found():
    assert found(swapped(clean())) == {"misordered": 1}


def test_an_announcement_behind_its_answer_is_found():
    late = [
        replace(one, order=50 if one.text == marks.announcement(PRIVATE) else one.order)
        for one in clean().heard
    ]
    assert found(replace(clean(), heard=late)) == {"misordered": 1}


MISROUTED: dict[str, Callable[[Evidence], Evidence]] = {
    "heard in another chat": lambda e: replace(
        e,
        heard=[
            replace(one, chat=FIRST.chat) if PRIVATE.chat in one.text else one for one in e.heard
        ],
    ),
    "heard by another account": lambda e: replace(
        e, heard=[replace(one, account=OTHER) for one in e.heard]
    ),
    "filed in another chat": lambda e: changed(
        e, lambda row: row.text == str(PRIVATE), chat=FIRST.chat
    ),
    "shown to the model": lambda e: replace(e, crossings=["a mark of another chat"]),
}


@pytest.mark.parametrize("how", MISROUTED)
def test_what_went_astray_is_found(how):
    assert found(MISROUTED[how](clean())).keys() == {"misrouted"}


def test_a_tool_that_was_called_twice_is_found():
    assert found(replace(clean(), hits=Counter({FIRST.id: 2}))) == {"tool_twice": 1}


@pytest.mark.parametrize(
    ("words", "state"),
    [(str(SECOND), "waiting"), (str(SECOND), "running"), (marks.answer(SECOND), "sent")],
)
def test_a_row_without_an_end_is_found(words, state):
    assert found(in_state(clean(), words, state)) == {"unended": 1}


def test_a_run_without_an_end_is_found_and_its_dead_owner_named():
    spoilt = with_runs(clean(), state="running", claimed_by="gone")
    assert found(spoilt) == {"unended": 3}
    assert "of a process that is gone" in judge(spoilt).samples["unended"][0]


def test_a_call_without_an_end_is_found():
    calls = [replace(call, state="running") for call in clean().record.calls[:1]]
    assert found(replace(clean(), record=replace(clean().record, calls=calls))) == {"unended": 1}


def test_an_apology_for_nothing_is_found():
    assert found(apologised(clean())) == {"false_apology": 1}


def test_an_echo_that_is_not_on_record_is_found():
    assert found(changed(clean(), lambda row: row.echo == "e4", echo="other")) == {"unrecorded": 1}


def test_an_answer_of_the_model_that_was_read_without_an_end_is_found():
    assert found(replace(clean(), most_read=MOST_READ + 1)) == {"unbounded": 1}


def with_long_answer(*parts: int) -> Evidence:
    """The clean evidence, and a long answer of which these later parts were heard."""
    mark = Mark("group", 70, 1, "long")
    row = Message(900, "in", "answered", str(mark), ACCOUNT, mark.chat, reason="mention")
    texts = [marks.answer(mark), *(marks.part(mark, number) for number in parts)]
    heard = [
        Heard(100 + place, ACCOUNT, mark.chat, text, f"l{place}", 0.0)
        for place, text in enumerate(texts)
    ]
    said = [
        Message(901 + place, "out", "delivered", one.text, ACCOUNT, mark.chat, echo=one.echo, run=9)
        for place, one in enumerate(heard)
    ]
    usual = clean()
    record = replace(
        usual.record,
        messages=[*usual.record.messages, row, *said],
        runs=[*usual.record.runs, Run(9, 900, "finished")],
    )
    told, every = [*usual.told, Told(mark, ACCOUNT)], [*usual.heard, *heard]
    return replace(usual, told=told, heard=every, record=record)


@pytest.mark.parametrize(
    ("parts", "kinds"),
    [
        ((2, 3), {}),
        ((2, 2, 3), {"doubled": 1}),
        ((3, 2), {"misordered": 1}),
        ((2,), {"lost": 1}),
    ],
)
def test_parts_of_a_long_answer_are_heard_once_and_in_order(parts, kinds):
    assert found(with_long_answer(*parts)) == kinds


def with_hand_message(times: int) -> Evidence:
    """The clean evidence, and a message by hand that was heard so many times."""
    mark, usual = Mark("private", 60, 1, "hand"), clean()
    text = marks.by_hand(mark)
    row = Message(950, "out", "delivered", text, ACCOUNT, mark.chat, echo="h")
    heard = [Heard(200 + time, ACCOUNT, mark.chat, text, "h", 0.0) for time in range(times)]
    record = replace(usual.record, messages=[*usual.record.messages, row])
    hands = [Written(mark, ACCOUNT)]
    return replace(usual, heard=[*usual.heard, *heard], record=record, hands=hands)


@pytest.mark.parametrize(("is_accepted", "kinds"), [(True, {"lost": 1}), (False, {})])
def test_what_a_page_accepted_by_hand_is_on_record(is_accepted, kinds):
    hand = Written(Mark("private", 60, 1, "hand"), ACCOUNT, is_accepted)
    assert found(replace(clean(), hands=[hand])) == kinds


@pytest.mark.parametrize(("times", "kinds"), [(1, {}), (2, {"doubled": 1}), (0, {"lost": 1})])
def test_what_an_operator_wrote_is_heard_once(times, kinds):
    assert found(with_hand_message(times)) == kinds


def left_silent(evidence: Evidence, mark: Mark, reason: str, **values: Any) -> Evidence:
    """Nothing was said of a message, for this reason on record."""
    about = {str(mark), marks.answer(mark)}
    rows = [
        row for row in evidence.record.messages if row.text not in about or row.text == str(mark)
    ]
    quiet = replace(
        unheard(evidence, marks.answer(mark)), record=replace(evidence.record, messages=rows)
    )
    where = str(mark)
    return changed(quiet, lambda row: row.text == where, state="silent", reason=reason, **values)


@pytest.mark.parametrize(("target", "kinds"), [(10, {}), (30, {"lost": 1}), (999, {"lost": 1})])
def test_a_merged_message_is_silent_where_another_of_its_chat_answers_for_it(target, kinds):
    assert found(left_silent(clean(), SECOND, "merged", merged_into=target)) == kinds


def test_an_answer_to_a_merged_message_is_found():
    merged = changed(clean(), lambda row: row.text == str(SECOND), reason="merged", merged_into=10)
    assert found(merged) == {"doubled": 1}


def taken_over(evidence: Evidence, first: int, last: int, back: int) -> Evidence:
    """An operator had the chat of the second message; the ids of what he wrote then."""
    written = [Mark("group", 50, 900 + number, "hand") for number in range(3)]
    rows = [
        Message(at, "out", "delivered", marks.by_hand(mark), ACCOUNT, mark.chat, echo=f"t{at}")
        for mark, at in zip(written, (first, last, back), strict=True)
    ]
    hands = [Written(mark, ACCOUNT) for mark in written]
    heard = [Heard(300, ACCOUNT, row.chat, row.text, row.echo, 0.0) for row in rows]
    record = replace(evidence.record, messages=[*evidence.record.messages, *rows])
    taken = [TakeOver(1, ACCOUNT, *written)]
    every = [*evidence.heard, *heard]
    return replace(evidence, record=record, hands=hands, heard=every, taken=taken)


def test_an_answer_while_an_operator_has_the_chat_is_found():
    assert found(taken_over(clean(), 19, 29, 39)) == {"spoke_over": 1}
    assert found(taken_over(clean(), 28, 29, 39)) == {}


@pytest.mark.parametrize(("back", "kinds"), [(39, {}), (18, {"lost": 1})])
def test_what_is_left_to_an_operator_is_silent_until_he_hands_back(back, kinds):
    quiet = left_silent(clean(), SECOND, "taken_over")
    assert found(taken_over(quiet, 16, 17, back)) == kinds


def test_an_answer_that_a_take_over_kept_from_being_sent_is_no_loss():
    quiet = unheard(clean(), marks.answer(SECOND))
    unsent = in_state(quiet, marks.answer(SECOND), "failed")
    left = changed(unsent, lambda row: row.text == str(SECOND), state="silent", reason="taken_over")
    assert found(taken_over(left, 28, 29, 39)) == {}


def with_budget(times: int) -> Evidence:
    """The clean evidence, and three messages turned away, of which so many were told so."""
    usual = clean()
    turned = [Mark("private", 80, number, "budget") for number in (1, 2, 3)]
    rows = [
        Message(900 + mark.number, "in", "silent", str(mark), ACCOUNT, mark.chat, reason="budget")
        for mark in turned
    ]
    said = [
        Message(950 + mark.number, "out", "delivered", "no", ACCOUNT, mark.chat, echo=f"b{mark.id}")
        for mark in turned[:times]
    ]
    said = [replace(row, run=800 + number) for number, row in enumerate(said, 1)]
    runs = [Run(800 + mark.number, 900 + mark.number, "finished") for mark in turned]
    heard = [
        Heard(row.id, ACCOUNT, row.chat, f"no {turned[at]}", row.echo, 0.0)
        for at, row in enumerate(said)
    ]
    told = [Told(mark, ACCOUNT) for mark in turned]
    record = replace(
        usual.record,
        messages=[*usual.record.messages, *rows, *said],
        runs=[*usual.record.runs, *runs],
    )
    return replace(usual, told=[*usual.told, *told], heard=[*usual.heard, *heard], record=record)


@pytest.mark.parametrize(("times", "kinds"), [(1, {}), (2, {"doubled": 1}), (0, {"lost": 1})])
def test_a_chat_is_told_once_that_its_budget_is_spent(times, kinds):
    assert found(with_budget(times)) == kinds


def test_what_is_spent_beyond_a_budget_is_found():
    assert found(replace(clean(), spent=Counter({"private:80": 10}), may_spend=10)) == {}
    assert found(replace(clean(), spent=Counter({"private:80": 11}), may_spend=10)) == {
        "overspent": 1
    }


def test_a_command_is_answered_once_with_words_of_its_own():
    mark = Mark("private", 60, 9, "command")
    usual = clean()
    row = Message(960, "in", "answered", marks.saying(mark), ACCOUNT, mark.chat, reason="command")
    out = Message(961, "out", "delivered", "No.", ACCOUNT, mark.chat, echo="c", run=9)
    said = Heard(400, ACCOUNT, mark.chat, "No.", "c", 0.0)
    record = replace(
        usual.record,
        messages=[*usual.record.messages, row, out],
        runs=[*usual.record.runs, Run(9, 960, "finished")],
    )
    for heard, kinds in (([said], {}), ([said, replace(said, order=401)], {"doubled": 1})):
        told = [*usual.told, Told(mark, ACCOUNT)]
        every = [*usual.heard, *heard]
        assert found(replace(usual, told=told, heard=every, record=record)) == kinds


def test_sums_that_are_not_those_of_the_rows_are_found():
    usual = clean()
    spoilt = replace(usual.record, sums={1: {"sent": 2}}, counts={1: {"sent": 3}})
    assert found(replace(usual, record=spoilt)) == {"sums": 1}


# --- What is no fault -------------------------------------------------------------------


def test_what_was_cut_off_in_the_midst_of_a_send_may_be_unknown_and_is_counted_by_its_reason():
    spoilt = changed(
        clean(),
        lambda row: row.text == marks.answer(SECOND),
        state="unknown",
        detail="the server stopped",
    )
    verdict = judge(replace(unheard(spoilt, marks.answer(SECOND)), excuses=True))
    assert verdict.is_clean
    assert verdict.unknown == {"the server stopped": 1}


def test_what_was_in_the_buffers_of_a_socket_that_was_cut_is_counted_by_itself():
    spoilt = without(clean(), SECOND)
    told = [replace(one, may_be_missing=one.mark == SECOND) for one in spoilt.told]
    verdict = judge(replace(spoilt, told=told))
    assert verdict.is_clean
    assert verdict.figures["in_buffers"] == 1


@pytest.mark.parametrize(
    ("story", "is_due"),
    [("500_1", False), ("500_9", True), ("hang_1", True), ("null_1", False), ("both", False)],
)
def test_an_apology_is_due_where_the_model_never_answered(story, is_due):
    assert Mark("group", 1, 1, story).may_fail is is_due


# --- The model and the load ----------------------------------------------------------------


def framed(mark: Mark, chat: str = "") -> dict[str, str]:
    header = {"sender": {"user_id": "1"}, "chat": chat or mark.chat}
    return {"role": "user", "content": f"{json.dumps(header)}\n{mark}"}


def test_the_model_sees_what_belongs_to_another_chat():
    assert crossings(FIRST, [framed(FIRST), framed(SECOND)]) == []
    assert len(crossings(FIRST, [framed(PRIVATE), framed(FIRST)])) == 2
    assert len(crossings(PRIVATE, [framed(PRIVATE, FIRST.chat)])) == 1


def test_the_model_calls_the_tool_then_sends_then_answers():
    result = {"role": "tool", "content": "done"}
    names = []
    for results in range(3):
        mark, count = asked([framed(FIRST), *[result] * results])
        assert mark == FIRST
        message = decide(mark, count)
        names += [call["function"]["name"] for call in message.get("tool_calls", ())] or [
            message["content"]
        ]
    assert names == ["chaos_count", "send_message", marks.answer(FIRST)]


def test_a_seed_makes_the_same_load_again_and_another_seed_another():
    def told(seed: str) -> list[Any]:
        return list(islice(sayings(seed, 0, 3, Load()), 50))

    assert told("1/kills") == told("1/kills")
    assert told("1/kills") != told("2/kills")
    peers = [
        {one.mark.peer for one in islice(sayings("1", number, 3, Load()), 50)}
        for number in range(2)
    ]
    assert len(peers[0]) > 5
    assert not peers[0] & peers[1]

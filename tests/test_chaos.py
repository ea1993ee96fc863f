"""``make chaos`` can fail: whatever is wrong with what was heard or recorded is found."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from chaos import marks
from chaos.client import Heard
from chaos.judge import MOST_READ, Evidence, Told, judge
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

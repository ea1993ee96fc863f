"""Requests to be let in: each on record once, decided by the first rule that fits, told once."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.client_actions import ActionOutcome
from agent.domain.requests import (
    NOT_KNOWN_TO_CLIENT,
    UNKNOWN,
    IncomingRequest,
    RequestKind,
    RequestReply,
)
from agent.domain.types import ChatAddress
from agent.models import ChatSession, JoinRequest, Message, RequestRule, ServerProcess
from agent.privacy.person import Person
from agent.privacy.phases import erase_join_requests
from agent.record.requests import telling
from agent.record.requests.arriving import MOST_WAITING, take_in
from agent.record.requests.deciding import claim_decided, decide, note_joins, settle, sweep
from agent.record.waiting import expiry
from agent.runtime.request_desk import RequestDesk
from tests.admin.record import answered, chat, said
from tests.agent.talk import message

pytestmark = pytest.mark.django_db
JOIN = IncomingRequest("10001", RequestKind.JOIN, "20002", "30003", "frost", "f1", level=16)


def asked(**fields: Any) -> JoinRequest:
    """The newest request once one like :data:`JOIN` has arrived."""
    take_in([replace(JOIN, **fields)])
    found = JoinRequest.objects.order_by("pk").last()
    assert found
    return found


def rule(**fields: Any) -> RequestRule:
    return RequestRule.objects.create(**{"action": "approve"} | fields)


def claim(process: str = "p1", **options: Any) -> list[Any]:
    alive = {"last_seen_at": timezone.now(), "pid": 1}
    ServerProcess.objects.get_or_create(pk=process, defaults=alive)
    usual: dict[str, Any] = {"is_connected": lambda _account: True, "under_way": (), "room": 10}
    return claim_decided(process, **usual | options)


def fresh(row: JoinRequest) -> JoinRequest:
    row.refresh_from_db()
    return row


def test_nobody_is_let_in_without_a_rule():
    row = asked()
    assert (row.state, row.decision, row.rule) == ("waiting", "", None)
    assert claim() == []


def test_the_same_request_is_one_row_however_often_it_is_reported():
    take_in([JOIN, JOIN])
    take_in([JOIN, replace(JOIN, happened_at=timezone.now())])
    assert JoinRequest.objects.count() == 1
    take_in([replace(JOIN, account="10002"), replace(JOIN, flag="f2"), replace(JOIN, flag=1)])
    assert JoinRequest.objects.count() == 4
    JoinRequest.objects.update(state="refused", decided_at=timezone.now())
    take_in([JOIN])
    assert JoinRequest.objects.count() == 4
    take_in([replace(JOIN, comment="please")])  # asked again, under the same flag
    assert JoinRequest.objects.filter(state="waiting").count() == 1


@pytest.mark.parametrize(
    ("said", "decision"),
    [
        ({}, "approve"),
        ({"words": "FROST\nsnow"}, "approve"),
        ({"words": "snow"}, ""),
        ({"kind": "friend"}, ""),
        ({"kind": "join", "groups": "30003"}, "approve"),
        ({"groups": "30004"}, ""),
        ({"people": "20002"}, "approve"),
        ({"people": "onebot:4"}, "approve"),
        ({"people": "5"}, ""),
        ({"least_level": 16}, "approve"),
        ({"least_level": 17}, ""),
        ({"per_day": 0}, ""),
        ({"account": "10001", "chat_kind": "group", "chats": "group:30003"}, "approve"),
        ({"account": "10002"}, ""),
        ({"chat_kind": "private"}, ""),
        ({"chats": "group:30004"}, ""),
        ({"enabled": False}, ""),
        ({"action": "wait"}, ""),
        ({"action": "refuse", "reason": "full"}, "refuse"),
    ],
)
def test_a_rule_decides_where_all_that_it_says_fits(said, decision):
    made = rule(**said)
    row = asked(inviter_id="4")
    assert row.decision == decision
    assert row.decided_by == (str(made) if decision else "")
    assert row.reason == said.get("reason", "")


def test_the_first_rule_that_fits_decides_but_lists_that_keep_out_come_before():
    rule(position=2, action="refuse")
    first = rule(position=1, name="first")
    assert asked().rule == first
    deny = rule(position=9, action="refuse", people="20002", name="deny")
    assert asked(flag="f2").rule == deny
    assert asked(flag="f3", user_id="1", inviter_id="20002").decision == "refuse"


def test_where_the_level_is_not_told_a_rule_that_asks_for_one_lets_it_wait():
    made = rule(least_level=1)
    rule(position=200)
    row = asked(level=None)
    assert (row.decision, row.rule) == ("", made)


def test_a_rule_decides_as_often_a_day_as_it_may():
    rule(per_day=2)
    take_in([replace(JOIN, flag=f"a{number}") for number in range(2)])
    take_in([replace(JOIN, flag=f"b{number}") for number in range(2)])
    assert JoinRequest.objects.filter(decision="approve").count() == 2
    JoinRequest.objects.update(decided_at=timezone.now() - timedelta(days=1))
    assert asked(flag="next").decision == "approve"


def test_what_was_decided_elsewhere_does_not_count_for_a_rule():
    rule(per_day=1)
    asked()
    waiting = asked(flag="f2", user_id="20003")
    JoinRequest.objects.update(decided_at=timezone.now() - timedelta(days=1))
    note_joins([("10001", "30003", "20003")])
    assert fresh(waiting).state == "expired"
    assert asked(flag="f3").decision == "approve"


def test_another_person_under_the_flag_of_the_first_is_a_request_of_its_own():
    row, other = asked(flag=1), asked(flag=1, user_id="20003")
    assert (row.user_id, other.user_id) == ("20002", "20003")


def test_only_the_answer_to_the_question_of_the_group_counts():
    rule(words="frost")
    assert asked(comment="问题：frost?\n答案：no").decision == ""
    assert asked(flag="f2", comment="问题：?\n答案：Frost").decision == "approve"


def test_what_has_no_flag_can_only_be_refused_here():
    rule()
    row = asked(flag=None)
    assert (row.state, row.decision) == ("waiting", "")
    assert "refused here" in row.reason
    decide([row.pk], is_approval=True, by="ann")
    assert (fresh(row).state, row.decision) == ("waiting", "")
    decide([row.pk], is_approval=False, by="ann", reason="no")
    assert (fresh(row).state, row.reason, claim()) == ("refused", "no", [])


def test_a_decision_is_claimed_once_and_settled_by_what_the_client_says():
    outcomes = [
        (ActionOutcome(is_success=True), ("approved", "ann", "")),
        (ActionOutcome(words="已处理"), ("expired", "ann", "已处理")),
        (ActionOutcome(words="No such request"), ("waiting", "", "No such request")),
        (ActionOutcome(words="x" * 501), ("waiting", "", "x" * 500)),
        (ActionOutcome(words="Timeout", is_unknown=True), ("waiting", "", UNKNOWN)),
        (ActionOutcome(is_unsupported=True), ("waiting", "", NOT_KNOWN_TO_CLIENT)),
    ]
    for number, (outcome, state) in enumerate(outcomes):
        row = asked(flag=number)
        assert decide([row.pk], is_approval=True, by="ann") == [row.pk]
        assert decide([row.pk], is_approval=False, by="bob") == []
        [(pk, at, action, params)] = claim()
        assert (at.account, action) == ("10001", "set_group_add_request")
        assert (params["flag"], params["approve"]) == (number, True)
        assert claim(under_way={pk}) == []
        settle(pk, "another", outcome)
        assert fresh(row).decision == "approve"
        settle(pk, "p1", outcome)
        assert (fresh(row).state, row.decided_by, row.reason, row.decision) == (*state, "")


def test_one_that_was_being_told_when_its_process_died_is_not_told_again():
    row = asked()
    decide([row.pk], is_approval=True, by="ann")
    assert len(claim()) == 1
    ServerProcess.objects.all().delete()
    assert claim("p2") == []
    assert (fresh(row).state, row.decision) == ("waiting", "")
    assert "Nobody knows" in row.reason


def test_one_that_nobody_is_telling_any_more_is_open_again():
    row = asked()
    decide([row.pk], is_approval=True, by="ann")
    [(pk, *_)] = claim()
    assert claim(under_way={pk}) == []
    assert fresh(row).decision == "approve"
    assert claim(under_way=()) == []  # what came of it could not be written
    assert (fresh(row).decision, "Nobody knows" in row.reason) == ("", True)


def test_a_decision_waits_a_while_for_its_account_and_then_for_somebody():
    row = asked()
    decide([row.pk], is_approval=True, by="ann")
    assert claim(is_connected=lambda _account: False) == []
    assert fresh(row).decision == "approve"
    JoinRequest.objects.update(decided_at=timezone.now() - timedelta(minutes=6))
    claim(is_connected=lambda _account: False)
    assert (fresh(row).decision, "not connected" in row.reason) == ("", True)


def test_what_is_over_expires():
    assert sweep() is False
    old, gone, on_its_way = asked(), asked(flag="f2", group_id="4"), asked(flag="f3", group_id="4")
    JoinRequest.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=8))
    decide([on_its_way.pk], is_approval=True, by="ann")
    session = chat("4")
    ChatSession.objects.filter(pk=session.pk).update(pause_reason="left")
    sweep()
    assert (fresh(old).state, fresh(gone).state) == ("expired", "expired")
    assert "no longer in this group" in gone.reason
    assert fresh(on_its_way).state == "waiting"
    rule()
    assert asked(flag="f4", group_id="4").state == "expired"


def test_who_is_a_member_by_now_was_let_in_elsewhere():
    row, invite = asked(), asked(flag="i", kind=RequestKind.INVITE, group_id="5")
    other = asked(flag="f2", user_id="20003")
    note_joins([("10001", "30003", "20002"), ("10001", "5", "10001"), ("10002", "30003", "20003")])
    assert [fresh(one).state for one in (row, invite, other)] == ["expired", "expired", "waiting"]


def test_a_flood_is_kept_within_bounds_and_told_in_one_note():
    take_in([replace(JOIN, flag=f"f{number}", comment="x" * 2_000) for number in range(2_100)])
    assert JoinRequest.objects.filter(state="waiting").count() == MOST_WAITING
    assert telling.tell_waiting(lambda _account: {"666"}) == ["10001"]
    assert telling.tell_waiting(lambda _account: {"666"}) == []
    [note] = Message.objects.filter(reason="owner_note")
    assert note.raw
    assert (len(note.raw["requests"]), "1990" in note.text) == (telling.SHOWN, True)


@pytest.mark.parametrize(
    ("notes", "ago", "is_told"),
    [(0, 0, True), (1, 1, False), (1, 2, True), (5, 30, False), (5, 33, True), (20, 290, False),
     (20, 301, True)],
)  # fmt: skip
def test_the_more_notes_there_were_the_longer_the_next_one_waits(notes, ago, is_told):
    for number in range(notes):
        told_at = timezone.now() - timedelta(seconds=ago + number)
        JoinRequest.objects.filter(pk=asked(flag=f"f{number}").pk).update(told_at=told_at)
    asked(flag="new")
    assert telling.tell_waiting(lambda _account: {"666"}) == (["10001"] if is_told else [])


def test_words_of_strangers_are_one_line_that_reads_like_nothing_else():
    words = "hi\n#8 批准 123456\u202e{pk}"
    told = [
        JoinRequest(pk=7, kind="join", user_id="20002", group_id="30003", comment=words),
        JoinRequest(pk=9, kind="invite", user_id="20003", group_id="4", comment="x" * 5_000),
    ]
    note = telling.build_note(told, 40)
    lines = note.splitlines()
    assert [line[:2] for line in lines[1:3]] == ["#7", "#9"]
    assert r"\u6279\u51c6" in lines[1]
    assert "\u202e" not in note
    assert len(note) < 1_200
    assert "38" in lines[3]


async def test_words_that_no_client_takes_are_not_sent():
    nothing: Any = None
    desk = RequestDesk(nothing, nothing, nothing, nothing)
    assert "200" in await desk.obey(RequestReply(False, "x" * 201), "666", "zh-hans")


def test_owners_nobody_knows_are_not_told():
    asked()
    assert telling.tell_waiting(lambda _account: ()) == []


def test_a_word_is_about_the_note_that_it_quotes_or_the_request_that_it_names():
    row, foreign = asked(), asked(account="10002")
    session = chat("666", kind="private")
    note = said(session, reason="owner_note", raw={"requests": [row.pk, foreign.pk]})
    answered(note, message_id="77")
    answered(said(session), message_id="78")

    def about(text: str, quoted_id: str = "") -> Any:
        word = message(text, ChatAddress("10001", "private", "666"), quoted_id=quoted_id)
        found = telling.read_request_reply(word, session.pk)
        return found.requests if found else None

    assert about("批准", "77") == (row.pk,)
    assert about("批准", "78") is None
    assert about("批准") is None
    assert about(f"拒绝 #{row.pk} no") == (row.pk,)
    assert about(f"批准 #{foreign.pk}") is None


def test_an_owner_hears_how_requests_stand_and_what_is_not_done():
    row, late, odd = asked(), asked(flag="f2"), asked(flag=None)
    JoinRequest.objects.filter(pk=late.pk).update(state="refused", decided_by="bob")
    decide([row.pk, late.pk, odd.pk], is_approval=True, by="666")
    said = telling.describe([row.pk, late.pk, odd.pk], "en").splitlines()
    assert said[:2] == [
        f"#{row.pk}: the client is being told.",
        f"#{late.pk}: refused by bob.",
    ]
    assert said[2].startswith(f"#{odd.pk}: it still waits. The client gave no flag")


def test_a_person_is_erased_from_requests_and_old_ones_go_once_they_are_over():
    asked(), asked(flag="f2", user_id="4", inviter_id="20002")
    JoinRequest.objects.update(decided_by="20002")
    assert erase_join_requests(Person("20002")) == 1
    [other] = JoinRequest.objects.all()
    assert (other.inviter_id, other.decided_by) == ("", "")
    later = timezone.now() + timedelta(days=1)
    assert expiry.erase_join_requests(later, 0, 0).count == 0
    JoinRequest.objects.update(state="approved")
    assert expiry.erase_join_requests(later, 0, 0).count == 1

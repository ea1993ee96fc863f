"""Who is answered: one pure decision for each message, with its reason."""

import time as clock
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.answer_triggers import MAX_AGE, Occasion, decide_trigger
from agent.domain.manners import ChatManners, PrivateChats, QuietSpan, parse_quiet_hours
from agent.domain.states import PauseReason
from agent.domain.types import ChatAddress, IncomingMessage

NOW = timezone.now()
OWN_PREFIX = ChatManners(command_prefix="#", said_by={"command_prefix": "row"})
MANNERS = ChatManners(wake_names=("Frost", "小霜", "f.r."))


def said(text: str = "hello", kind: str = "group", **fields) -> IncomingMessage:
    chat = ChatAddress("1", "group" if kind == "group" else "private", "7")
    return IncomingMessage(
        chat, "2", "Ann", text, [], **{"spoken_text": text, "happened_at": NOW, **fields}
    )


def verdict(
    message: IncomingMessage, manners: ChatManners = MANNERS, **occasion: Any
) -> tuple[str, str]:
    decision = decide_trigger(message, manners, Occasion(**{"now": NOW, **occasion}))
    return decision.state, decision.reason


def test_private_messages_are_always_answered():
    assert verdict(said(kind="private")) == ("waiting", "private")
    assert verdict(said(kind="private"), ChatManners(groups=False)) == (
        "waiting",
        "private",
    )


def test_group_messages_are_answered_when_the_bot_is_mentioned():
    assert verdict(said(mentions_bot=True)) == ("waiting", "mention")


def test_a_mention_without_words_is_answered():
    assert verdict(said("", mentions_bot=True)) == ("waiting", "mention")


@pytest.mark.parametrize("text", ["Frost?", "hey FROST", "defrosted", "小霜你好", "F.R. now"])
def test_group_messages_are_answered_when_a_wake_word_is_said_in_any_case(text):
    assert verdict(said(text)) == ("waiting", "wake_word")


@pytest.mark.parametrize("text", ["fry", "flr!", "霜", "hello"])
def test_wake_words_are_words_and_no_patterns(text):
    assert verdict(said(text)) == ("recorded", "not_addressed")


def test_wake_words_are_looked_for_in_what_was_said_and_not_in_what_was_rendered():
    assert verdict(said("[文件:frost.txt]", spoken_text="")) == ("recorded", "not_addressed")


def test_empty_wake_words_wake_nobody():
    assert verdict(said(), ChatManners(wake_names=("", ""))) == ("recorded", "not_addressed")


def test_a_quote_of_the_bots_own_message_is_answered():
    assert verdict(said(), quotes_bot=True) == ("waiting", "quote")


def test_groups_that_are_switched_off_are_recorded_whatever_is_said():
    message = said("Frost!", mentions_bot=True)
    assert verdict(message, ChatManners(groups=False, wake_names=("Frost",)), quotes_bot=True) == (
        "recorded",
        "groups_off",
    )


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("from_own_account", "own_message"),
        ("from_other_bot", "other_bot"),
        ("is_notice", "system_notice"),
    ],
)
@pytest.mark.parametrize("kind", ["private", "group"])
def test_bots_and_notices_are_never_answered(kind, field, reason):
    assert verdict(said("Frost!", kind, mentions_bot=True, **{field: True})) == ("recorded", reason)


@pytest.mark.parametrize("kind", ["private", "group"])
def test_a_message_without_content_is_not_answered(kind):
    assert verdict(said("", kind)) == ("recorded", "empty")


@pytest.mark.parametrize("kind", ["private", "group"])
def test_a_message_older_than_five_minutes_is_kept_and_not_answered(kind):
    old = said("Frost!", kind, happened_at=NOW - MAX_AGE - timedelta(seconds=1))
    assert verdict(old) == ("expired", "too_old")
    assert timedelta(minutes=5) == MAX_AGE


@pytest.mark.parametrize("age", [MAX_AGE, timedelta(0), timedelta(hours=-9)])
def test_a_message_of_up_to_five_minutes_or_from_a_clock_ahead_is_answered(age):
    assert verdict(said(kind="private", happened_at=NOW - age)) == ("waiting", "private")


def test_a_message_without_a_time_is_as_old_as_its_arrival():
    assert verdict(said(kind="private", happened_at=None)) == ("waiting", "private")


def test_an_old_message_that_nobody_would_answer_keeps_its_own_reason():
    old = said(happened_at=NOW - timedelta(days=1))
    assert verdict(old) == ("recorded", "not_addressed")


# --- By what a message wakes the bot ------------------------------------------------


@pytest.mark.parametrize(
    ("manners", "message", "occasion", "reason"),
    [
        (ChatManners(wake_prefixes=("#", "霜霜，")), said("#hi"), {}, "prefix"),
        (ChatManners(wake_prefixes=("#", "霜霜，")), said("  霜霜，在吗"), {}, "prefix"),
        (ChatManners(wake_prefixes=("#",)), said("a #hi"), {}, "not_addressed"),
        (ChatManners(wake_pattern="天气|下雨"), said("明天会下雨吗"), {}, "pattern"),
        (ChatManners(wake_pattern="^请问"), said("那个请问"), {}, "not_addressed"),
        (ChatManners(wake_pattern="(?=no RE2"), said("no RE2"), {}, "not_addressed"),
        (ChatManners(wake_always=True), said(), {}, "always"),
        (ChatManners(), said(), {"is_follow_up": True}, "follow_up"),
        (ChatManners(wake_chance=2.0), said(), {"roll": 1.99}, "chance"),
        (ChatManners(wake_chance=2.0), said(), {"roll": 2.0}, "not_addressed"),
        (ChatManners(wake_chance=0.0), said(), {"roll": 0.0}, "not_addressed"),
        (ChatManners(wake_chance=100.0), said(), {"roll": 99.999}, "chance"),
        (ChatManners(wake_mention=False), said(mentions_bot=True), {}, "not_addressed"),
        (ChatManners(wake_quote=False), said(), {"quotes_bot": True}, "not_addressed"),
        (ChatManners(), said("/help", mentions_bot=True), {"is_command": True}, "command"),
        (ChatManners(), said("/why"), {"is_command": True, "quotes_bot": True}, "command"),
        (ChatManners(), said("/help"), {"is_command": True, "is_owner": True}, "command"),
        (ChatManners(), said("/help"), {"is_command": True}, "not_addressed"),
        (OWN_PREFIX, said("#help"), {"is_command": True}, "command"),
        (ChatManners(), said("批准 1"), {"is_decision": True}, "decision"),
    ],
)
def test_a_message_of_a_group_wakes_the_bot_as_its_manners_say(manners, message, occasion, reason):
    state = "recorded" if reason == "not_addressed" else "waiting"
    assert verdict(message, manners, **occasion) == (state, reason)


def test_what_wakes_the_bot_in_more_ways_has_the_most_personal_reason():
    loud = ChatManners(
        wake_names=("hello",), wake_pattern="hello", wake_always=True, wake_chance=100
    )
    assert verdict(said(mentions_bot=True), loud, quotes_bot=True)[1] == "mention"
    assert verdict(said(), loud, quotes_bot=True)[1] == "wake_word"
    assert verdict(said("hi"), loud, quotes_bot=True)[1] == "quote"
    assert verdict(said("hi"), loud)[1] == "always"


def test_commands_in_groups_that_are_switched_off_are_for_owners_alone():
    off, message = ChatManners(groups=False), said("/help")
    assert verdict(message, off, is_command=True) == ("recorded", "groups_off")
    assert verdict(message, off, is_command=True, is_owner=True) == ("waiting", "command")
    assert verdict(said("/help", "private"), off, is_command=True) == ("waiting", "command")


def test_a_command_for_who_leads_the_group_need_not_address_the_bot():
    message = said("/mute @20002 10m")
    assert verdict(message, is_command=True) == ("recorded", "not_addressed")
    heard = verdict(message, is_command=True, is_for_managers=True)
    assert heard == ("waiting", "command")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*b", "((a?){50}){10}b", "^(a*)*c"])
def test_a_catastrophic_pattern_takes_no_time_in_a_megabyte(pattern):
    message, begun = said("a" * 1_000_000), clock.process_time()
    verdict(message, ChatManners(wake_pattern=pattern))
    assert clock.process_time() - begun < 3


def test_a_hundred_names_are_looked_for_in_a_megabyte_at_once():
    names = tuple(f"{chr(97 + number % 26)}{number}name" for number in range(100))
    message, begun = said("hello 名 world " * 70_000), clock.process_time()
    assert verdict(message, ChatManners(wake_names=names))[1] == "not_addressed"
    assert clock.process_time() - begun < 3


# --- Why it keeps silent ------------------------------------------------------------

NIGHT = ChatManners(
    quiet_hours=(QuietSpan(time(23), time(7, 30)),), said_by={"quiet_hours": "night"}
)


@pytest.mark.parametrize(
    ("utc", "is_quiet"),
    [("14:59", False), ("15:00", True), ("20:00", True), ("23:29", True), ("23:30", False)],
)
def test_quiet_hours_go_over_midnight_where_the_installation_is(settings, utc, is_quiet):
    settings.TIME_ZONE = "Asia/Shanghai"
    now = datetime.combine(date(2026, 1, 5), time.fromisoformat(utc), UTC)
    message = said(kind="private", happened_at=now)
    found = ("silent", "quiet_hours") if is_quiet else ("waiting", "private")
    assert verdict(message, NIGHT, now=now) == found
    assert verdict(message, NIGHT, now=now, is_owner=True) == ("waiting", "private")


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("", []),
        ("23:00-07:30", [((23, 0), (7, 30))]),
        ("7:30-8:00\n22：00～24：00", [((7, 30), (8, 0)), ((22, 0), (0, 0))]),
        (
            "1:00-2:00，3:00 至 4:00;5:00—6:00",
            [((1, 0), (2, 0)), ((3, 0), (4, 0)), ((5, 0), (6, 0))],
        ),
    ],
)
def test_quiet_hours_are_read_as_people_write_them(text, spans):
    assert parse_quiet_hours(text) == tuple(QuietSpan(time(*a), time(*b)) for a, b in spans)


@pytest.mark.parametrize(
    "text", ["night", "23:00", "23-7", "23:00-25:00", "23:60-7:00", "8:00-8:00", "1:00-2:00Z"]
)
def test_what_are_no_quiet_hours_are_named(text):
    with pytest.raises(ValueError, match=text):
        parse_quiet_hours(text)


@pytest.mark.parametrize(
    ("private", "is_friend", "found"),
    [
        (PrivateChats.ON, False, ("waiting", "private")),
        (PrivateChats.FRIENDS, True, ("waiting", "private")),
        (PrivateChats.FRIENDS, False, ("silent", "not_friend")),
        (PrivateChats.OFF, True, ("silent", "private_off")),
    ],
)
def test_private_messages_are_answered_to_those_for_whom_they_are_on(private, is_friend, found):
    manners = ChatManners(private=private)
    through = "" if is_friend else "30003"  # a temporary session comes through a group
    message = said(kind="private", is_friend=is_friend, temp_group_id=through)
    assert verdict(message, manners) == found
    assert verdict(message, manners, is_owner=True) == ("waiting", "private")
    assert verdict(said(mentions_bot=True), manners) == ("waiting", "mention")


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"denied_people": frozenset({"2"})}, "blocked"),
        ({"allowed_people": frozenset({"3"})}, "not_listed"),
        ({"allowed_people": frozenset({"2"}), "denied_people": frozenset({"2"})}, "blocked"),
        ({"allowed_people": frozenset({"2"})}, "mention"),
    ],
)
def test_lists_of_people_count_and_denial_wins(fields, found):
    state = "waiting" if found == "mention" else "silent"
    assert verdict(said(mentions_bot=True), ChatManners(**fields)) == (state, found)
    owner = verdict(said(mentions_bot=True), ChatManners(**fields), is_owner=True)
    assert owner == ("waiting", "mention")


@pytest.mark.parametrize(
    ("occasion", "found"),
    [
        ({}, ("silent", "silenced")),
        ({"is_owner": True}, ("silent", "silenced")),
        ({"is_command": True}, ("silent", "silenced")),
        ({"is_owner": True, "is_command": True}, ("waiting", "command")),
        ({"is_owner": True, "is_decision": True}, ("waiting", "decision")),
    ],
)
@pytest.mark.parametrize("kind", ["group", "private"])
def test_in_a_silenced_chat_only_commands_and_decisions_of_owners_count(kind, occasion, found):
    message = said(kind=kind, mentions_bot=True)
    assert verdict(message, ChatManners(silenced_by="calm", wake_always=True), **occasion) == found


@pytest.mark.parametrize(
    ("person", "occasion", "found"),
    [
        ("1", {}, ("silent", "only_one")),
        ("1", {"is_owner": True}, ("silent", "only_one")),
        ("1", {"is_owner": True, "is_command": True}, ("waiting", "command")),
        ("1", {"taken_over_by": "ann"}, ("silent", "taken_over")),
        ("2", {}, ("waiting", "mention")),
    ],
)
def test_where_one_person_is_answered_others_are_not_until_it_is_over(person, occasion, found):
    end = NOW + timedelta(minutes=1)
    manners = ChatManners(only_person=person, only_until=end)
    assert verdict(said(mentions_bot=True), manners, **occasion) == found
    over = decide_trigger(said(mentions_bot=True), manners, Occasion(end))
    assert over.is_to_be_answered


@pytest.mark.parametrize("pause", list(PauseReason))
def test_where_the_account_cannot_speak_not_even_owners_are_answered(pause):
    occasion = Occasion(NOW, pause=pause, is_owner=True, is_command=True)
    decision = decide_trigger(said("/help", "private"), ChatManners(silenced_by="calm"), occasion)
    assert (decision.state, decision.reason, decision.detail) == ("silent", "paused", pause.value)
    assert verdict(said(), pause=pause) == ("recorded", "not_addressed")


@pytest.mark.parametrize(
    ("manners", "kind", "detail"),
    [
        (ChatManners(silenced_by="a"), "group", "a"),
        (ChatManners(groups=False, said_by={"groups": "b"}), "group", "b"),
        (ChatManners(private=PrivateChats.OFF, said_by={"private": "c"}), "private", "c"),
        (ChatManners(private=PrivateChats.FRIENDS, said_by={"private": "c"}), "private", "c"),
        (ChatManners(denied_people=frozenset("2"), said_by={"denied_people": "d"}), "group", "d"),
        (ChatManners(allowed_people=frozenset("3"), said_by={"allowed_people": "e"}), "group", "e"),
    ],
)
def test_the_row_that_keeps_the_bot_silent_is_named(manners, kind, detail):
    decision = decide_trigger(said(kind=kind, mentions_bot=True), manners, Occasion(NOW))
    assert not decision.is_to_be_answered
    assert decision.detail == detail


def test_a_message_that_nobody_would_answer_is_not_called_silenced():
    assert verdict(said(), ChatManners(silenced_by="calm", said_by={"groups": "g"})) == (
        "recorded",
        "not_addressed",
    )
    assert decide_trigger(said(), ChatManners(said_by={"groups": "g"}), Occasion(NOW)).detail == ""


def test_where_an_operator_has_taken_over_only_owners_orders_are_obeyed():
    taken: dict[str, Any] = {"taken_over_by": "ann"}
    called = said(mentions_bot=True)
    heard = decide_trigger(called, MANNERS, Occasion(now=NOW, taken_over_by="ann"))
    assert (heard.state, heard.reason, heard.detail) == ("silent", "taken_over", "ann")
    assert verdict(said(), **taken) == ("recorded", "not_addressed")
    assert verdict(said("/stop", "private"), is_command=True, **taken)[1] == "taken_over"
    orders: dict[str, Any] = {"is_owner": True, **taken}
    assert verdict(said("/stop", "private"), is_command=True, **orders) == ("waiting", "command")
    assert verdict(said("yes"), is_decision=True, **orders) == ("waiting", "decision")
    assert verdict(called, is_owner=True, **taken) == ("silent", "taken_over")


def test_operators_hear_a_silenced_chat_and_nobody_who_is_denied_or_a_paused_one():
    taken: dict[str, Any] = {"taken_over_by": "ann"}
    called = said(mentions_bot=True)
    assert verdict(called, ChatManners(silenced_by="row"), **taken)[1] == "taken_over"
    denied = ChatManners(denied_people=frozenset({"2"}))
    assert verdict(called, denied, **taken) == ("silent", "blocked")
    assert verdict(called, pause=PauseReason.MUTED, **taken)[1] == "paused"

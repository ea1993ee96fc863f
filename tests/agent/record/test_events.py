"""Events that rules are for: which row counts, and what becomes a message of the inbox."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.events import ChatNotice, EventKind
from agent.domain.types import ChatAddress
from agent.models import ChatSession, EventRule, Manners, Message
from agent.record.arrivals.events import MOST_WAITING, EventDesk
from agent.record.chats.chat_events import EventArrival
from agent.record.settings.event_rules import load_event_rules
from agent.record.settings.live import LiveSettings
from agent.record.sums.quotas import AnswerQuotas
from agent.record.waiting.recovery import is_next_in_session
from tests.agent.talk import GROUP, PRIVATE, PROCESS, accept, give_owners, message, reasons

pytestmark = pytest.mark.django_db
POKE: dict[str, Any] = {"user_id": "20001", "target_id": GROUP.account}


def rule(kind: str = "poke", action: str = "say", **fields: Any) -> EventRule:
    usual: dict[str, Any] = {"name": f"{kind} {EventRule.objects.count()}", "text": "hi"}
    made: EventRule = EventRule.objects.create(kind=kind, action=action, **usual | fields)
    return made


def desk(*owners: str) -> EventDesk:
    live = LiveSettings()
    give_owners(live, *owners)
    return EventDesk(PROCESS, live, AnswerQuotas(live, 0))


def arrival(kind: str, chat: ChatAddress | None = GROUP, **fields: Any) -> EventArrival:
    is_of_bot = fields.pop("is_of_bot", False)
    usual = {"happened_at": timezone.now()}
    return EventArrival(
        ChatNotice(EventKind(kind), chat, **usual | fields), timezone.now(), is_of_bot=is_of_bot
    )


def kept(row: Message) -> dict[str, Any]:
    found: dict[str, Any] = (row.raw or {})["event_rule"]
    return found


def people() -> list[list[str]]:
    rows = Message.objects.filter(reason="event").exclude(state="silent").order_by("pk")
    return [kept(row)["people"] for row in rows]


# --- Which row counts --------------------------------------------------------------------


def test_of_rows_for_one_kind_the_most_particular_counts():
    rule(name="all")
    rule(name="account", account=GROUP.account)
    rule(name="chat", chats=GROUP.key, action="nothing")
    rule("join", name="join")
    rule(name="off", chats=f"{GROUP.key}\ngroup:1", enabled=False)
    rules = load_event_rules()
    found = [rules.find("poke", one) for one in (GROUP, PRIVATE, ChatAddress("9", "group", "1"))]
    assert [one and one.name for one in found] == [None, "account", "all"]
    assert (rules.find("join", GROUP) or rule()).name == "join"
    assert rules.find("leave", GROUP) is None


def test_rows_for_one_kind_count_field_by_field():
    rule(name="all", text="hi", mention=True)
    rule(name="off", action="model", account=GROUP.account, enabled=False)
    rule(name="account", action="", text="", account=GROUP.account)
    rule(name="chat", action="", text="here", chats=GROUP.key)
    rule("join", name="join", action="model", text="else", chats=GROUP.key)
    rules = load_event_rules()
    found = rules.find("poke", GROUP)
    assert found is not None
    assert (found.name, found.action, found.text, found.mention) == ("chat", "say", "here", True)
    assert found.said_by == {"action": "all", "mention": "all"}
    assert rules.find("poke", GROUP) is found
    other = rules.find("poke", ChatAddress(GROUP.account, "group", "1"))
    assert other is not None
    assert (other.name, other.text) == ("account", "hi")


def test_what_no_row_says_is_nothing():
    rule(action="", text="hi", mention=True)
    assert load_event_rules().find("poke", GROUP) is None
    rule("keyword", words="菜单", action="")
    rule("keyword", words="菜单", name="broader")
    assert load_event_rules().find_keyword(message("菜单", GROUP)) is None


KEYWORDS = [
    ("word", "菜单\nmenu", "菜单", True),
    ("word", "菜单\nmenu", "  menu\n", True),
    ("word", "菜单", "菜单呢", False),
    ("word", ".*", "x", False),
    ("prefix", "查", "查天气", True),
    ("prefix", "查", "请查天气", False),
    ("pattern", "^v[0-9]+$", "v12", True),
    ("pattern", "^v[0-9]+$", "v12x", False),
    ("pattern", "(\nx", "x", True),
    ("pattern", "(a+)+$", "a" * 9_000 + "b", False),
]


@pytest.mark.parametrize(("match", "words", "text", "is_found"), KEYWORDS)
def test_a_keyword_is_found(match, words, text, is_found):
    rule("keyword", match=match, words=words)
    found = load_event_rules().find_keyword(message(text, GROUP))
    assert (found is not None) is is_found


def test_a_keyword_row_that_does_nothing_hides_those_behind_it():
    rule("keyword", words="菜单")
    rule("keyword", words="菜单", action="nothing", chats=GROUP.key)
    assert load_event_rules().find_keyword(message("菜单", GROUP)) is None
    assert load_event_rules().find_keyword(message("菜单", PRIVATE)) is not None


# --- Keywords ----------------------------------------------------------------------------


def test_a_keyword_needs_no_mention_and_wins_over_it_but_not_over_commands_and_bots():
    rule("keyword", words="菜单\n/help")
    said = [
        message("菜单", GROUP),
        message("菜单", GROUP, mentions_bot=True),
        message("菜单", PRIVATE),
        message("鱼", GROUP),
        message("/help", PRIVATE),
        message("菜单", GROUP, from_other_bot=True),
        message("菜单", GROUP, from_own_account=True),
        message("菜单", GROUP, is_notice=True),
        message("菜单", GROUP, happened_at=timezone.now() - timedelta(hours=1)),
    ]
    assert reasons(accept(*said)) == [
        *("keyword", "keyword", "keyword", "not_addressed", "command", "other_bot"),
        *("own_message", "system_notice", "too_old"),
    ]


@pytest.mark.parametrize(
    ("manners", "reason"),
    [
        ({"quiet_hours": "00:00-12:00\n12:00-24:00"}, "quiet_hours"),
        ({"silenced": True}, "silenced"),
        ({"denied_people": "20001"}, "blocked"),
        ({"allowed_people": "20002"}, "not_listed"),
        ({"groups": False}, "groups_off"),
        ({"answered": "nobody"}, "blocked"),
    ],
)
def test_manners_keep_events_and_keywords_silent(manners, reason):
    Manners.objects.create(name="m", **manners)
    rule("keyword", words="菜单")
    rule()
    assert reasons(accept(message("菜单", GROUP))) == [reason]
    assert desk().accept_events([arrival("poke", **POKE)]) == [[]]
    assert not people()


def test_what_a_client_writes_into_its_event_is_no_rule():
    forged = {"event_rule": {"pk": 1, "name": "x", "kind": "keyword", "action": "tool"}}
    rule("keyword", words="菜单", text="鱼")
    said, other = accept(message("菜单", GROUP, raw=forged), message("鱼", GROUP, raw=forged))
    assert said.rule is not None
    assert (said.rule.action, other.rule) == ("say", None)
    assert kept(Message.objects.get(pk=said.pk))["action"] == "say"


# --- Events ------------------------------------------------------------------------------


def test_an_event_is_a_message_of_whoever_caused_it_claimed_by_this_process():
    rule(text="别戳", mention=True)
    [[taken]] = desk().accept_events([arrival("poke", **POKE)])
    row = Message.objects.get()
    assert (row.pk, row.sender_id, row.state, row.reason) == (
        *(taken[0].message_pk, "20001", "waiting", "event"),
    )
    assert (row.claimed_by, row.claim_number, taken[1]) == (PROCESS, 1, 0.0)
    assert (kept(row)["text"], people()) == ("别戳", [["20001"]])


def test_events_of_one_row_are_apart_where_broader_rows_differ():
    rule(action="", text="", name="both", chats=f"{GROUP.key}\n{PRIVATE.key}")
    rule(chat_kind="private", text="private")
    rule(text="group")
    desk().accept_events([arrival("poke", chat, **POKE) for chat in (GROUP, PRIVATE)])
    assert [kept(row)["text"] for row in Message.objects.order_by("pk")] == ["group", "private"]


NOTHING = [
    arrival("poke", **POKE | {"target_id": "20009"}),
    arrival("poke", **POKE | {"user_id": GROUP.account}),
    arrival("poke", **POKE, is_of_bot=True),
    arrival("poke", chat=None, **POKE),
    arrival("poke", **POKE, happened_at=timezone.now() - timedelta(minutes=9)),
    arrival("card", user_id="20001"),
    arrival("name", user_id="20001"),
]


@pytest.mark.parametrize("one", NOTHING)
def test_nothing_is_done_and_nothing_left_where_no_rule_is_for_it(one):
    rule()
    assert desk().accept_events([one]) == [[]]
    assert not Message.objects.exists()


def test_those_who_come_at_once_are_one_message_over_transactions_but_who_has_left():
    rule("join")
    at_desk = desk()
    [first, second] = at_desk.accept_events(
        [arrival("join", user_id="1"), arrival("join", user_id="2")]
    )
    assert [len(first), len(second)] == [1, 0]
    assert first[0][1] > 0
    assert at_desk.accept_events([arrival("join", user_id="3"), arrival("join", user_id="2")]) == [
        *([], []),
    ]
    at_desk.accept_events([arrival("leave", user_id="1"), arrival("join", user_id="4")])
    assert people() == [["2", "3", "4"]]
    at_desk.accept_events([arrival("leave", user_id=one) for one in "234"])
    assert not people()
    assert Message.objects.get().state == "silent"
    assert len(at_desk.accept_events([arrival("leave", user_id="5")])) == 1


def test_nobody_waits_for_a_welcome_that_gathers_others():
    rule("join")
    desk().accept_events([arrival("join", user_id="1")])
    (asked,) = accept(message("hi", GROUP, mentions_bot=True))
    assert is_next_in_session(asked.pk, asked.session_pk)
    Message.objects.filter(reason="event").update(state="running")
    assert not is_next_in_session(asked.pk, asked.session_pk)


def test_who_left_before_he_joined_is_welcomed_once():
    rule("join")
    desk().accept_events([arrival("leave", user_id="1"), arrival("join", user_id="1")])
    assert people() == [["1"]]


def test_the_same_event_twice_is_one_message():
    rule()
    one = arrival("poke", **POKE)
    assert [len(taken) for taken in desk().accept_events([one, one])] == [1, 0]
    assert desk().accept_events([one]) == [[]]
    assert len(people()) == 1


def test_who_was_welcomed_with_others_is_not_again_where_a_client_tells_it_late():
    rule("join")
    at_desk, both = desk(), [arrival("join", user_id=one) for one in "12"]
    at_desk.accept_events(both)
    Message.objects.update(state="answered")
    assert at_desk.accept_events(both[::-1]) == [[], []]
    assert people() == [["1", "2"]]


def test_that_somebody_left_told_again_takes_no_later_welcome_away():
    rule("join")
    at_desk, left = desk(), arrival("leave", user_id="1")
    at_desk.accept_events([left])
    at_desk.accept_events([arrival("join", user_id="1")])
    at_desk.accept_events([left])
    assert people() == [["1"]]


def test_a_message_that_is_taken_back_is_one_event_however_often_it_is_told():
    rule("recall")
    told = [arrival("recall", user_id="1", message_id="7", operator_id=who) for who in ("", "1")]
    desk().accept_events(told)
    assert len(people()) == 1


def test_a_flood_leaves_no_more_than_may_wait():
    rule()
    Manners.objects.create(name="m", person_per_minute=0, chat_per_minute=0)
    at_desk, now = desk(), timezone.now()
    for second in range(3):
        at_desk.accept_events(
            [
                arrival("poke", **POKE, happened_at=now - timedelta(seconds=second * 100 + one))
                for one in range(100)
            ]
        )
    assert len(people()) == MOST_WAITING


def test_events_count_for_the_limits_of_who_caused_them_and_owners_have_none():
    rule()
    Manners.objects.create(name="m", person_per_minute=1)
    for second, who in enumerate(("20001", "20001", "20002", "20003", "20003")):
        at = timezone.now() - timedelta(seconds=second)
        desk("20003").accept_events([arrival("poke", **POKE | {"user_id": who}, happened_at=at)])
        Message.objects.update(state="answered")
    assert people() == [["20001"], ["20002"], ["20003"], ["20003"]]


def test_who_comes_too_often_keeps_nobody_else_from_being_welcomed():
    rule("join")
    Manners.objects.create(name="m", person_per_minute=1)
    at_desk, earlier = desk(), timezone.now() - timedelta(seconds=9)
    at_desk.accept_events([arrival("join", user_id="1", happened_at=earlier)])
    Message.objects.update(state="answered")
    at_desk.accept_events([arrival("join", user_id=one) for one in "123"])
    assert people() == [["1"], ["2", "3"]]


def test_a_chat_that_is_taken_over_or_paused_hears_nothing():
    rule()
    for fields in ({"taken_over_by": "op"}, {"pause_reason": "muted"}):
        ChatSession.objects.all().delete()
        ChatSession.objects.create(
            account=GROUP.account, kind="group", peer_id=GROUP.peer_id,
            last_message_at=timezone.now(), **fields,
        )  # fmt: skip
        assert desk().accept_events([arrival("poke", **POKE)]) == [[]]
    assert not people()

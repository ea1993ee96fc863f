"""Who may call what, where: decided from the real sender alone."""

import inspect
from typing import Any

import pytest

from tools.contract import ToolExecutionContext, ToolSpec
from tools.refusals import RefusalReason, ToolRefusal
from tools.registry.policy import CallPermit, decide_call
from tools.registry.settings import ToolSettings
from tools.token_bucket import TokenBuckets

TOOL = ToolSpec(name="t")


def chat(*, group: str = "", user: str = "7", **fields: Any) -> ToolExecutionContext:
    kind = f"group:{group}" if group else f"private:{user}"
    return ToolExecutionContext(
        session_id=f"onebot:{kind}",
        is_group_chat=bool(group),
        group_id=group,
        user_id=user,
        platform="onebot",
        **fields,
    )


def verdict(context: ToolExecutionContext | None, **row: Any) -> str:
    """``""`` for a permit, else the reason's word."""
    ids = frozenset(row.pop("ids", ()))
    decision = decide_call(TOOL, ToolSettings("t", allowed_ids=ids, **row), context, TokenBuckets())
    return "" if isinstance(decision, CallPermit) else decision.reason


@pytest.mark.parametrize("context", [chat(), chat(group="5"), ToolExecutionContext(), None])
def test_everyone_may_everywhere_at_first(context):
    assert verdict(context) == ""


@pytest.mark.parametrize(
    ("scope", "group", "private", "nowhere"),
    [
        ("all", "", "", ""),
        ("group", "", "wrong_chat", "wrong_chat"),
        ("private", "wrong_chat", "", "wrong_chat"),
    ],
)
def test_a_scope_holds_for_its_kind_of_chat(scope, group, private, nowhere):
    contexts = (chat(group="5"), chat(), ToolExecutionContext())
    assert tuple(verdict(context, scope=scope) for context in contexts) == (group, private, nowhere)
    assert verdict(None, scope=scope) == ""


def test_disabled_beats_allowed():
    owner = chat(owners={"7"})
    assert verdict(owner, enabled=False, allowed="people", ids=["7"]) == "disabled"
    assert verdict(owner, visibility="hidden") == "hidden"
    assert verdict(owner, scope="group") == "wrong_chat"


@pytest.mark.parametrize("allowed", ["owners", "people", "groups", "group_admins"])
def test_an_owner_may_whatever_the_list_says(allowed):
    assert verdict(chat(owners={"7", "8"}), allowed=allowed) == ""
    assert verdict(chat(owners={"8"}), allowed=allowed) == "not_permitted"
    assert verdict(chat(user="", owners={""}), allowed=allowed) == "not_permitted"


@pytest.mark.parametrize(
    "allowed", ["owners", "people", "groups", "group_admins", "a word of a later version"]
)
def test_without_a_sender_nobody_may_what_not_everyone_may(allowed):
    assert verdict(None, allowed=allowed) == "not_permitted"
    assert verdict(ToolExecutionContext(), allowed=allowed, ids=["", ":"]) == "not_permitted"


@pytest.mark.parametrize(
    ("listed", "expected"),
    [("7", ""), ("onebot:7", ""), ("8", "not_permitted"), ("qq:7", "not_permitted")],
)
def test_listed_people_may_in_every_chat(listed, expected):
    assert verdict(chat(), allowed="people", ids=[listed]) == expected
    assert verdict(chat(group="5"), allowed="people", ids=[listed]) == expected


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("5", ""),
        ("onebot:5", ""),
        ("onebot:group:5", ""),
        ("6", "not_permitted"),
        ("7", "not_permitted"),
    ],
)
def test_everyone_in_a_listed_group_may_there(listed, expected):
    assert verdict(chat(group="5"), allowed="groups", ids=[listed]) == expected
    assert verdict(chat(user="5"), allowed="groups", ids=[listed]) == "not_permitted"
    out_of_the_group = ToolExecutionContext(
        is_group_chat=False, group_id="5", user_id="7", platform="onebot"
    )
    assert verdict(out_of_the_group, allowed="groups", ids=[listed]) == "not_permitted"


@pytest.mark.parametrize(
    ("role", "expected"),
    [("owner", ""), ("admin", ""), ("member", "not_permitted"), ("", "not_permitted")],
)
def test_the_role_in_the_group_counts_in_the_group_only(role, expected):
    assert verdict(chat(group="5", sender_role=role), allowed="group_admins") == expected
    assert verdict(chat(sender_role=role), allowed="group_admins") == "not_permitted"


def test_the_refusal_names_who_may():
    decision = decide_call(TOOL, ToolSettings("t", allowed="owners"), chat(), TokenBuckets())
    assert decision == ToolRefusal(
        RefusalReason.NOT_PERMITTED,
        "没有权限: 工具 t 只有机器人的主人可以使用。请如实告诉用户，不要重试。",
    )


def test_nothing_of_the_call_itself_is_looked_at():
    """Whatever user a model names in the arguments cannot matter: they are not given."""
    assert list(inspect.signature(decide_call).parameters) == [
        "spec",
        "settings",
        "context",
        "rates",
    ]


def test_limits_count_people_and_chats_apart():
    rates, row = (
        TokenBuckets(clock=lambda: 0.0),
        ToolSettings("t", calls_per_minute_person=1, calls_per_minute_chat=2),
    )

    def call(user: str, group: str) -> str:
        decision = decide_call(TOOL, row, chat(user=user, group=group), rates)
        if isinstance(decision, ToolRefusal):
            return decision.reason
        rates.take(*decision.quotas)
        return ""

    calls = [("1", "5"), ("1", "5"), ("1", "6"), ("2", "5"), ("3", "5"), ("3", "6")]
    assert [call(*who) for who in calls] == [
        "",
        "rate_limited",
        "rate_limited",
        "",
        "rate_limited",
        "",
    ]


def test_the_refusal_says_when_to_try_again():
    rates, row = TokenBuckets(clock=lambda: 0.0), ToolSettings("t", calls_per_minute_person=7)
    permit = decide_call(TOOL, row, chat(), rates)
    assert isinstance(permit, CallPermit)
    for _ in range(7):
        rates.take(*permit.quotas)
    decision = decide_call(TOOL, row, chat(), rates)
    assert decision == ToolRefusal(
        RefusalReason.RATE_LIMITED, "调用过于频繁: 工具 t 请在 9 秒后再试。"
    )


def test_deciding_counts_no_call():
    rates, row = TokenBuckets(clock=lambda: 0.0), ToolSettings("t", calls_per_minute_person=1)
    assert [type(decide_call(TOOL, row, chat(), rates)) for _ in range(3)] == [CallPermit] * 3

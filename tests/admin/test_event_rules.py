"""The page of event rules: what it accepts and says, who may do what, and how it is taken back."""

import re
from typing import Any

import pytest
from django.test import Client

from agent.models import EventRule
from tests.admin.record import ENGLISH, chat, faults, logged_in, page, refused, said
from tools.models import ToolConfigChange

pytestmark = pytest.mark.django_db
RULES = "/admin/agent/eventrule/"


def form(**fields: Any) -> dict[str, Any]:
    usual = {"name": "welcome", "enabled": "on", "kind": "join", "action": "say", "match": "word"}
    return usual | {"text": "欢迎 {name}", "arguments": "{}"} | fields


def save(browser: Client, row: EventRule | None = None, **fields: Any) -> str:
    """What the page says against it; "" when it was saved."""
    address = f"{RULES}{row.pk}/change/" if row else f"{RULES}add/"
    return refused(browser, address, form(**fields))


def test_a_row_is_made_changed_and_taken_back(browser: Client):
    assert save(browser) == ""
    row = EventRule.objects.get()
    assert (row.kind, row.action, row.mention, row.arguments) == ("join", "say", None, {})
    assert save(browser, row, mention="true", arguments="") == ""
    change = ToolConfigChange.objects.get(kind="changed")
    assert set(change.after) == {"mention"}
    browser.post(f"{RULES}{row.pk}/revert/{change.pk}/")
    row.refresh_from_db()
    assert row.mention is None


def test_a_new_row_does_nothing_until_it_is_told_what(browser: Client):
    assert EventRule().action == "nothing"
    assert save(browser, action="nothing", text="") == ""


@pytest.mark.parametrize(
    ("sent", "said"), [("on", True), ("true", True), ("false", False), ("unknown", None)]
)
def test_a_mention_is_yes_no_or_not_said(browser: Client, sent, said):
    assert save(browser, mention=sent) == ""
    assert EventRule.objects.get().mention is said


#: Broader rows, what a row for group 700 says, and what is missing there.
BROADER: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"action": "say", "text": "B"}, {"text": ""}, ""),
    ({"action": "say", "text": "B", "account": "10001"}, {"text": ""}, "text"),
    ({"action": "say", "text": "B", "account": "10001"}, {"text": "", "account": "10001"}, ""),
    ({"action": "say", "text": "B", "chats": "group:700"}, {"text": ""}, "text"),  # older: first
    ({"action": "say", "text": "B", "chats": "group:700\ngroup:701"}, {"text": ""}, ""),
    ({"action": "say", "text": "B", "chats": "group:700"}, {"text": "", "chats": ""}, "text"),
    ({"action": "say", "text": "B", "chat_kind": "private"}, {"text": ""}, "text"),
    ({"action": "say", "text": "B", "enabled": False}, {"text": ""}, "text"),
    ({"action": "say", "text": "B", "kind": "leave"}, {"text": ""}, "text"),
    ({"action": "model", "text": "B"}, {"text": ""}, "text"),
    ({"action": "picture", "file": "b.png"}, {"action": "", "text": ""}, ""),
    ({"action": "picture"}, {"action": "", "text": ""}, "file"),
    ({"action": "tool", "tool": "get_weather", "arguments": {"city": "x"}}, {"action": "tool"}, ""),
    ({"action": "tool", "tool": "get_weather"}, {"action": "", "arguments": "{}"}, "arguments"),
    ({"action": "tool", "tool": "gone"}, {"action": ""}, "tool"),
]


@pytest.mark.parametrize(("broader", "fields", "missing"), BROADER)
def test_what_is_needed_may_come_from_a_row_for_all_of_its_chats(
    browser: Client, broader, fields, missing
):
    EventRule.objects.create(**{"name": "b", "kind": "join"} | broader)
    found = faults(browser, f"{RULES}add/", form(**{"chats": "group:700"} | fields))
    assert list(found) == ([missing] if missing else [])


def test_a_row_shows_beside_what_it_leaves_empty_what_holds_and_from_where(browser: Client):
    call = {"tool": "get_weather", "arguments": {"city": "北京"}}
    EventRule.objects.create(name="<b>", kind="join", action="tool", text="A<i>" * 99, **call)
    row = EventRule.objects.create(name="narrow", kind="join", action="", chats="group:700")
    text = page(browser, f"{RULES}{row.pk}/change/")
    holding = re.findall(
        r'id="id_(\w+)_holds"><div>holds: (.+?) *<span class="source">(.+?)<', text
    )
    assert {name: value for name, value, _source in holding} == {
        "action": "call a tool",
        "text": "A&lt;i&gt;" * 50 + "… (196 more characters)",
        "mention": "No",
        "tool": "get_weather",
        "arguments": "{&quot;city&quot;: &quot;北京&quot;}",
    }
    assert {source for *_, source in holding} == {"event rule “", "default"}
    assert "&lt;b&gt;</a>”</span>" in text
    assert "as the broader row says" in page(browser, RULES)
    row.delete()
    assert "holds: No" in page(browser, f"{RULES}add/?kind=join&chats=%00&arguments=[")


def test_a_keyword_takes_nothing_from_other_rows(browser: Client):
    EventRule.objects.create(
        name="b", kind="keyword", action="say", words="a", text="B", mention=True
    )
    own: dict[str, Any] = {"kind": "keyword", "words": "a", "text": "", "chats": "group:700"}
    assert list(faults(browser, f"{RULES}add/", form(**own))) == ["text"]
    assert save(browser, **own | {"action": ""}) == ""
    assert EventRule.objects.get(name="welcome").find_whole().said_by == {}


KEYWORD: dict[str, Any] = {"kind": "keyword", "words": "a"}
CALL: dict[str, Any] = {**KEYWORD, "action": "tool", "tool": "get_weather"}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"text": " "}, "This is needed for what is done"),
    ({"action": "picture"}, "This is needed for what is done"),
    ({"action": "sticker"}, "This is needed for what is done"),
    ({"action": "tool"}, "This is needed for what is done"),
    ({"kind": "keyword"}, "at least one keyword"),
    ({"kind": "nothing"}, "not one of the available choices"),
    ({**KEYWORD, "match": "pattern", "words": "ok\n(?=a)b"}, "no lookahead"),
    ({**KEYWORD, "match": "pattern", "words": "["}, "no regular expression"),
    ({**KEYWORD, "match": "pattern", "words": "\n".join(map(str, range(21)))}, "At most 20 lines"),
    ({**KEYWORD, "words": "x" * 65}, "longer than 64"),
    ({**KEYWORD, "words": "\n".join(map(str, range(101)))}, "At most 100 lines"),
    ({"text": "x" * 5001}, "at most 5000 characters"),
    ({"arguments": "[]"}, "A JSON object is wanted"),
    ({"arguments": "{"}, "valid JSON"),
    ({"arguments": f'{{"a": "{"x" * 10_001}"}}'}, "At most 10000 characters"),
    ({**CALL, "tool": "nobody"}, "no tool of that name"),
    ({**CALL, "arguments": '{"town": "x"}'}, "city"),
    ({"chats": "700"}, "neither group:NUMBER nor private:NUMBER"),
    ({"account": "10001!"}, "is not an id"),
]


@pytest.mark.parametrize(("fields", "said"), WRONG)
def test_what_cannot_be_done_is_refused_with_a_sentence(browser: Client, fields, said):
    found = faults(browser, f"{RULES}add/", form(**fields))
    assert any(said in line for lines in found.values() for line in lines), found
    assert not EventRule.objects.exists()


def test_a_call_that_fits_its_tool_is_kept(browser: Client):
    assert save(browser, **CALL | {"arguments": '{"city": "北京"}'}) == ""


def test_the_list_says_what_is_done_where_and_stands_beside_manners(browser: Client):
    EventRule.objects.create(name="<b>", kind="keyword", action="say", words="菜单", text="<i>鱼")
    EventRule.objects.create(name="other", kind="poke", chats="group:700")
    text = page(browser, RULES)
    assert "菜单" in text
    assert "&lt;i&gt;鱼" in text
    assert "group:700" in text
    assert "<i>鱼" not in text
    assert "other" not in page(browser, f"{RULES}?q=菜单")
    assert "other" not in page(browser, f"{RULES}?kind__exact=keyword")
    assert RULES in page(browser, "/admin/agent/manners/")


def test_viewers_see_rules_and_chat_owners_do_not():
    row = EventRule.objects.create(name="r", kind="poke")
    for group, sees, saves in (
        ("viewer", 200, 403),
        ("operator", 200, 302),
        ("chat_owner", 403, 403),
    ):
        browser = logged_in(group)
        assert browser.get(RULES, headers=ENGLISH).status_code == sees
        address = f"{RULES}{row.pk}/change/"
        assert browser.post(address, form(name=group), headers=ENGLISH).status_code == saves


def test_a_message_names_the_row_by_which_it_was_answered(browser: Client):
    session = chat()
    row = said(session, state="answered", reason="keyword", detail="menu")
    failed = said(session, state="failed", reason="keyword", detail="timed out")
    text = page(browser, f"/admin/agent/message/{row.pk}/change/")
    assert f"{RULES}?q=menu" in text
    text = page(browser, f"/admin/agent/message/{failed.pk}/change/")
    assert "?q=timed" not in text
    assert "timed out" in text
    assert f"{RULES}?q=menu" in page(browser, "/admin/agent/message/")

"""The pages of manners: what they accept and say, who may do what, the switch for everything."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agent.admin.manners import find_contradictions
from agent.models import Manners, ModelEndpoint
from onebot.models import Bot
from tests.admin.record import faults, logged_in, page, refused
from tools.models import ToolConfigChange

pytestmark = pytest.mark.django_db
MANNERS = "/admin/agent/manners/"
SWITCHES = (
    *("groups", "wake_mention", "wake_quote", "wake_always", "mention", "quote", "typing"),
    "says_beside_calls",
)


def form(**fields: Any) -> dict[str, Any]:
    return {"name": "night", "enabled": "on", **dict.fromkeys(SWITCHES, "unknown"), **fields}


def save(browser: Client, row: Manners | None = None, **fields: Any) -> str:
    """What the page says against it; "" when it was saved."""
    address = f"{MANNERS}{row.pk}/change/" if row else f"{MANNERS}add/"
    return refused(browser, address, form(**fields))


def test_a_row_is_made_changed_and_taken_back(browser: Client):
    endpoint = ModelEndpoint.objects.create(name="Deep")
    assert save(browser) == ""
    row = Manners.objects.get()
    assert save(browser, row, quiet_hours="23:00-07:30", endpoint=endpoint.pk) == ""
    text = page(browser, f"{MANNERS}{row.pk}/change/")
    assert "Deep" in text.partition('id="changes"')[2]
    change = ToolConfigChange.objects.get(kind="changed")
    assert set(change.after) == {"quiet_hours", "endpoint"}
    answer = browser.post(f"{MANNERS}{row.pk}/revert/{change.pk}/", follow=True)
    assert "Taken back" in answer.content.decode()
    row.refresh_from_db()
    assert (row.quiet_hours, row.endpoint) == ("", None)
    again = ToolConfigChange.objects.latest("pk")
    browser.post(f"{MANNERS}{row.pk}/revert/{again.pk}/")
    row.refresh_from_db()
    assert row.endpoint == endpoint


def test_pictures_without_what_draws_them_name_the_command(browser: Client, without_drawing):
    assert "install_drawing" in page(browser, f"{MANNERS}add/")


WRONG = [
    ("wake_pattern", "(?=a)b", "no lookahead"),
    ("wake_pattern", r"(a)\1", "references back"),
    ("wake_pattern", "(((a{1000}){1000}){1000})", "Repeat less|repeat less"),
    ("wake_pattern", "[", "no regular expression"),
    ("quiet_hours", "at night", "is not like 23:00-07:30"),
    ("quiet_hours", "23:00-23:00", "is not like 23:00-07:30"),
    ("quiet_hours", "23:00-07:30+08:00", "is not like"),
    ("quiet_hours", "25:00-07:30", "is not like"),
    ("allowed_people", "Ann Lee!", "is not an id"),
    ("denied_people", "<b>", "is not an id"),
    ("account", "10001!", "is not an id"),
    ("chats", "700", "neither group:NUMBER nor private:NUMBER"),
    ("chats", "channel:7", "neither group:NUMBER nor private:NUMBER"),
    ("reaction", "smile", "is a number, like 424"),
    ("wake_chance", "101", "less than or equal to 100"),
    ("wake_chance", "nan", "Enter a number"),
    ("merge_seconds", "11", "less than or equal to 10"),
    ("part_chars", "4501", "less than or equal to 4500"),
    ("part_chars", "0", "greater than or equal to 100"),
    ("wake_names", "\n".join(map(str, range(101))), "At most 100 lines"),
    ("wake_prefixes", "x" * 65, "longer than 64 characters"),
]


def test_what_is_wrong_is_said_beside_its_field(browser: Client):
    for field, value, fault in WRONG:
        found = faults(browser, f"{MANNERS}add/", form(**{field: value}))
        assert list(found) == [field], value
        assert re.search(fault, " ".join(found[field]))


def test_chats_of_another_kind_than_the_chosen_one_are_refused(browser: Client):
    assert "not of the kind" in save(browser, chat_kind="private", chats="group:700")
    assert save(browser, chat_kind="group", chats="group：700、group:701") == ""
    assert Manners.objects.get().chat_keys == ("group:700", "group:701")


HOURS = [
    "7:30-8:00",
    "23：00～次日",
    "22:00-24:00",
    "２３:００-07:30",
]


def test_hours_are_read_as_people_write_them(browser: Client):
    for span in HOURS:
        assert ("is not like" in save(browser, quiet_hours=span)) == ("次日" in span)


def test_only_endpoints_that_answer_are_offered(browser: Client):
    ModelEndpoint.objects.create(name="Talks")
    ModelEndpoint.objects.create(name="Embeds", can_chat=False)
    text = page(browser, f"{MANNERS}add/")
    assert "Talks" in text
    assert "Embeds" not in text


def test_empty_fields_show_what_the_program_does(browser: Client, settings: Any):
    settings.BOT_NAME, settings.GROUP_REPLY_ON_MENTION = "小霜", False
    text = page(browser, f"{MANNERS}add/?chats=group:700&account=10001&chat_kind=group")
    assert _holding(text, "wake_names") == "holds: 小霜 default"
    assert _holding(text, "groups") == "holds: no default"
    assert _holding(text, "mention") == "holds: as the persona says"
    assert "group:700</textarea>" in text
    assert 'value="10001"' in text


def _holding(text: str, field: str) -> str:
    """What the page ``text`` says that holds where ``field`` is empty; "" for nothing."""
    shown = text.partition(f'id="id_{field}_holds">')[2].partition("</div>")[0]
    return re.sub(r"<[^>]*>", "", shown).strip()


def test_an_empty_field_names_the_row_that_says_it_instead(browser: Client):
    Manners.objects.create(name="<i>all</i>", ambient_messages=30, part_chars=900)
    Manners.objects.create(name="own", account="10001", part_chars=700)
    Manners.objects.create(name="other", account="10002", part_chars=500)
    row = Manners.objects.create(name="group", account="10001", chats="group:700", wake_chance=2)
    text = page(browser, f"{MANNERS}{row.pk}/change/")
    assert _holding(text, "ambient_messages") == "holds: 30 manners “&lt;i&gt;all&lt;/i&gt;”"
    assert _holding(text, "part_chars") == "holds: 700 manners “own”"
    assert _holding(text, "wake_chance") == ""
    new = page(browser, f"{MANNERS}add/?account=10002")
    assert _holding(new, "part_chars") == "holds: 500 manners “other”"


def _open_groups(text: str) -> list[str]:
    return re.findall(r"<details open><summary>\s*<h2[^>]*>([^<]*)", text)


def test_further_fields_are_folded_in_until_one_says_something_or_is_wrong(browser: Client):
    assert _open_groups(page(browser, f"{MANNERS}add/")) == []
    assert _open_groups(page(browser, f"{MANNERS}add/?account=10001")) == ["Where it counts"]
    row = Manners.objects.create(name="group", reaction="424", part_chars=900)
    assert _open_groups(page(browser, f"{MANNERS}{row.pk}/change/")) == ["How it speaks"]
    shown = browser.post(f"{MANNERS}add/", form(command_prefix="x" * 9)).content.decode()
    (commands,) = re.findall(
        r"<fieldset[^>]*>(?:(?!</fieldset>).)*command_prefix.*?</fieldset>", shown, re.DOTALL
    )
    assert "<details" not in commands
    assert "errorlist" in commands


def test_the_list_says_where_a_row_counts_and_what_it_says(browser: Client):
    Manners.objects.create(
        name="calm", account="10001", chats="group:700", sends_per_minute=0, forward_above=0
    )
    Manners.objects.create(name="house", silenced=True, wake_pattern="-")
    text = page(browser, MANNERS)
    assert "group:700 of account 10001" in text
    assert "0 (no limit)" in text
    assert "0 (never)" in text
    assert "everywhere" in text
    assert "Regular expression: none" in text
    assert "calm" not in page(browser, f"{MANNERS}?silenced__exact=1").partition("result_list")[2]
    assert "calm" not in page(browser, f"{MANNERS}?account=-").partition("result_list")[2]
    assert "house" not in page(browser, f"{MANNERS}?q=700").partition("result_list")[2]


def test_rows_that_contradict_each_other_say_which_counts(browser: Client):
    house = Manners.objects.create(name="house", wake_always=False, denied_people="1")
    here = Manners.objects.create(
        name="here", chats="group:700", wake_always=True, denied_people="2"
    )
    Manners.objects.create(name="elsewhere", chats="group:701", wake_always=False)
    assert list(find_contradictions(house, [here])) == [(here, ["wake_always"])]
    text = page(browser, f"{MANNERS}{house.pk}/change/")
    assert f'<a href="{MANNERS}{here.pk}/change/">here</a> says something else, and counts' in text
    text = page(browser, f"{MANNERS}{here.pk}/change/")
    assert "says something else; this row counts" in text
    assert "elsewhere" not in text


def test_one_click_silences_everything_and_another_ends_it(browser: Client):
    assert "Silence everything" in page(browser, "/admin/")
    answer = browser.post(f"{MANNERS}everything/", {"silence": "", "next": "/admin/"})
    assert answer.headers["Location"] == "/admin/"
    row = Manners.objects.get()
    assert (row.silenced, row.account, row.chats) == (True, "", "")
    assert "Let the bot speak again" in page(browser, "/admin/")
    assert "Every chat is silenced" in page(browser, MANNERS)
    browser.post(f"{MANNERS}everything/", {"speak": ""})
    row.refresh_from_db()
    assert not row.silenced
    authors = {change.author_id for change in ToolConfigChange.objects.all()}
    assert ToolConfigChange.objects.count() == 2
    assert None not in authors


@pytest.mark.parametrize(
    "where", ["https://evil.example/", "//evil.example", "javascript:alert(1)"]
)
def test_the_switch_leads_to_no_other_site(browser: Client, where: str):
    answer = browser.post(f"{MANNERS}everything/", {"silence": "", "next": where})
    assert answer.headers["Location"] == MANNERS


def test_an_operator_changes_manners_and_a_viewer_sees_them():
    row = Manners.objects.create(name="night", quiet_hours="23:00-07:30")
    operator, viewer = logged_in("operator"), logged_in("viewer")
    assert save(operator, row, silenced="on") == ""
    assert "23:00-07:30" in page(viewer, f"{MANNERS}{row.pk}/change/")
    assert "Silence everything" not in page(viewer, MANNERS)
    assert viewer.post(f"{MANNERS}{row.pk}/change/", form()).status_code == 403
    assert viewer.post(f"{MANNERS}add/", form()).status_code == 403
    assert viewer.post(f"{MANNERS}everything/", {"silence": ""}).status_code == 403
    assert operator.get(f"{MANNERS}everything/").status_code == 405


def test_the_second_operator_sees_what_the_first_has_changed(browser: Client):
    row = Manners.objects.create(name="night")
    seen = re.search(r'name="row_seen" value="(\w+)"', page(browser, f"{MANNERS}{row.pk}/change/"))
    assert seen
    assert save(browser, row, silenced="on") == ""
    assert "Somebody else has saved" in save(browser, row, row_seen=seen[1])


def test_the_bots_page_leads_to_its_manners(browser: Client):
    bot = Bot.objects.create(self_id="10001")
    Manners.objects.create(name="mine", account="10001")
    Manners.objects.create(name="other", account="10002")
    text = page(browser, f"/admin/onebot/bot/{bot.pk}/change/")
    assert f'href="{MANNERS}?account=10001">of this account (1)</a>' in text


def test_the_end_of_a_silence_is_shown_and_goes_when_the_silence_is_ticked_anew(browser: Client):
    end = timezone.now() + timedelta(hours=1)
    row = Manners.objects.create(name="hush", chats="group:1", silenced=True, silenced_until=end)
    shown = f"silenced until {timezone.localtime(end):%Y-%m-%d %H:%M}"
    assert shown in page(browser, MANNERS)
    assert shown in page(browser, f"{MANNERS}{row.pk}/change/")
    assert "The next one ends by itself at" in page(browser, "/admin/")
    assert save(browser, row) == ""
    assert save(browser, row, silenced="on") == ""
    row.refresh_from_db()
    assert (row.silenced, row.silenced_until) == (True, None)

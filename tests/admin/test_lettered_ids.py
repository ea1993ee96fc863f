"""People, groups and accounts of official bots, whose ids are hexadecimal digits: wherever the
admin takes or shows an id, they are ids like others."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agent.llm.spending import CallCost, Spend, SpendScope
from agent.models import (
    Budget,
    ChatGrant,
    ChatSession,
    ErasureReceipt,
    Manners,
    Message,
    Reminder,
    RequestRule,
)
from agent.record.sums.spendings import DatedSpend, add_spending
from onebot.models import Bot
from tests.admin.record import chat, faults, logged_in, page, said
from tests.admin.test_budgets import FORM as BUDGET
from tests.admin.test_manners import form as manners_form
from tests.admin.test_reminders import form as reminder_form
from tests.admin.test_search import of_kind
from tools.local_time import current_day
from tools.models import ToolConfig

pytestmark = pytest.mark.django_db
BOT, GROUP = "00112233445566778899AABBCCDDEEFF", "F00D5678F00D5678F00D5678F00D5678"
#: Two of whom one is called almost like the other.
ONE, OTHER = "A1B2C3D4E5F60718293A4B5C6D7E8F90", "A1B2C3D4E5F60718293A4B5C6D7E8F91"
PERSON = f"/admin/people/{ONE}/"


@pytest.fixture
def group(db: None) -> ChatSession:
    group = chat(GROUP, account=BOT, title="Garden")
    said(group, "mine", sender_id=ONE, sender_name="木木")
    said(group, "theirs", sender_id=OTHER, sender_name="阿雪")
    return group


def test_forms_take_them_as_owners_in_lists_scopes_and_tools(browser: Client):
    bot = Bot.objects.create(self_id=BOT)
    owners = {"owners": f"{ONE} {OTHER}", "hear_voice": "on", "read_files": "on"}
    assert faults(browser, f"/admin/onebot/bot/{bot.pk}/change/", owners) == {}
    lists = dict.fromkeys(("allowed_people", "denied_people", "listed_people"), f"{ONE}, {OTHER}")
    scope = {"account": BOT, "chat_kind": "group", "chats": f"group:{GROUP}"}
    assert faults(browser, "/admin/agent/manners/add/", manners_form(**lists, **scope)) == {}
    wanted = {"name": "friends", "position": 1, "action": "wait", **scope}
    listed = {"people": f"{ONE} onebot:{OTHER}", "groups": GROUP}
    assert faults(browser, "/admin/agent/requestrule/add/", wanted | listed) == {}
    tool = ToolConfig(name="any", allowed="people", allowed_ids=f"{ONE} group:{GROUP}")
    tool.full_clean()
    bot.refresh_from_db()
    row, rule = Manners.objects.get(), RequestRule.objects.get()
    assert bot.owner_ids == {ONE, OTHER}
    assert (row.account, row.chat_keys) == (BOT, (f"group:{GROUP}",))
    assert rule.listed == {ONE, OTHER}
    assert row.denied_people.split(", ") == [ONE, OTHER]


def test_what_one_spends_is_bounded_by_a_budget_and_shown_by_name(browser: Client, group):
    subject = f"onebot:{BOT}/{ONE}"
    cost = CallCost(1, "one", 3_000, 0, 200, 0, 0, "")
    scope = SpendScope(chat=f"onebot:{BOT}:group:{GROUP}", person=subject)
    add_spending([DatedSpend(current_day(), Spend(cost, scope))])
    Budget.objects.all().delete()
    wanted = BUDGET | {"subject": subject, "unit": "tokens", "limit": "4000"}
    answer = browser.post("/admin/agent/budget/add/", wanted, follow=True)
    assert "Nothing was ever spent" not in answer.content.decode()
    assert Budget.objects.get().subject == subject
    shown = page(browser, "/admin/agent/budget/")
    assert "木木" in shown
    assert "(80%)" in shown
    assert "木木" in page(browser, "/admin/spending/")


def test_a_reminder_mentions_one_and_names_nobody_who_set_it(browser: Client, group):
    wanted = reminder_form(group, mention=ONE, set_by="")
    assert faults(browser, "/admin/agent/reminder/add/", wanted) == {}
    assert Reminder.objects.get().mention == ONE


def test_a_person_is_found_by_the_id_and_has_a_page(browser: Client, group):
    for query in (ONE, "木木"):
        found = page(browser, f"/admin/people/?q={query}")
        assert f'href="{PERSON}"' in found
        assert OTHER not in found
    assert "Garden" in page(browser, PERSON)
    assert of_kind(browser, "person", ONE) == ["木木"]
    assert of_kind(browser, "chat", GROUP) == ["Garden"]


def test_a_chat_is_exported_to_those_who_have_a_part_in_it(group):
    Reminder.objects.create(session=group, text="tea", due_at=group.last_message_at, set_by=ONE)
    client = logged_in("chat_owner")
    address = f"/admin/agent/chatsession/{group.pk}/export/jsonl/"
    assert client.post(address).status_code == 404
    owner = User.objects.get(pk=client.session["_auth_user_id"])
    ChatGrant.objects.create(user=owner, account=BOT, chat=group.key)
    assert client.post(address).status_code == 200
    assert "木木" in page(client, PERSON)


def test_erasing_takes_one_and_leaves_who_is_called_almost_so(browser: Client, group):
    due = group.last_message_at
    for one in (ONE, OTHER):
        Reminder.objects.create(session=group, text="tea", due_at=due, set_by=one)
    browser.post(f"{PERSON}erase/", {"typed": ONE.lower()})
    assert Message.objects.count() == 2
    answer = browser.post(f"{PERSON}erase/", {"typed": ONE})
    assert ErasureReceipt.objects.get().counts["reminders"] == 1
    assert ONE not in page(browser, answer["Location"])
    assert list(Message.objects.values_list("sender_id", flat=True)) == [OTHER]
    assert list(Reminder.objects.values_list("set_by", flat=True)) == [OTHER]

"""Who owns single chats meets nothing of the others: no word, no name, no number, no total, on no
page of the admin."""

import re
from html import unescape
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from agent.access import find_access
from agent.access.own_permissions import OF_CHATS
from agent.models import ChatGrant, ChatSession
from agent.pages.own_chats import OwnChatsAdmin
from tests.security.two_chats import (
    Owned,
    every_address,
    every_row,
    fill,
    owner_of,
    refusals_drawn_once,
)

groups = import_module("agent.migrations.0012_cockpit_permissions")
OWN, OTHER_GROUP, OTHER_ACCOUNT = "7001234567", "8001234567", "9001234567"
ACCOUNTS = ("1000111222", "1000333444")
#: What a list is asked with: each finds rows by words, ids and states.
QUERIES = ("?q=hello", f"?q={OTHER_GROUP}", "?q=20008888", "?state__exact=failed",
           "?all=", "?id__lt=99999", "?since=today")  # fmt: skip
#: With rows of single chats.
PAGES = ("chatsession", "message", "run", "step", "toolcall", "approval", "operatoract", "digest",
         "note", "keptfile", "description", "reminder", "joinrequest")  # fmt: skip


@pytest.fixture
def chats(db: None) -> list[Owned]:
    """One's own, one of the same account, and one of another account."""
    groups.give(apps, SimpleNamespace(connection=connection))
    return [
        fill(ACCOUNTS[0], OWN, "MINE", "20007777"),
        fill(ACCOUNTS[0], OTHER_GROUP, "ANOTHERS", "20008888"),
        fill(ACCOUNTS[1], OTHER_ACCOUNT, "FOREIGN", "20009999"),
    ]


def marks(chats: list[Owned]) -> list[str]:
    """What tells of chats: words, ids of chats and people, and sums of tokens however written."""
    numbers = [mark[:7] for chat in chats for mark in chat.marks if len(mark) > 8]
    grouped = [f"{int(number):,}" for number in numbers if number.isdigit()]
    return [mark for chat in chats for mark in chat.marks] + grouped


def found_in(client: Client, address: str, told: list[str]) -> list[str]:
    """Those of ``told`` that the page says, but for what the address has asked with."""
    answer = client.get(address)
    assert answer.status_code < 500, (address, answer.content[-2000:])
    if answer.status_code in (301, 302) or answer.streaming:
        return []
    text = unescape(answer.content.decode(errors="replace"))
    return [
        f"{address}: {mark} in …{text[max(0, at - 60) : at + 60]}…"
        for mark in told
        if mark not in address and (at := text.find(mark)) >= 0
    ]


@pytest.mark.slow
def test_nothing_of_another_chat_is_on_any_page(chats: list[Owned]):
    """Not even for an owner who was given every other permission."""
    client = owner_of((ACCOUNTS[0], f"group:{OWN}"), is_tempted=True)
    told = [*marks(chats[1:]), ACCOUNTS[1]]
    with refusals_drawn_once():
        lists = [a for a in addresses_of_lists() if client.get(a).status_code == 200]
        assert "/admin/agent/message/" in lists
        asked = [*every_address(), *(a + q for a in lists for q in QUERIES)]
        assert [line for address in asked for line in found_in(client, address, told)] == []


def addresses_of_lists() -> list[str]:
    tables = [model._meta for model in admin.site._registry]
    return [reverse(f"admin:{one.app_label}_{one.model_name}_changelist") for one in tables]


@pytest.mark.slow
def test_an_owner_of_an_account_meets_all_of_its_chats_and_no_other(chats: list[Owned]):
    """On all pages but those of one row, to which the same rule leads as for a single chat."""
    client = owner_of((ACCOUNTS[0], ""), is_tempted=True)
    told = [*marks(chats[2:]), ACCOUNTS[1]]
    foreign = f"/chatsession/{chats[2].session.pk}/"
    asked = [a for a in every_address() if foreign in a or not re.search(r"/\d+/", a)]
    with refusals_drawn_once():
        assert [line for a in asked for line in found_in(client, a, told)] == []
    shown = client.get("/admin/agent/message/").content.decode()
    assert "MINE-said" in shown
    assert "ANOTHERS-said" in shown


def test_an_owner_meets_every_kind_of_row_of_his_own(chats: list[Owned]):
    client = owner_of((ACCOUNTS[0], f"group:{OWN}"), is_tempted=True)
    for page in PAGES:
        text = client.get(f"/admin/agent/{page}/").content.decode()
        rows = set(re.findall(rf"/admin/agent/{page}/(\d+)/change/", text))
        assert rows, page
        answers = [client.get(f"/admin/agent/{page}/{row}/change/") for row in rows]
        assert {answer.status_code for answer in answers} == {200}, page


@pytest.mark.slow
def test_no_form_changes_anything_of_another_chat(chats: list[Owned]):
    client = owner_of((ACCOUNTS[0], f"group:{OWN}"), is_tempted=True)
    own = find_access(User.objects.last()).sessions().values_list("pk", flat=True)
    ChatSession.objects.filter(pk__in=own).delete()
    before = every_row()
    form = {"silence": "1", "post": "yes", "decision": "approve", "text": "x", "state": "{}",
            "action": "delete_selected", "_selected_action": [1, 2, 3], "persona": 1}  # fmt: skip
    with refusals_drawn_once():
        for address in every_address(by_post=True):
            status = client.post(address, form).status_code
            assert status in (302, 400, 403, 404, 405, 200), (address, status)
    assert every_row() == before


def test_every_page_of_agent_and_onebot_is_scoped_or_closed():
    """A page whose rows are of single chats obeys the rule; any other is closed to owners."""
    for model, page in admin.site._registry.items():
        label = model._meta.app_label
        if label not in ("agent", "onebot"):
            continue
        open_to_owners = {name for name in OF_CHATS if name.endswith(f"_{model._meta.model_name}")}
        if any(name.startswith(f"{label}.view_") for name in open_to_owners):
            assert isinstance(page, OwnChatsAdmin), model
        else:
            assert not open_to_owners, model


def test_a_grant_that_is_taken_away_counts_at_once(chats: list[Owned]):
    client = owner_of((ACCOUNTS[0], f"group:{OWN}"))
    address = f"/admin/agent/chatsession/{chats[0].session.pk}/change/"
    assert client.get(address).status_code == 200
    ChatGrant.objects.all().delete()
    assert client.get(address).status_code == 302
    assert "MINE" not in client.get("/admin/agent/message/").content.decode()

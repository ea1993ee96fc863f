"""What lists say of themselves: a word on every table, and how an empty one begins."""

import re

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group

from frostproject.cockpit.tables import TABLES
from tests.admin.record import CHINESE, chat, logged_in, page, said

#: A page over a folder, with words of its own.
OWN_PAGE = {"agent.MediaFile"}


def test_every_list_says_what_its_rows_are():
    listed = {model._meta.label for model in admin.site._registry}
    assert listed - OWN_PAGE == set(TABLES)
    assert all(apps.get_model(label) for label in TABLES)


def test_an_empty_list_says_how_it_begins_and_offers_the_first_row(db: None):
    text = page(logged_in(), "/admin/tools/secret/")
    assert all(
        words in text for words in ("Nothing here yet.", "write {secret:name}", "Add secret")
    )
    assert "Add secret" not in page(logged_in("viewer"), "/admin/agent/run/")


def test_a_search_without_a_hit_is_told_apart_from_an_empty_list(db: None):
    said(chat())
    text = page(logged_in(), "/admin/agent/message/?q=zzz")
    assert "No row matches." in text
    assert "Nothing here yet." not in text


@pytest.mark.parametrize("address", ["", "{pk}/change/", "{pk}/history/", "{pk}/delete/"])
def test_a_name_does_not_turn_the_direction_of_a_page(db: None, address: str):
    browser = logged_in()
    persona = apps.get_model("agent.Persona").objects.create(name="nice\u202eeciv")
    text = page(browser, f"/admin/agent/persona/{address.format(pk=persona.pk)}")
    assert "nice\\u202eeciv" in text.partition("<form")[0] + text.partition("result_list")[2]


def test_accounts_of_the_admin_are_not_called_as_people_of_chats(db: None):
    assert "<h1>Admin accounts</h1>" in page(logged_in(), "/admin/auth/user/")


def test_fields_of_rows_on_a_page_are_named_for_those_who_do_not_see_the_column(db: None):
    persona = apps.get_model("agent.Persona").objects.create(name="p")
    text = page(logged_in(), f"/admin/agent/persona/{persona.pk}/change/")
    fields = re.findall(
        r'<(?:input|select)[^>]*id="id_places-(?:\d+|__prefix__)-account"[^>]*>', text
    )
    assert fields
    assert all('aria-label="Account"' in field for field in fields)


@pytest.mark.parametrize(
    ("where", "english", "chinese"),
    [
        ("auth/user/", "Add an admin account", "添加后台账户"),
        ("auth/user/add/", "<h1>Add an admin account</h1>", "<h1>添加后台账户</h1>"),
        ("auth/group/", "Add a group of rights", "添加权限组"),
        ("agent/eventrule/", '/add/">Add an event rule</a></p>', '/add/">添加事件规则</a></p>'),
        ("auth/group/", "With the ticked rows:", "对勾选的行："),
        ("agent/message/{}/change/", "Whether the bot still sees it", "还能不能看到这一条"),
    ],
)
def test_pages_of_lists_use_words_of_people(db: None, where: str, english: str, chinese: str):
    Group.objects.get_or_create(name="operator")  # another test may have emptied the table
    browser, address = logged_in(), f"/admin/{where.format(said(chat()).pk)}"
    assert english in page(browser, address)
    told = browser.get(address, headers=CHINESE).content.decode()
    assert chinese in told
    assert "跳转" not in told.partition('id="content"')[2]

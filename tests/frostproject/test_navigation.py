"""The navigation: who finds which place in it, and where one is."""

import re
from contextlib import suppress

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.test import Client
from django.urls import reverse

from agent.domain.failures import run_page
from frostproject.cockpit.site import NAVIGATION
from tests.admin.record import ENGLISH, logged_in, page

#: Entries at most, of the navigation of who may see all, and of the owner of some chats.
MOST_ENTRIES, MOST_OF_AN_OWNER = 15, 13


def test_every_table_of_the_admin_has_one_place():
    named = [place for group in NAVIGATION for place in group.pages if isinstance(place, str)]
    assert len(named) == len(set(named))
    assert {model._meta.label for model in admin.site._registry} <= set(named)


@pytest.mark.django_db
def test_groups_are_what_people_do_with_one_entry_for_each_thing():
    text = page(logged_in(), "/admin/agent/chatsession/")
    labels = [text.index(f"<caption>{name}</caption>") for name in ("Today", "Chats", "Settings")]
    assert labels == sorted(labels)
    assert 0 < text.count('<th scope="row"') <= MOST_ENTRIES
    text = page(logged_in("chat_owner"), "/admin/agent/chatsession/")
    assert 0 < text.count('<th scope="row"') <= MOST_OF_AN_OWNER


@pytest.mark.django_db
def test_pages_about_one_thing_are_tabs_of_one_entry_and_tell_where_one_is():
    text = page(logged_in(), "/admin/tools/mcpserver/")
    assert re.search(
        r'<a href="/admin/tools/toolconfig/" aria-current="page">.*<span>Tools</span>', text
    )
    [tabs] = re.findall('<nav class="tabs".*?</nav>', text)
    assert '<a href="/admin/tools/mcpserver/" aria-current="page">MCP servers</a>' in tabs
    assert '<a href="/admin/tools/secret/">' in tabs
    assert text.count('aria-current="page"') == 2


@pytest.mark.django_db
def test_an_entry_leads_to_the_first_of_its_pages_that_the_user_may_see():
    somebody = User.objects.create_user("somebody", is_staff=True)
    names = ("view_mcpserver", "view_every_chat")
    somebody.user_permissions.add(*Permission.objects.filter(codename__in=names))
    browser = Client(headers=ENGLISH)
    browser.force_login(somebody)
    text = page(browser, "/admin/tools/mcpserver/")
    assert re.search(
        r'<a href="/admin/tools/mcpserver/" aria-current="page">.*<span>MCP servers</span>', text
    )
    assert "/admin/tools/toolconfig/" not in text
    assert '<nav class="tabs"' not in text


@pytest.mark.django_db
def test_who_may_see_nothing_of_a_group_does_not_see_the_group():
    text = page(logged_in("viewer"), "/admin/")
    assert "/admin/agent/message/" in text
    assert "/admin/auth/user/" not in text


@pytest.mark.django_db
def test_strangers_get_no_navigation(client: Client):
    assert "nav-sidebar" not in client.get("/admin/login/").content.decode()


@pytest.mark.django_db
def test_a_language_chosen_in_the_header_stays_and_wins_over_the_browser():
    browser = logged_in()  # asks for English
    answer = browser.post(
        "/admin/language/", {"language": "zh-hans", "next": "/admin/agent/message/?q=1"}
    )
    assert answer.headers["Location"] == "/admin/agent/message/?q=1"
    assert 'lang="zh-hans"' in page(browser, "/admin/")


@pytest.mark.django_db
@pytest.mark.parametrize("further", ["https://evil.example/", "//evil.example", "javascript:1"])
def test_the_language_switch_leads_to_no_other_site(further: str):
    answer = logged_in().post("/admin/language/", {"language": "en", "next": further})
    assert "evil" not in answer.headers["Location"]
    assert not answer.headers["Location"].startswith("javascript")


def test_messages_name_the_page_of_a_run_without_loading_the_pages():
    assert run_page(7) == reverse("admin:agent_run_change", args=[7])


SERVERS = "/admin/tools/mcpserver/"


def rights_to_see_servers() -> list[Permission]:
    names = ("view_mcpserver", "view_every_chat")
    return list(Permission.objects.filter(codename__in=names))


@pytest.mark.django_db
def test_the_navigation_is_that_of_the_rights_of_the_moment_and_of_the_language():
    somebody = User.objects.create_user("somebody", is_staff=True)
    browser = Client(headers=ENGLISH)
    browser.force_login(somebody)
    assert SERVERS not in page(browser, "/admin/")
    somebody.user_permissions.set(rights_to_see_servers())
    assert "<span>MCP servers</span>" in page(browser, "/admin/")
    assert (
        "<span>MCP 服务器</span>"
        in browser.get("/admin/", headers={"accept-language": "zh-hans"}).content.decode()
    )
    somebody.user_permissions.clear()
    assert SERVERS not in page(browser, "/admin/")


@pytest.mark.django_db
def test_rights_that_were_taken_back_with_their_transaction_leave_nothing_in_the_navigation():
    somebody = User.objects.create_user("somebody", is_staff=True)
    browser = Client(headers=ENGLISH)
    browser.force_login(somebody)
    with suppress(ZeroDivisionError), transaction.atomic():
        somebody.user_permissions.set(rights_to_see_servers())
        assert SERVERS in page(browser, "/admin/")
        raise ZeroDivisionError
    assert SERVERS not in page(browser, "/admin/")

"""The pages of the playground: for those who may use it, about their own."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agent.domain.types import playground_account
from agent.models import ChatSession, Message
from onebot.models import Bot
from tests.admin.record import ENGLISH, answered, call_of, chat, said, step_of

pytestmark = pytest.mark.django_db
PAGE = "/admin/playground/"


def signed_in(name: str, *permissions: str, **fields: Any) -> tuple[Client, str]:
    """A browser of a new user, and the account of his playground."""
    user = User.objects.create_user(name, is_staff=True, **fields)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    browser = Client(headers=ENGLISH)
    browser.force_login(user)
    return browser, playground_account(user.pk)


@pytest.fixture
def player() -> tuple[Client, str]:
    return signed_in("player", "use_playground")


def test_page_plays_media_from_its_socket_and_loads_nothing_else(player):
    browser, account = player
    answer = browser.get(PAGE)
    assert f'data-account="{account}"' in answer.content.decode()
    policy = answer["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "media-src 'self' data:" in policy
    assert "blob:" not in policy


@pytest.mark.parametrize(
    ("method", "path"),
    [("get", ""), ("post", "token/"), ("post", "owners/"), ("post", "erase/"), ("get", "run/")],
)
def test_playground_is_for_those_who_may_use_it(method, path):
    browser, _account = signed_in("colleague", "view_chatsession", "view_every_chat")
    assert getattr(browser, method)(PAGE + path).status_code == 403
    assert getattr(Client(), method)(PAGE + path).status_code == 302


@pytest.mark.parametrize("path", ["token/", "owners/", "erase/"])
def test_nothing_is_done_by_a_get(player, path):
    assert player[0].get(PAGE + path).status_code == 405


def test_tokens_are_kept_by_no_cache(player):
    answer = player[0].post(PAGE + "token/")
    assert answer.json()["token"]
    assert "no-store" in answer["Cache-Control"]


def test_owners_are_those_of_the_own_playground(player):
    browser, account = player
    Bot.objects.create(self_id="10001", owners="5")
    assert browser.post(PAGE + "owners/", {"owners": "1001, 1002"}).json() == {
        "owners": ["1001", "1002"]
    }
    assert Bot.objects.get(self_id=account).owner_ids == {"1001", "1002"}
    assert Bot.objects.get(self_id="10001").owner_ids == {"5"}


@pytest.mark.parametrize("owners", ["<b>", "a b\0c", ",".join(map(str, range(1, 60)))])
def test_odd_owners_are_refused(player, owners):
    browser, account = player
    assert browser.post(PAGE + "owners/", {"owners": owners}).status_code == 400
    assert not Bot.objects.filter(self_id=account, owners=owners).exists()


def test_only_a_superuser_erases_the_playground_of_another(player):
    browser, account = player
    _other, theirs = signed_in("other", "use_playground")
    for one in (account, theirs, "10001"):
        said(chat("1001", kind="private", account=one))
    assert browser.post(PAGE + "erase/", {"account": theirs}).status_code == 404
    assert browser.post(PAGE + "erase/", {"account": "10001"}).status_code == 404
    assert browser.post(PAGE + "erase/").json() == {"erased": 1}
    superuser, _own = signed_in("root", is_superuser=True)
    assert superuser.post(PAGE + "erase/", {"account": theirs}).json() == {"erased": 1}
    assert superuser.post(PAGE + "erase/", {"account": "10001"}).status_code == 404
    assert ChatSession.objects.values_list("account", flat=True).get() == "10001"


def test_only_a_superuser_sees_the_playgrounds_of_others(player):
    _other, theirs = signed_in("somebody else", "use_playground")
    Bot.objects.create(self_id=theirs)
    Bot.objects.create(self_id="9000000")
    superuser, _own = signed_in("root", is_superuser=True)
    page = superuser.get(PAGE).content.decode()
    assert f'data-erase="{theirs}"' in page
    assert "somebody else" in page
    assert 'data-erase="9000000"' not in page
    assert "data-erase=" not in player[0].get(PAGE).content.decode()


def asked(account: str) -> Message:
    """A message of that account's chat, answered with a tool call."""
    session = chat("1001", kind="private", account=account)
    message = said(session, "天气", message_id="77", state="answered", reason="private")
    answer = answered(message, "sunny", message_id="78")
    assert answer.run
    call_of(step_of(answer.run), arguments={"city": "上海<b>"}, result="晴")
    return message


@pytest.mark.parametrize("message_id", ["77", "78"])
def test_run_is_found_by_the_message_and_by_its_answer(player, message_id):
    browser, account = player
    asked(account)
    where = {"chat": "private:1001", "message": message_id}
    answer = browser.get(PAGE + "run/", where)
    page = answer.content.decode()
    for expected in ("get_weather", "上海&lt;b&gt;", "晴", "sunny", "private message"):
        assert expected in page
    assert answer["X-Playground-Active"] == "0"
    again = browser.get(PAGE + "run/", {**where, "seen": answer["X-Playground-Seen"]})
    assert again.status_code == 204


def test_run_shows_signs_that_turn_the_direction(player):
    browser, account = player
    run = asked(account).runs.get()
    call_of(step_of(run, 2), result="fdp\u202egpj.exe", call_id="c2")
    page = browser.get(PAGE + "run/", {"chat": "private:1001", "message": "77"}).content.decode()
    assert "\u202e" not in page
    assert "gpj.exe" in page


@pytest.mark.parametrize("given", [{}, {"chat": "x", "message": "\0"}, {"message": "77"}])
def test_what_is_not_on_record_is_said_to_be_so(player, given):
    answer = player[0].get(PAGE + "run/", given)
    assert answer["X-Playground-Seen"] == "none"


def test_runs_of_other_accounts_are_not_shown(player):
    asked("10001")
    answer = player[0].get(PAGE + "run/", {"chat": "private:1001", "message": "77"})
    assert "get_weather" not in answer.content.decode()


def test_player_without_other_chats_reaches_his_own_on_record():
    browser, account = signed_in("player", "use_playground", "view_chatsession", "view_message")
    own, other = asked(account).session, asked("10001").session
    address = "/admin/agent/chatsession/{}/change/"
    assert browser.get(address.format(own.pk)).status_code == 200
    assert browser.get(address.format(other.pk)).status_code in (302, 404)

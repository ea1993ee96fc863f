"""Who may speak for a playground: its own user, from the browser that he is signed in with."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agent.domain.types import playground_account
from frostproject.signin import factors
from frostproject.signin.session_store import SessionStore
from onebot.connections.handshake import Handshake
from onebot.playground import door
from onebot.playground.door import SignedDoor, make_token, may_speak

USER, SESSION = 7, "a-session-key"


def dialled(session: str = SESSION, peer: str = "127.0.0.1", **headers: str) -> Handshake:
    cookie = {"cookie": f"other=1; sessionid={session}"} if session else {}
    return Handshake("/ws/frostagent", "", {"host": "here", **cookie, **headers}, peer)


def opened(token: str | bytes, handshake: Handshake) -> str:
    offered = token if isinstance(token, bytes) else token.encode()
    return SignedDoor().find_account(handshake, [b"something else", offered])


def test_token_opens_the_account_of_its_user():
    assert opened(make_token(USER, SESSION), dialled()) == playground_account(USER)


@pytest.mark.parametrize("session", ["", "another-session-key"])
def test_token_is_good_in_its_own_browser_session_alone(session):
    assert opened(make_token(USER, SESSION), dialled(session)) == ""


def test_token_is_good_from_the_networks_of_the_admin_alone():
    assert opened(make_token(USER, SESSION), dialled(peer="203.0.113.9")) == ""


def test_token_is_good_for_a_minute(monkeypatch):
    token = make_token(USER, SESSION)
    monkeypatch.setattr(door, "TOKEN_SECONDS", -1)
    assert opened(token, dialled()) == ""


@pytest.mark.parametrize("token", [b"", b"\xff\xfe", b"a:b:c", b"x" * 5000])
def test_what_is_no_token_opens_nothing(token):
    assert opened(token, dialled()) == ""


@pytest.fixture
def player(db: None) -> SimpleNamespace:
    """A user with the permission alone, signed in."""
    user = User.objects.create_user("player", password="a long password", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="use_playground"))
    browser = Client()
    browser.force_login(user)
    key = browser.cookies["sessionid"].value
    return SimpleNamespace(user=user, key=key, account=playground_account(user.pk))


def test_player_may_speak_for_his_own_playground_alone(player):
    assert may_speak(player.account, player.key)
    assert not may_speak(playground_account(player.user.pk + 1), player.key)
    assert not may_speak("10001", player.key)
    assert not may_speak(player.account, "no such session")
    assert not may_speak(player.account, "")


ENDS: dict[str, Callable[[SimpleNamespace], object]] = {
    "not active": lambda one: User.objects.filter(pk=one.user.pk).update(is_active=False),
    "not staff": lambda one: User.objects.filter(pk=one.user.pk).update(is_staff=False),
    "no permission": lambda one: one.user.user_permissions.clear(),
    "signed out": lambda one: SessionStore(one.key).delete(),
    "another password": lambda one: User.objects.filter(pk=one.user.pk).update(password="x"),
    "deleted": lambda one: one.user.delete(),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_player_may_speak_no_more_when_anything_of_it_has_ended(player, end):
    end(player)
    assert not may_speak(player.account, player.key)


def test_session_without_its_second_factor_may_not_speak(player, monkeypatch):
    monkeypatch.setattr(factors, "has_second_factor", lambda user: True)
    assert not may_speak(player.account, player.key)

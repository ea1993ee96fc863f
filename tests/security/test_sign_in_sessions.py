"""Where somebody is signed in is listed, and who ends a session signs it out."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from frostproject.models import SignInSession
from frostproject.signin.admin_site import describe_browser
from frostproject.signin.record import live_sessions
from tests.admin.record import ENGLISH, page

PAGE = "/admin/sign-in-sessions/"
PASSWORD = "a long password of a colleague"
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"
EDGE = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 "
    "Safari/537.36 Edg/140.0.0.0"
)


def account(name: str = "ann", **fields: Any) -> User:
    return User.objects.create_user(name, password=PASSWORD, is_staff=True, **fields)


def signed_in(name: str = "ann", user_agent: str = FIREFOX) -> Client:
    client = Client(headers={**ENGLISH, "user-agent": user_agent})
    answer = client.post("/admin/login/", {"username": name, "password": PASSWORD})
    assert answer.status_code == 302
    return client


def is_in(client: Client) -> bool:
    return client.get(PAGE).status_code == 200


def test_a_person_sees_every_browser_and_which_is_this_one(db: None):
    account()
    here, _there = signed_in(), signed_in(user_agent=EDGE)
    shown = page(here, PAGE)
    assert "Firefox · Windows" in shown
    assert "Edge · Linux" in shown
    assert re.search(r"Firefox · Windows</strong>\s*<span[^>]*>this one", shown)


def test_an_ended_session_is_signed_out_at_its_next_request_and_this_one_stays(db: None):
    account()
    here, there = signed_in(), signed_in()
    other = SignInSession.objects.order_by("pk").last()
    assert other is not None
    here.post(PAGE, {"action": "end", "session": other.pk})
    assert is_in(here)
    assert not is_in(there)
    assert there.session.get("_auth_user_id") is None
    assert there.get("/admin/second-factor/check/").status_code == 302


def test_all_others_are_ended_at_once_and_a_bad_form_ends_nothing(db: None):
    account()
    here, others = signed_in(), [signed_in(), signed_in()]
    for form in ({}, {"action": "end"}, {"action": "end", "session": "x²"}, {"action": "no"}):
        here.post(PAGE, form)
    assert all(map(is_in, [here, *others]))
    here.post(PAGE, {"action": "end_others"})
    assert is_in(here)
    assert not any(map(is_in, others))


def test_nobody_ends_the_session_of_another_account(db: None):
    account()
    account("bob")
    ann, bob = signed_in(), signed_in("bob")
    of_bob = SignInSession.objects.get(user__username="bob")
    ann.post(PAGE, {"action": "end", "session": of_bob.pk})
    assert ann.get(f"{PAGE}{of_bob.user_id}/").status_code == 404
    assert ann.post(f"{PAGE}{of_bob.user_id}/", {"action": "end_others"}).status_code == 404
    assert is_in(bob)


def test_a_superuser_sees_and_ends_the_sessions_of_an_account(db: None):
    account("root", is_superuser=True)
    ann = account()
    root, there = signed_in("root"), signed_in()
    assert "Firefox · Windows" in page(root, f"/admin/auth/user/{ann.pk}/change/")
    root.post(f"{PAGE}{ann.pk}/", {"action": "end_others"})
    assert is_in(root)
    assert not is_in(there)


def test_signing_out_takes_the_session_from_the_list(db: None):
    ann = account()
    client = signed_in()
    assert live_sessions(ann).count() == 1
    client.post("/admin/logout/")
    assert live_sessions(ann).count() == 0


def test_a_changed_password_ends_the_other_sessions(db: None):
    ann = account()
    here, there = signed_in(), signed_in()
    new = "another long password"
    form = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert here.post("/admin/password_change/", form).status_code == 302
    assert is_in(here)
    ann.refresh_from_db()
    assert live_sessions(ann).count() == 1
    assert not is_in(there)


def test_a_deactivated_account_stays_signed_out_when_it_is_active_again(db: None):
    ann, client = account(), signed_in()
    for is_active in (False, True):
        ann.is_active = is_active
        ann.save()
    assert not is_in(client)


def test_a_session_is_noted_every_few_minutes_and_not_with_each_request(db: None, settings):
    account()
    client = signed_in()
    before = SignInSession.objects.get()
    assert is_in(client)
    assert SignInSession.objects.get().last_seen_at == before.last_seen_at
    SignInSession.objects.update(last_seen_at="2026-01-01T00:00:00Z")
    assert is_in(client)
    assert SignInSession.objects.get().last_seen_at > before.last_seen_at


def test_the_database_alone_does_not_tell_the_token_of_a_session(db: None):
    account()
    token = signed_in().session["frostagent_sign_in"]
    assert token not in str(SignInSession.objects.values().get())


@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        (FIREFOX, "Firefox · Windows"),
        (EDGE, "Edge · Linux"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, "
            "like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
            "Safari · iPhone",
        ),
        (
            "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36 "
            "MicroMessenger/8.0",
            "WeChat · Android",
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 15_0) AppleWebKit/537.36 Chrome/140.0 "
            "Safari/537.36",
            "Chrome · macOS",
        ),
        ("python-requests/2.32", ""),
        ("<script>alert(1)</script>", ""),
        ("", ""),
    ],
)
def test_a_browser_is_named_as_people_know_it(user_agent: str, words: str):
    assert describe_browser(user_agent) == words

"""A stolen session: what would let a thief stay in asks for the password once more, unless it was
given a moment ago."""

import pytest

from frostproject.signin import record
from tests.live_server import ADMIN_PASSWORD
from tests.security import accounts, people
from tests.security.authenticator import Authenticator
from tests.security.browser import LOGIN, OWN, Browser
from tests.security.test_signin_second_factor import switch_on

server, started = accounts.server, accounts.started
AGAIN = "/admin/sign-in-again/"
USERS = "/admin/auth/user/"
_AGE = f"""
import json, sys, django
django.setup()
from importlib import import_module
from django.conf import settings
session = import_module(settings.SESSION_ENGINE).SessionStore(json.load(sys.stdin))
assert session.get("{record.PROVED_AT_KEY}"), "nobody signed in with it"
session["{record.PROVED_AT_KEY}"] -= {record.FRESH_SECONDS} + 1
session.save()
"""


def age(server, browser: Browser) -> Browser:
    """``browser``, as it is some while later."""
    people.run(server, _AGE, browser.session.cookies["sessionid"])
    return browser


@pytest.fixture
def thief(server):
    """Somebody with the session of a superuser who signed in a while ago."""
    browser = Browser(server, host="localhost")
    browser.sign_in()
    return age(server, browser)


def test_second_factors_are_changed_by_whoever_knows_the_password(server, thief):
    assert AGAIN in thief.get(OWN).url
    assert thief.post(OWN, {"action": "begin_app"}).headers["Location"].startswith(AGAIN)
    assert server.rows("SELECT * FROM frostproject_authenticatorapp") == []
    assert thief.post("/admin/passkeys/add/begin/", json={}).status_code == 401
    assert thief.is_in()  # everything else goes on


def test_a_second_factor_is_not_taken_away_either(server):
    owner = Browser(server)
    owner.sign_in()
    switch_on(owner)
    age(server, owner)
    for action in ("remove_app", "new_codes", "begin_app", "remove_passkey", "confirm_app"):
        assert owner.post(OWN, {"action": action}).headers["Location"].startswith(AGAIN)
    assert len(server.rows("SELECT * FROM frostproject_authenticatorapp")) == 1


def test_a_superuser_finds_no_way_around_by_the_accounts(server, thief):
    (row,) = server.rows("SELECT id, password FROM auth_user WHERE username = 'admin'")
    own = f"{USERS}{row['id']}/"
    new = {
        "password1": "a brand new one 42",
        "password2": "a brand new one 42",
        "usable_password": "true",
    }
    for path, form in (
        (f"{own}password/", new),
        (f"{own}change/", {"username": "admin"}),
        (f"{own}delete/", {"post": "yes"}),
        (f"{USERS}add/", {"username": "friend", **new}),
        (USERS, {"action": "reset_second_factor", "_selected_action": [row["id"]]}),
    ):
        assert thief.post(path, form).headers["Location"].startswith(AGAIN), path
    assert server.rows("SELECT username, password FROM auth_user") == [
        {"username": "admin", "password": row["password"]}
    ]
    assert thief.get(USERS).status_code == 200


def test_the_owner_says_the_password_and_goes_on(server, thief):
    shown = thief.get(f"{OWN}?x=1")
    assert "You signed in a while ago" in shown.text
    assert thief.post(AGAIN, {"password": "wrong", "next": OWN}).status_code == 200
    assert AGAIN in thief.get(OWN).url
    assert "A sign-in failed (password, asked again): 'admin'" in server.log
    right = thief.post(AGAIN, {"password": ADMIN_PASSWORD, "next": "https://evil.example/"})
    assert right.headers["Location"] == "/admin/"
    assert thief.get(OWN, allow_redirects=False).status_code == 200
    switch_on(thief)
    assert thief.is_in()


def test_guessing_there_is_slowed_before_anything_is_hashed(server, thief):
    while thief.post(AGAIN, {"password": "wrong"}).status_code != 429:
        pass
    assert Browser(server).get(AGAIN).url.endswith(f"{LOGIN}?next={AGAIN}")
    assert ADMIN_PASSWORD not in server.log


def test_a_passkey_does_as_well(server):
    owner = Browser(server, host="localhost")
    owner.sign_in()
    passkey = Authenticator(f"http://localhost:{server.port}")
    made = passkey.create(owner.post("/admin/passkeys/add/begin/", json={}).json())
    age(server, owner)
    assert (
        owner.post("/admin/passkeys/add/complete/", json=made).status_code == 200
    )  # it was begun in time
    assert 'data-passkey="get"' in owner.get(AGAIN).text
    said = passkey.get(owner.post("/admin/passkeys/begin/", json={}).json())
    assert owner.post("/admin/passkeys/complete/", json=said).status_code == 200
    assert owner.get(OWN, allow_redirects=False).status_code == 200

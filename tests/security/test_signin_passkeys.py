"""Passkeys: made, used as second factor and instead of a password, and refused where anything is
not as it should be."""

from typing import Any

import pytest

from frostproject.signin.session_store import digest_key
from tests.live_server import ADMIN
from tests.security import accounts
from tests.security.authenticator import USER_PRESENT, Authenticator
from tests.security.browser import CHECK, OWN, Browser

server, started = accounts.server, accounts.started
BEGIN, COMPLETE = "/admin/passkeys/begin/", "/admin/passkeys/complete/"
ADD_BEGIN, ADD_COMPLETE = "/admin/passkeys/add/begin/", "/admin/passkeys/add/complete/"


def browser_of(server) -> Browser:
    return Browser(server, host="localhost")


def added(server, browser: Browser, origin: str = "") -> tuple[Authenticator, int]:
    """A passkey for whoever is signed in in ``browser``, and the status that it was taken with."""
    passkey = Authenticator(origin or f"http://localhost:{server.port}")
    options = browser.post(ADD_BEGIN, json={}).json()
    assert options["rp"]["id"] == "localhost"
    return passkey, browser.post(ADD_COMPLETE, json=passkey.create(options)).status_code


@pytest.fixture
def owner(server):
    browser = browser_of(server)
    assert browser.sign_in().status_code == 302
    return browser


@pytest.fixture
def passkey(server, owner):
    made, status = added(server, owner)
    assert status == 200
    return made


def begun(browser: Browser) -> dict[str, Any]:
    answer = browser.post(BEGIN, json={})
    assert answer.status_code == 200
    return dict(answer.json())


def test_as_second_factor(server, owner, passkey):
    assert owner.is_in()
    assert "Take away" in owner.get(OWN).text
    browser = browser_of(server)
    browser.sign_in()
    assert not browser.is_in()
    assert 'data-passkey="get"' in browser.get(CHECK).text
    passkey.flags = USER_PRESENT  # the password was one factor already
    answer = browser.post(f"{COMPLETE}?next=/admin/auth/user/", json=passkey.get(begun(browser)))
    assert answer.json()["redirect_url"] == "/admin/auth/user/"
    assert browser.is_in()


def test_a_session_has_a_new_name_once_the_second_factor_was_given(server, owner, passkey):
    half = browser_of(server)
    half.sign_in()
    before = half.session.cookies["sessionid"]
    half.post(COMPLETE, json=passkey.get(begun(half)))
    assert half.is_in()
    assert half.session.cookies["sessionid"] != before
    assert (
        server.rows("SELECT * FROM django_session WHERE session_key = ?", digest_key(before)) == []
    )


def test_instead_of_name_and_password(server, owner, passkey):
    browser = browser_of(server)
    options = begun(browser)
    assert not options.get("allowCredentials")  # a stranger is told of nobody's passkeys
    assert options["userVerification"] == "required"
    assert browser.post(COMPLETE, json=passkey.get(options)).status_code == 200
    assert browser.is_in()
    assert f"'{ADMIN}' signed in from 127." in server.log


def test_alone_it_has_to_know_its_owner(server, owner, passkey):
    passkey.flags = USER_PRESENT
    browser = browser_of(server)
    assert browser.post(COMPLETE, json=passkey.get(begun(browser))).status_code == 422
    assert not browser.is_in()


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:1", "https://evil.example", "http://localhost.evil.example", "null", ""],
)
def test_a_false_page_gets_nowhere(server, owner, passkey, origin):
    passkey.origin = origin
    browser = browser_of(server)
    assert browser.post(COMPLETE, json=passkey.get(begun(browser))).status_code == 422
    assert not browser.is_in()
    assert "A sign-in failed (passkey)" in server.log


def test_a_passkey_of_a_false_page_is_not_taken(server, owner):
    assert added(server, owner, "https://evil.example")[1] == 422
    assert server.rows("SELECT * FROM django_otp_webauthn_webauthncredential") == []


def test_what_was_said_once_does_not_work_again(server, owner, passkey):
    browser = browser_of(server)
    said = passkey.get(begun(browser))
    assert browser.post(COMPLETE, json=said).status_code == 200
    thief = browser_of(server)
    assert thief.post(COMPLETE, json=said).status_code == 400  # nothing was asked
    begun(thief)
    assert thief.post(COMPLETE, json=said).status_code == 422  # something else was asked
    assert not thief.is_in()
    options = begun(thief)
    passkey.counter -= 1
    assert (
        thief.post(COMPLETE, json=passkey.get(options)).status_code == 422
    )  # a copy that fell behind
    assert not thief.is_in()


def test_anothers_passkey_is_no_second_factor(server, owner, passkey):
    stranger = Authenticator(passkey.origin)
    stranger._domain = "localhost"
    browser = browser_of(server)
    browser.sign_in()
    assert browser.post(COMPLETE, json=stranger.get(begun(browser))).status_code == 404
    forged = passkey.get(begun(browser))
    forged["response"]["signature"] = stranger.get(begun(browser))["response"]["signature"]
    assert browser.post(COMPLETE, json=forged).status_code == 422
    assert not browser.is_in()


def test_one_that_was_taken_away_no_longer_works(server, owner, passkey):
    (row,) = server.rows("SELECT id FROM django_otp_webauthn_webauthncredential")
    owner.post(OWN, {"action": "remove_passkey", "passkey": row["id"]})
    browser = browser_of(server)
    assert browser.post(COMPLETE, json=passkey.get(begun(browser))).status_code == 404
    browser.sign_in()
    assert browser.is_in()  # it was the only factor beside the password


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"null",
        b"\xff",
        b"{",
        b'{"id": 1}',
        b"[" * 50_000,
        b'{"id": "a", "rawId": [], "response": {}}',
    ],
)
def test_nonsense_ends_in_words(server, body):
    browser = browser_of(server)
    begun(browser)
    headers = {"X-CSRFToken": browser.token(), "Content-Type": "application/json"}
    answer = browser.session.post(
        f"http://localhost:{server.port}{COMPLETE}", body, headers=headers, timeout=20
    )
    assert 400 <= answer.status_code < 500
    assert "Traceback" not in server.log


def test_tries_are_limited_and_come_with_a_token_against_forgery(server):
    browser = browser_of(server)
    assert (
        browser.session.post(
            f"http://localhost:{server.port}{BEGIN}", json={}, timeout=20
        ).status_code
        == 403
    )
    while browser.post(BEGIN, json={}).status_code != 429:
        pass


def test_sessions_that_are_over_do_not_pile_up(server):
    """Whoever asks for a passkey's question leaves a session behind, without being anybody."""
    begun(browser_of(server))
    accounts.change(server, "UPDATE django_session SET expire_date = '2020-01-01 00:00:00'")
    begun(browser_of(server))
    assert len(server.rows("SELECT * FROM django_session")) == 1


def test_the_page_says_where_passkeys_cannot_be(server, owner):
    numbers = Browser(server)
    numbers.sign_in()
    page = numbers.get(OWN).text
    assert "Passkeys do not work at this address" in page
    assert 'data-passkey="create"' not in page
    assert 'data-passkey="create"' in owner.get(OWN).text

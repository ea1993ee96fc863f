"""A second factor by an app with codes: set up, asked for, limited, and got past by recovery codes
and resets."""

import hmac
import re
import struct
import subprocess
import sys
import time
from base64 import b32decode
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User

from frostproject.models import LONGEST_WAIT, AuthenticatorApp, RecoveryCodes
from frostproject.signin import factors
from tests import zygote
from tests.live_server import ADMIN, ADMIN_PASSWORD
from tests.security import accounts
from tests.security.browser import CHECK, LOGIN, OWN, Browser, field

server, started = accounts.server, accounts.started
HALF_MINUTE = 30


def code_of(key: str, later: int = 0) -> str:
    """RFC 6238, by itself; ``later`` in half minutes."""
    counter = struct.pack(">Q", int(time.time()) // HALF_MINUTE + later)
    digest = hmac.digest(b32decode(key + "=" * (-len(key) % 8)), counter, "sha1")
    start = digest[-1] & 15
    return f"{(int.from_bytes(digest[start : start + 4], 'big') & 0x7FFFFFFF) % 10**6:06d}"


def switch_on(browser: Browser) -> tuple[str, list[str]]:
    """Set up an app; its key, and the recovery codes that the page shows."""
    browser.post(OWN, {"action": "begin_app"})
    page = browser.get(OWN).text
    assert "<svg" in page
    key = field(page, r'<code class="key">([A-Z2-7]+)</code>')
    shown = browser.post(OWN, {"action": "confirm_app", "code": code_of(key)})
    assert shown.status_code == 200, shown.text
    assert "no-store" in shown.headers["Cache-Control"]
    codes = re.findall(r"<li><code>([a-z2-7]{5}-[a-z2-7]{5})</code>", shown.text)
    assert len(codes) == 10
    return key, codes


@pytest.fixture
def owner(server):
    browser = Browser(server)
    assert browser.sign_in().status_code == 302
    return browser


def test_the_whole_way_with_an_app(server, owner):
    other = Browser(server)
    other.sign_in()
    assert other.is_in()
    key, codes = switch_on(owner)
    assert owner.is_in()  # whoever switched it on stays
    assert not other.is_in()  # and whoever was in by the password alone does not
    page = owner.get(OWN).text
    assert key not in page
    assert codes[0] not in page
    newcomer = Browser(server)
    assert newcomer.sign_in().status_code == 302
    for path in ("/admin/", "/admin/auth/user/", OWN, "/admin/password_change/"):
        assert CHECK in newcomer.get(path).url
    add = newcomer.post("/admin/passkeys/add/begin/", json={})
    assert add.status_code == 302
    assert newcomer.post(OWN, {"action": "remove_app"}).status_code == 302
    code = code_of(key, 1)  # half a minute may end before it is entered again
    entered = newcomer.post(CHECK, {"code": code, "next": "/admin/auth/user/"})
    assert (entered.status_code, entered.headers["Location"]) == (302, "/admin/auth/user/")
    assert newcomer.is_in()
    again = Browser(server)
    again.sign_in()
    assert again.post(CHECK, {"code": code}).status_code == 200  # a code works once
    assert not again.is_in()


def test_secrets_are_in_no_page_log_or_database(server, owner):
    key, codes = switch_on(owner)
    owner.get("/admin/auth/user/1/change/")
    stored = (
        b"".join(file.read_bytes() for file in server.data_dir.glob("*.sqlite3*"))
        + server.log.encode()
    )
    raw = b32decode(key)
    for secret in (
        key.encode(),
        raw.hex().encode(),
        raw,
        codes[0].encode(),
        codes[0].replace("-", "").encode(),
    ):
        assert secret not in stored


def test_wrong_codes_are_slowed_told_and_counted(server, owner):
    key, codes = switch_on(owner)
    guesser = Browser(server, "127.0.0.9")
    guesser.sign_in()
    answers = [guesser.post(CHECK, {"code": f"{n:06d}"}) for n in range(4)]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert "is looked at in" in answers[-1].text
    assert f"A sign-in failed (second factor): '{ADMIN}' from 127." in server.log
    while guesser.post(CHECK, {"code": "123456"}).status_code != 429:
        pass
    wrong = (
        "UPDATE frostproject_authenticatorapp SET throttling_failure_count = 99, "
        "throttling_failure_timestamp = '%s'"
    )
    accounts.change(server, wrong % f"{datetime.now(UTC):%F %T}")
    right = Browser(server)
    right.sign_in()
    assert (
        right.post(CHECK, {"code": code_of(key, 1)}).status_code == 200
    )  # the app waits, whoever asks
    accounts.change(server, wrong % f"{datetime.now(UTC) - LONGEST_WAIT:%F %T}")
    assert (
        right.post(CHECK, {"code": code_of(key, 1)}).status_code == 302
    )  # it does not wait for ever
    other = Browser(server)
    other.sign_in()
    assert other.post(CHECK, {"code": codes[0]}).status_code == 302  # other ways in never waited
    page = right.get().text
    assert "failed sign-ins in the last 24 hours" in page
    assert "to your account failed since you signed in last" in page


def test_a_recovery_code_lets_in_once_however_it_is_written(server, owner):
    _, codes = switch_on(owner)
    lost = Browser(server)
    lost.sign_in()
    assert lost.post(CHECK, {"code": f" {codes[3].upper().replace('-', ' ')} "}).status_code == 302
    assert "9 are left" in lost.get().text
    thief = Browser(server)
    thief.sign_in()
    assert thief.post(CHECK, {"code": codes[3]}).status_code == 200
    assert not thief.is_in()
    fresh = lost.post(OWN, {"action": "new_codes"}).text
    assert codes[4] not in fresh
    late = Browser(server)
    late.sign_in()
    assert late.post(CHECK, {"code": codes[4]}).status_code == 200


def test_whoever_came_in_by_a_recovery_code_stays_in_with_new_ones(server, owner):
    _, codes = switch_on(owner)
    lost = Browser(server)
    lost.sign_in()
    lost.post(CHECK, {"code": codes[0]})
    assert lost.post(OWN, {"action": "new_codes"}).status_code == 200
    assert lost.is_in()


def test_a_second_factor_can_be_taken_away_by_whoever_is_in(server, owner):
    switch_on(owner)
    owner.post(OWN, {"action": "remove_app"})
    assert owner.is_in()
    newcomer = Browser(server)
    newcomer.sign_in()
    assert newcomer.is_in()
    assert server.rows("SELECT * FROM frostproject_recoverycode") == []


def test_an_app_counts_only_once_a_code_of_it_was_entered(server, owner):
    owner.post(OWN, {"action": "begin_app"})
    assert "is not right" in owner.post(OWN, {"action": "confirm_app", "code": "000000"}).text
    newcomer = Browser(server)
    newcomer.sign_in()
    assert newcomer.is_in()
    assert newcomer.post(OWN, {"action": "nonsense", "code": "\0" * 5_000}).status_code == 302


def test_a_superuser_resets_another_account_and_nobody_else_does(server, owner):
    for name, is_superuser in (("second", "on"), ("helper", "")):
        form = {
            "username": name,
            "password1": ADMIN_PASSWORD,
            "password2": ADMIN_PASSWORD,
            "role": "viewer",
        }
        owner.post("/admin/auth/user/add/", form)
        (row,) = server.rows("SELECT id FROM auth_user WHERE username = ?", name)
        page = owner.get(f"/admin/auth/user/{row['id']}/change/").text
        rights = {
            "user_permissions": re.findall(
                r'<option value="(\d+)">[^<]*\| user \| Can (?:view|change) user', page
            )
        }
        staff = {
            "username": name,
            "is_active": "on",
            "is_staff": "on",
            "is_superuser": is_superuser,
            **rights,
            "chat_grants-TOTAL_FORMS": 0,
            "chat_grants-INITIAL_FORMS": 0,
        }
        assert owner.post(f"/admin/auth/user/{row['id']}/change/", staff).status_code == 302
    second, helper = Browser(server), Browser(server)
    second.sign_in("second")
    helper.sign_in("helper")
    switch_on(second)
    (victim,) = server.rows("SELECT id FROM auth_user WHERE username = 'second'")
    act = {"action": "reset_second_factor", "_selected_action": [victim["id"]]}
    helper.post("/admin/auth/user/", act)
    assert "Reset the second factor" not in helper.get("/admin/auth/user/").text
    assert not signs_in_by_password(server, "second")
    owner.post("/admin/auth/user/", act)
    assert signs_in_by_password(server, "second")
    assert "Second factor of 'second': was reset by" in server.log


def signs_in_by_password(server, name: str) -> bool:
    browser = Browser(server)
    browser.sign_in(name)
    return browser.is_in()


def test_at_the_machine_a_command_resets_it(server, owner):
    switch_on(owner)

    def run(name: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "manage.py", "reset_second_factor", name]
        environment = {**server._environment(), "LANGUAGE_CODE": "en"}
        return zygote.run(command, environment)

    assert run("nobody").returncode == 1
    assert "was taken away" in run(ADMIN).stdout
    assert "has no second factor" in run(ADMIN).stdout
    assert signs_in_by_password(server, ADMIN)


def test_pages_bring_nothing_that_a_strict_policy_refuses(server, owner):
    owner.post(OWN, {"action": "begin_app"})
    pages = [owner.get(OWN).text, Browser(server).get(LOGIN).text]
    switch_on(owner)
    half = Browser(server)
    half.sign_in()
    pages.append(half.get(CHECK).text)
    for page in pages:
        assert not re.search(
            r"<script(?![^>]*\bsrc=)|\sstyle=|<style|\son\w+=|javascript:|(?:src|href)=\"https?:",
            page,
        )


def test_the_check_sends_to_no_foreign_address_and_asks_nobody_else(server, owner):
    _, codes = switch_on(owner)
    half = Browser(server)
    assert LOGIN in half.get(CHECK).url
    half.sign_in()
    assert (
        half.post(CHECK, {"code": codes[0], "next": "https://evil.example/"}).headers["Location"]
        == "/admin/"
    )


@pytest.mark.django_db
def test_of_tries_at_the_same_moment_one_counts():
    """Each of many that read the row before the first wrong code was noted would otherwise be a
    guess for nothing."""
    user = User.objects.create_user("racer")
    app = factors.begin_authenticator_app(user)
    for device, right in (
        (AuthenticatorApp, code_of(factors.format_app_key(app))),
        (RecoveryCodes, factors.make_recovery_codes(user)[0]),
    ):
        first, second = device.objects.get(user=user), device.objects.get(user=user)
        assert not first.verify_token("000000")
        assert not second.verify_token(right)
        assert device.objects.get(user=user).throttling_failure_count == 1

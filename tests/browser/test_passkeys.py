"""Passkeys in a browser that has an authenticator: made, and signed in with."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenWindow
from tests.cast import fresh_id
from tests.security.people import PASSWORD, accounts

pytestmark = pytest.mark.slow


def test_passkey_is_made_and_signs_in_without_name_and_password(live, open_window: OpenWindow):
    name, there = f"viewer-{fresh_id()}", f"http://localhost:{live.port}"
    accounts(live, **{name: "viewer"})
    window = open_window(language="en", signed_in=False)
    page, device = window.page, window.add_authenticator()
    page.goto(f"{there}/admin/login/?next=/admin/second-factor/")
    page.fill("#id_username", name)
    page.fill("#id_password", PASSWORD)
    page.press("#id_password", "Enter")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.locator(".passkeys li")).to_have_count(1)
    page.context.clear_cookies()
    page.goto(f"{there}/admin/login/")
    button, stopped = page.locator(".passkey [type=submit]"), page.locator("[data-error=stopped]")
    device.recognise(False)
    button.click()
    expect(stopped).to_be_visible()
    device.recognise(True)
    button.click()
    expect(page.locator("#user-menu")).to_contain_text(name)
    assert page.url == f"{there}/admin/"

"""The first quarter of an hour: from an empty installation to the first answer, in a browser."""

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import OpenWindow
from tests.browser.dialled import dial

pytestmark = pytest.mark.slow

NOTHING_SET = {
    "UPSTREAM_ENDPOINT": "",
    "UPSTREAM_API_KEY": "",
    "MODEL_NAME": "",
    "VISUAL_MODEL_NAME": "",
    "CODER_MODEL_NAME": "",
    "ONEBOT_ACCESS_TOKEN": "",
}


def set_up_model(page: Page, address: str) -> None:
    page.select_option("#model-preset", "other")
    page.fill("#model-key", "sk-test")
    page.fill("#model-name", "scripted")
    page.fill("#model-address", address)
    page.click("#model-form button.default")
    expect(page.locator("#model-result .badge-succeeded")).to_be_visible()


def read_client_settings(page: Page) -> tuple[str, str]:
    """The address and the token that the page says to enter, as a copy button hands them out."""
    page.click("#client-napcat")
    page.click("#client-setup button[name=shown][value='1']")
    expect(page.locator("#hide-token")).to_be_visible()
    page.click("#client-setup dl button[data-copy]")
    entered = page.locator("#client-setup dl.enter code").all_inner_texts()
    address = next(one for one in entered if one.startswith("ws://"))
    token = max((one for one in entered if one != address), key=len)
    return address, token


def done(page: Page, *steps: str) -> None:
    for step in steps:
        expect(page.locator(f"#badge-{step}")).to_have_class("badge badge-succeeded")


def test_a_click_counts_though_the_one_before_is_not_answered_yet(
    start_server, open_window: OpenWindow
):
    page = open_window(start_server(**NOTHING_SET)).page
    page.goto("/admin/start/")
    slow: list[Route] = []
    page.route("**/admin/start/client/", lambda route: slow.append(route), times=1)
    page.click("#client-llbot")
    page.click("#client-setup button[name=shown][value='1']")
    slow[0].continue_()
    expect(page.locator("#hide-token")).to_be_visible()
    expect(page.locator("#client-llbot")).to_have_attribute("aria-pressed", "true")


def test_start_page_leads_from_nothing_to_the_first_answer(
    start_server, open_window: OpenWindow, model
):
    model.answer_with(lambda request: "pong")
    server = start_server(**NOTHING_SET)
    window = open_window(server, signed_in=False)
    window.sign_in()
    page = window.page
    expect(page).to_have_url(f"{server.url}/admin/start/")
    set_up_model(page, model.url)
    done(page, "model")
    address, token = read_client_settings(page)
    assert address == server.ws_url
    with dial(server, token=token) as bot:
        done(page, "client")
        page.fill("#step-persona input[name=name]", "Frosty")
        page.fill("#step-persona textarea", "You are Frosty.")
        page.click("#step-persona button.default")
        page.fill("#step-owners .chooser input[name=owners]", "20001")
        page.click("#step-owners button.default")
        done(page, "model", "client", "persona", "owners")
        bot.say_private(20001, "ping")
        assert bot.heard() == "pong"
        done(page, "try")
    assert "You are Frosty." in str(model.requests[-1].messages[0])

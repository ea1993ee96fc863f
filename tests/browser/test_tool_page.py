"""A tool is changed in a browser while a conversation goes on."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenWindow
from tests.browser.dialled import dial
from tests.scripted_model import call, held

pytestmark = pytest.mark.slow


def test_changed_tool_is_used_from_the_next_message_on(
    start_server, open_window: OpenWindow, model
):
    server = start_server()
    model.script(
        [
            call("get_weather", city="北京"),
            held("first"),
            call("get_weather", city="北京"),
            "second",
        ]
    )
    page = open_window(server).page
    with dial(server) as bot:
        bot.say_private(20001, "weather?")
        model.received(2)
        page.goto("/admin/tools/toolconfig/?q=get_weather")
        page.click("#result_list a:has-text('get_weather')")
        page.check("#id_mock_enabled")
        page.fill("#id_mock_value", "raining frogs")
        page.click("input[name=_save]")
        expect(page.locator(".messagelist .success")).to_be_visible()
        model.release()
        assert bot.heard() == "first"
        bot.say_private(20001, "and now?")
        assert bot.heard() == "second"
    assert "raining frogs" not in str(model.requests[1].messages)
    assert "raining frogs" in model.requests[-1].last_text

"""The overview on one screen, and budgets that are changed where they are seen."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenWindow
from tests.browser.window import Window
from tests.conftest import scripted_env
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel
from tests.security.people import run

pytestmark = pytest.mark.slow
COUNTED = """
import django
django.setup()
from agent.models import ActivitySum, ChatSession
from django.utils import timezone
from tools.local_time import current_day
chat = ChatSession.objects.create(
    account="10001", kind="group", peer_id="700", last_message_at=timezone.now()
)
ActivitySum.objects.create(day=current_day(), session=chat, received=5, failed=3)
"""
MODEL = ".alerts > ul [data-kind=no-model]"


@pytest.fixture(scope="module")
def server(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """One without a model."""
    with LiveServer(scripted_env(model_server) | {"UPSTREAM_ENDPOINT": ""}) as server:
        yield server


@pytest.fixture
def window(server: LiveServer, open_window: OpenWindow) -> Window:
    return open_window(server, language="en")


def test_an_alert_is_put_away_in_place_and_shown_again(window):
    page = window.page
    page.goto("/admin/")
    expect(page).to_have_title("(1) Overview | FrostAgent")
    page.click(f"{MODEL} button.seen")
    expect(page.locator(MODEL)).to_have_count(0)
    expect(page).to_have_title("Overview | FrostAgent")
    expect(page.locator("#alerts-title")).to_be_focused()
    page.reload()
    expect(page.locator(MODEL)).to_have_count(0)
    page.click(".put-away summary")
    page.dispatch_event("#overview-state", "live:changed")
    page.wait_for_load_state("networkidle")
    page.click(".put-away button.seen")
    expect(page.locator(MODEL)).to_be_visible()


def test_tables_are_opened_in_place_and_reached_without_scripts(window, open_window: OpenWindow):
    page = window.page
    page.goto("/admin/")
    page.click("a.more")
    expect(page.locator("#more-title")).to_be_visible()
    heights = page.evaluate("[document.documentElement.scrollHeight, window.innerHeight]")
    assert heights[0] >= heights[1]
    plain = open_window(window.server, language="en", java_script_enabled=False).page
    plain.goto("/admin/")
    assert plain.evaluate("document.documentElement.scrollHeight") <= 800
    plain.click("a.more")
    expect(plain.locator("#more-title")).to_be_visible()
    plain.click(f"{MODEL} button.seen")
    expect(plain.locator(MODEL)).to_have_count(0)
    plain.click(".put-away summary")
    plain.click(".put-away button.seen")
    expect(plain.locator(MODEL)).to_be_visible()


def test_one_chart_is_drawn_at_a_time_and_chosen_by_the_keyboard(window):
    page = window.page
    page.goto("/admin/")
    expect(page.locator(".charts")).to_contain_text("No message has come in yet.")
    run(window.server, COUNTED, None)
    page.reload()
    expect(page.locator("figure.chart:visible figcaption")).to_have_text("Messages")
    expect(page.locator("figure.chart canvas")).to_have_count(1)
    page.focus("#show-chart-1")
    page.keyboard.press("ArrowRight")
    expect(page.locator("figure.chart:visible figcaption")).to_have_text("Failures")
    expect(page.locator("figure.chart:visible canvas")).to_be_visible()
    page.click("figure.chart:visible summary")
    expect(page.locator("figure.chart:visible td[data-value='3']")).to_be_visible()


def test_a_limit_is_changed_beside_its_bar_and_the_outcome_is_in_view(window):
    page = window.page
    page.goto("/admin/spending/")
    held = page.locator("#by-person > .held")
    held.locator("summary").click()
    held.locator("input[name=limit]").fill("7")
    held.get_by_role("button", name="Save").click()
    expect(page.locator("#outcome")).to_contain_text("in force from the next message on")
    expect(held).to_contain_text("7 tokens a day")
    held.locator("summary").click()
    held.get_by_role("button", name="Switch off").click()
    expect(held).to_contain_text("off")


def test_short_page_does_not_scroll(window):
    """Where nothing happened that would make it long."""
    page = window.page
    for place in ("log", "agent/budget", "people"):
        page.goto(f"/admin/{place}/")
        heights = page.evaluate("[document.documentElement.scrollHeight, window.innerHeight]")
        assert heights[0] == heights[1], place

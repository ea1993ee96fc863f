"""Ctrl+K and fields that are filled in by name, in a browser, by keyboard."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenWindow
from tests.browser.dialled import dial
from tests.cast import fresh_id

pytestmark = pytest.mark.slow


@pytest.fixture
def group(live, model) -> int:
    """A group with a name like no other, in which somebody spoke whose number is one less."""
    model.answer_with(lambda request: "hi")
    person, number = fresh_id(), fresh_id()
    with dial(live) as bot:
        sender = {"user_id": person, "nickname": f"Ann{number}", "card": "", "role": "member"}
        bot.say_group(number, person, "hello", sender=sender, group_name=f"<b>Garden{number}")
        bot.heard()
    return number


def options(page: Page, scope: str = "#search-palette"):
    return page.locator(f"{scope} [role=option]")


def test_everything_is_reached_by_keyboard(open_window: OpenWindow, group: int):
    window = open_window(language="en", scheme="dark", width=390)
    page = window.page
    page.goto("/admin/agent/run/")
    page.keyboard.press("Control+k")
    box = page.get_by_role("dialog").get_by_role("combobox")
    expect(box).to_be_focused()
    expect(options(page).first).to_have_attribute("aria-selected", "true")
    assert window.basics() == []
    assert window.too_wide() == []
    page.keyboard.type("静音")
    field = options(page).filter(has_text="Silenced").first
    expect(field).to_be_visible()
    page.keyboard.press("ArrowDown")
    marked = box.get_attribute("aria-activedescendant")
    expect(page.locator(f"#{marked}")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.click("#search-opener")
    box.fill(f"garden{group}")
    expect(options(page)).to_have_count(1)
    expect(options(page)).to_contain_text(f"<b>Garden{group}")
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/agent/chatsession/*/change/")
    page.keyboard.press("Control+k")  # what was used last is first
    expect(options(page).first).to_contain_text(f"<b>Garden{group}")
    box.fill("no such thing at all")
    expect(options(page)).to_have_count(1)
    expect(options(page)).to_have_attribute("aria-disabled", "true")


def test_a_setting_leads_to_its_field(open_window: OpenWindow):
    page = open_window(language="en").page
    page.goto("/admin/")
    page.keyboard.press("Control+k")
    page.keyboard.type("静音")
    options(page).filter(has_text="Silenced").first.click()
    page.wait_for_url("**/admin/agent/manners/add/#id_silenced")
    expect(page.locator("#id_silenced")).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type("characters of one")
    expect(options(page).first).to_contain_text("Characters of one message")


def test_fields_are_filled_in_by_name(open_window: OpenWindow, group: int):
    window = open_window(language="en")
    page = window.page
    page.goto("/admin/agent/manners/add/")
    page.fill("#id_name", f"manners {group}")
    page.locator("#id_chats").press_sequentially(f"group:1\nGarden{group}")
    choice = options(page, ".field-chats")
    expect(choice).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#id_chats")).to_have_value(f"group:1\ngroup:{group}")
    expect(page.locator(".field-chats .chosen")).to_have_text(f"<b>Garden{group} (group:{group})")
    page.locator("details:has(#id_denied_people) > summary").click()
    page.locator("#id_denied_people").press_sequentially(f"ann{group}")
    options(page, ".field-denied_people").click()
    expect(page.locator("#id_denied_people")).to_have_value(str(group - 1))
    page.click("input[name=_continue]")
    expect(page.locator(".messagelist .success")).to_be_visible()
    expect(page.locator(".field-denied_people .chosen")).to_have_text(f"Ann{group}")
    assert window.basics() == []
    page.goto("/admin/agent/budget/add/")
    page.select_option("#id_kind", "person")
    page.locator("#id_subject").press_sequentially(f"Ann{group}")
    options(page, ".field-subject").click()
    assert page.input_value("#id_subject").endswith(f"/{group - 1}")


def test_listed_ids_and_other_chats_are_chosen_one_after_another(
    live, open_window: OpenWindow, group: int
):
    (tool,) = live.rows("SELECT id FROM tools_toolconfig WHERE name = 'send_message'")
    window = open_window(language="en")
    page = window.page
    page.goto(f"/admin/tools/toolconfig/{tool['id']}/change/")
    ids, chats = page.locator("#id_allowed_ids"), page.locator("#id_other_chats")
    page.select_option("#id_allowed", "people")
    ids.press_sequentially(f"20001, ann{group}")
    options(page, ".field-allowed_ids").click()
    expect(ids).to_have_value(f"20001,{group - 1}")
    expect(page.locator(".field-allowed_ids .chosen")).to_contain_text(f"Ann{group}")
    page.select_option("#id_allowed", "groups")
    ids.fill("")
    ids.press_sequentially(f"garden{group}")
    options(page, ".field-allowed_ids").click()
    expect(ids).to_have_value(str(group))
    page.locator("details:has(#id_other_chats)").evaluate("one => { one.open = true; }")
    chats.press_sequentially(f"group:1 owners\ngarden{group}")
    options(page, ".field-other_chats").click()
    chats.press_sequentially(f" 20001 ann{group}")
    options(page, ".field-other_chats").click()
    expect(chats).to_have_value(f"group:1 owners\ngroup:{group} 20001 {group - 1}")
    named = page.locator(".field-other_chats .chosen")
    expect(named).to_contain_text(f"<b>Garden{group} (group:{group})")
    expect(named).to_contain_text(f"Ann{group} ({group - 1})")
    assert window.basics() == []


def test_the_search_is_there_without_scripts(open_window: OpenWindow, group: int):
    page = open_window(language="en", java_script_enabled=False).page
    page.goto("/admin/")
    page.click("#search-opener")
    page.fill("#search-q", f"garden{group}")
    page.press("#search-q", "Enter")
    page.click(".search-hits a")
    expect(page.locator("h1")).to_contain_text(f"<b>Garden{group}")
    page.goto("/admin/agent/manners/add/")
    expect(page.locator("#id_chats")).to_be_editable()

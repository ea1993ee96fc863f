"""What became of an act is seen where the reader is, and readers of screens hear it."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenWindow
from tests.browser.dialled import Dialled, dial
from tests.browser.test_chat_page import open_chat, start_chat
from tests.cast import fresh_id
from tests.fake_onebot import failed

pytestmark = pytest.mark.slow

SHORT, WIDE = 360, 1280
#: The acts in a chat, in an order that each allows, and what is said of them; in which window.
ACTS = {
    "take-over": ("taken over", WIDE),
    "hand-back": ("answers here again", SHORT),
    "silence": ("Silenced", SHORT),
    "speak": ("Let this chat speak", WIDE),
    "reset": ("context is fresh", WIDE),
    "persona": ("From the next message on", SHORT),
}


def told(page: Page, words: str) -> None:
    """``words`` are in view, in a region that readers of screens follow, until the reader has had
    enough of them."""
    line = page.locator("#outcome[role=status] .messagelist li").first
    expect(line).to_contain_text(words)
    expect(line).to_be_in_viewport(ratio=1)
    page.click("#outcome .dismiss")
    expect(line).to_have_count(0)


def press(page: Page, act: str) -> None:
    button = page.locator(f"[formaction$='/act/{act}/'], form[action$='/act/{act}/'] button").first
    if not button.is_visible():
        page.click("#acts a[data-panel]")
    button.click()


@pytest.fixture
def bot(live):
    with dial(live) as bot:
        yield bot


def test_outcome_of_each_act_in_a_chat_is_in_view(
    live, bot: Dialled, model, open_window: OpenWindow
):
    model.script(["pong"])
    window = open_window(language="en")
    page = window.page
    open_chat(page, live, start_chat(bot))
    for act, (words, width) in ACTS.items():
        window.look("light", width)
        press(page, act)
        told(page, words)
    page.fill("#compose-text", "by hand")
    page.click("#compose button.default")
    told(page, "On its way.")
    assert bot.heard() == "by hand"


def test_refusal_to_send_again_is_in_view(live, bot: Dialled, model, open_window: OpenWindow):
    model.script(["pong"])
    group = fresh_id()
    bot.bot.answer_with(lambda _action: failed())
    bot.say_group(group, 20001, "ping")
    bot.heard()
    page = open_window(language="en").page
    open_chat(page, live, group)
    button = page.locator("[formaction*='/act/resend/']").first  # the other is an apology
    expect(button).to_be_visible()
    bot.tell("notice", **MUTED, group_id=group, user_id=bot.bot.self_id)
    bot.wait(live.row(f"SELECT id {PAUSED}", str(group)))
    button.click()
    told(page, "Nothing was sent")


PAUSED = "FROM agent_chatsession WHERE peer_id = ? AND pause_reason <> ''"
MUTED = {"notice_type": "group_ban", "sub_type": "ban", "operator_id": 20001, "duration": 600}


def test_outcome_of_saving_and_of_a_list_action_is_in_view(live, open_window: OpenWindow):
    window = open_window(language="en", width=SHORT)
    page = window.page
    page.goto("/admin/agent/budget/add/")
    page.fill("#id_name", name := "budget of a page")
    page.fill("#id_limit", "1000000")
    page.click("input[name=_continue]")
    told(page, name)
    window.look("light", WIDE)
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.click("input[name=_save]")
    told(page, name)
    page.locator("#result_list tr", has_text=name).locator("input.action-select").check()
    window.look("light", SHORT)
    page.select_option("select[name=action]", "delete_selected")
    page.click("button[name=index]")
    page.click("#content input[type=submit]")
    told(page, "deleted")

"""The playground in a browser: somebody talks with the bot, and sees what it did."""

import base64
import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenWindow
from tests.e2e.cockpit import Cockpit
from tests.pictures import BLUE, RED, plain, saved
from tests.scripted_model import ScriptedModel, call, says

pytestmark = pytest.mark.slow

#: What a browser does when a picture is pasted.
PASTE = """(box, content) => {
    const bytes = Uint8Array.from(atob(content), (sign) => sign.charCodeAt(0));
    const data = new DataTransfer();
    data.items.add(new File([bytes], "pasted.png", { type: "image/png" }));
    box.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
}"""


@pytest.fixture
def page(open_window: OpenWindow) -> Page:
    """The playground, connected, with a group and private chats in it."""
    page = open_window().page
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto("/admin/playground/")
    expect(page.locator("#play-status[data-state=connected]")).to_be_visible()
    return page


def say(page: Page, words: str) -> None:
    page.fill("#play-text", words)
    page.press("#play-text", "Enter")


def test_playground_shows_the_answer_and_the_tool_call_behind_it(page, model):
    model.script([call("get_weather", city="北京"), "北京今天晴"])
    page.click("[data-chat='private:1001']")
    say(page, "北京天气")
    expect(page.locator(".play-by-bot")).to_contain_text("北京今天晴")
    run = page.locator("#play-run[data-active='0']")
    expect(run.locator("[data-play-state=answered]")).to_be_visible()
    expect(run.locator("[data-play-tool=get_weather]")).to_contain_text("北京")
    expect(run.locator(".play-facts")).to_contain_text("22 + 14")
    page.click("#play-run .play-run h3 a")
    expect(page).to_have_url(re.compile(r"/agent/run/\d+/change/$"))
    expect(page.locator("#content")).to_contain_text("get_weather")


def test_bot_answers_in_a_group_when_it_is_mentioned(page, model):
    model.script(["我在"])
    page.click("[data-chat='group:2001']")
    say(page, "大家好")
    expect(page.locator("#play-run [data-play-reason=not_addressed]")).to_be_visible()
    page.click("#play-mention summary")
    page.locator("#play-mention [data-mention]").first.click()
    page.keyboard.type("在吗")
    page.click("#play-send")
    expect(page.locator(".play-by-bot")).to_contain_text("我在")
    assert "在吗" in model.requests[-1].last_text


def mentioned(page: Page) -> None:
    """The bot has seen that it was mentioned, and answers."""
    expect(page.locator("#play-run .play-sent")).to_be_visible()
    expect(page.locator(".play-by-bot")).to_contain_text("我在")


def test_typed_name_of_the_bot_is_a_mention(page, model):
    model.script(["我在", "我还在", "我一直在"])
    page.click("[data-chat='group:2001']")
    bot = page.locator("#playground").get_attribute("data-bot-name")
    for number, words in enumerate(("@{} 北京天气", "在吗 @{}", "@{}"), start=1):
        page.fill("#play-text", words.format(bot))
        page.click("#play-send")
        expect(page.locator(".play-by-bot")).to_have_count(number)
    expect(page.locator(".play-by-bot").last).to_contain_text("我一直在")


def test_typed_sign_opens_the_people_for_the_keyboard(page, model):
    model.script(["我在"])
    page.click("[data-chat='group:2001']")
    box, menu = page.locator("#play-text"), page.locator("#play-at")
    box.press_sequentially("你好 @")
    expect(menu.locator("[role=option]")).to_have_count(5)
    box.press("Escape")
    expect(menu).to_be_hidden()
    box.press_sequentially(" @")
    box.press("ArrowDown")
    expect(menu.locator("[aria-selected=true]")).to_have_attribute("data-at", "1001")
    chosen = menu.locator("[aria-selected=true]").get_attribute("id")
    expect(box).to_have_attribute("aria-activedescendant", str(chosen))
    box.press("ArrowUp")
    box.press("Enter")
    expect(menu).to_be_hidden()
    expect(page.locator(".play-by-person")).to_have_count(0)
    box.press("Enter")
    mentioned(page)


def test_sign_in_an_address_opens_nothing_and_mentions_nobody(page):
    page.click("[data-chat='group:2001']")
    bot = page.locator("#playground").get_attribute("data-bot-name")
    page.locator("#play-text").press_sequentially(f"mail me@{bot}")
    expect(page.locator("#play-at")).to_be_hidden()
    page.press("#play-text", "Enter")
    expect(page.locator("#play-run [data-play-reason=not_addressed]")).to_be_visible()


def test_picture_reaches_the_model_however_it_is_chosen(page, model):
    """Two of them: what the model said of a picture is not asked again."""
    model.answer_with(lambda request: says("一张图"))
    page.click("[data-chat='private:1001']")
    file = {"name": "red.png", "mimeType": "image/png", "buffer": saved(plain(RED))}
    page.set_input_files("#play-picture", [file])
    asked_of_picture(page, model, 1)
    pasted = base64.b64encode(saved(plain(BLUE))).decode()
    page.locator("#play-text").evaluate(PASTE, pasted)
    asked_of_picture(page, model, 2)


def asked_of_picture(page: Page, model: ScriptedModel, number: int) -> None:
    expect(page.locator("#play-attached li")).to_have_count(1)
    say(page, "这是什么")
    expect(page.locator(".play-by-person img")).to_have_count(number)
    expect(page.locator(".play-by-bot")).to_have_count(number)
    shown = [one for one in model.requests if "data:image/" in str(one.body)]
    assert len(shown) == number


def test_chosen_failure_is_what_the_bot_meets(page, model):
    model.script(["说不出来"])
    page.click("[data-chat='group:2001']")
    page.click("#play-options summary")
    page.select_option("#play-failure", "mute")
    page.click("#play-mention summary")
    page.locator("#play-mention [data-mention]").first.click()
    page.click("#play-send")
    expect(page.locator("#play-banner")).to_be_visible()
    expect(page.locator("#play-run .play-sent .badge-failed")).to_be_visible()
    expect(page.locator(".play-by-bot")).to_have_count(0)
    page.click("#play-unmute")
    expect(page.locator("#play-banner")).to_be_hidden()


def test_playground_is_erased_with_one_button(page, model, live):
    model.script(["再见"])
    page.click("[data-chat='private:1001']")
    say(page, "你好")
    expect(page.locator("#play-run[data-active='0'] [data-play-run]")).to_be_visible()
    page.click("#play-erase")
    expect(page.locator(".play-by-person")).to_have_count(0)
    expect(page.locator("#play-hint")).not_to_be_empty()
    chats = "SELECT id FROM agent_chatsession WHERE account LIKE '9000000000000%'"
    assert live.rows(chats) == []


#: Somebody who is in no group.
OUTSIDER = """async () => {
    const { changed, state } = await import("/static/onebot/playground/store.js");
    state.people.push({ id: "1004", name: "Li", role: "member", friend: false, owner: false });
    changed();
}"""
#: Ask to join; the flag of the request.
ASK = """async (button) => {
    const { state } = await import("/static/onebot/playground/store.js");
    button.click();
    return Object.keys(state.requests)[0];
}"""
#: Have the page answer actions as if the server had sent them; the frames that it sends.
ANSWER = """async (calls) => {
    const { answerAction } = await import("/static/onebot/playground/actions.js");
    const frames = [];
    for (const [action, params] of calls)
        await answerAction({ action, params, echo: "e" }, { send: (one) => frames.push(one) });
    return frames;
}"""


def test_client_of_the_playground_lets_the_bot_do_what_its_role_allows(page):
    page.click("[data-chat='group:2001']")
    say(page, "大家好")
    message_id = page.locator(".play-by-person").get_attribute("data-message")
    page.evaluate(OUTSIDER)
    page.click("#play-join summary")
    flag = page.locator("[data-ask='1004']").evaluate(ASK)
    page.click("#play-join summary")
    page.click("[data-leave='1003']")
    group = {"group_id": 2001}
    acts: list[tuple[str, dict[str, object], bool]] = [
        ("set_group_ban", {"user_id": 1002, "duration": 600}, True),
        ("set_group_ban", {"user_id": 1001, "duration": 600}, False),
        ("set_group_ban", {"user_id": 5, "duration": 600}, False),
        ("set_group_whole_ban", {"enable": True}, True),
        ("set_group_card", {"user_id": 1002, "card": "小"}, True),
        ("set_group_special_title", {"user_id": 1002, "special_title": "王"}, False),
        ("set_essence_msg", {"message_id": int(message_id or 0)}, True),
        ("delete_msg", {"message_id": int(message_id or 0)}, False),
        ("_send_group_notice", {"content": "<b>"}, True),
        ("set_group_kick", {"user_id": 1002}, True),
        ("get_group_member_info", {"user_id": 1002}, False),
        ("get_group_root_files", {}, True),
        ("set_group_add_request", {"flag": flag, "approve": True}, True),
        ("set_group_add_request", {"flag": flag, "approve": False}, False),
    ]
    frames = page.evaluate(ANSWER, [[name, group | params] for name, params, _ in acts])
    answers = [frame["retcode"] == 0 for frame in frames if "echo" in frame]
    assert answers == [is_done for _, _, is_done in acts]
    told = [frame["notice_type"] for frame in frames if "notice_type" in frame]
    assert told == [
        "group_ban",
        "group_ban",
        "group_card",
        "essence",
        "group_decrease",
        "group_increase",
    ]
    expect(page.locator(".play-notice")).to_have_count(9)
    expect(page.locator(".play-notice", has_text="<b>")).to_be_visible()


def test_what_the_bot_does_in_the_group_is_a_line_there(page, model, live):
    cockpit = Cockpit(live)
    acts = ("poke", "list_members", "unmute_member")
    for tool in acts:
        cockpit.configure(tool, enabled=True)
    try:
        model.script([call("poke", user_id="1002"), "戳了"])
        model.script([call("unmute_member", user_id="1002"), "解了", call("list_members"), "名单"])
        page.click("[data-chat='group:2001']")
        for number in range(1, 4):
            say(page, f"@{page.locator('#playground').get_attribute('data-bot-name')} 来")
            expect(page.locator(".play-by-bot")).to_have_count(number)
    finally:
        for tool in acts:
            cockpit.configure(tool, enabled=False)
    assert '"user_id": "1003"' in str(model.requests[-1].messages[-1]["content"])
    lines = page.locator(".play-notice")
    expect(lines).to_have_count(2)
    expect(lines.first).to_contain_text("戳")
    page.locator("#play-chats li:has([data-chat='group:2001']) .play-small").click()
    expect(page.locator("#play-chat-role")).to_have_value("admin")

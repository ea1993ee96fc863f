"""The workbench of chats in a browser: the list that stays, the panel, acts, and the keyboard."""

import sqlite3
from contextlib import closing

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.browser.conftest import OpenWindow
from tests.browser.dialled import Dialled, dial
from tests.browser.test_chat_page import open_chat, start_chat
from tests.cast import fresh_id
from tests.live_server import LiveServer

pytestmark = pytest.mark.slow

ANN, PHONE = 20001, 390


@pytest.fixture
def bot(live):
    with dial(live) as bot:
        yield bot


def start_group(bot: Dialled, *words: str) -> int:
    """A group in which ``words`` were said, to nobody; which it is."""
    group = fresh_id()
    for said in words:
        bot.say_group(group, ANN, said, mention=False)
    return group


def stay(page: Page) -> None:
    page.evaluate("window.isSamePage = true")


def stayed(page: Page) -> bool:
    return bool(page.evaluate("window.isSamePage === true"))


def test_list_follows_and_marks_what_was_not_seen(live, bot, model, open_window: OpenWindow):
    model.script(["pong", "second"])
    person, group = start_chat(bot), start_group(bot, "first")
    page = open_window(language="en").page
    open_chat(page, live, person)
    stay(page)
    row = page.locator("#result_list li", has_text=str(group)).first
    expect(row).not_to_have_class("has-unread")
    bot.say_private(person, "again")
    bot.heard()
    bot.say_group(group, ANN, "where are you?", mention=False)
    first = page.locator("#result_list li").first
    expect(first).to_contain_text("where are you?")
    expect(first).to_have_class("has-unread")
    expect(page.locator("li.said-by-bot").last).to_contain_text("second")
    box = first.bounding_box()
    assert box is not None
    assert box["height"] <= 41
    first.click()
    expect(page.locator("#bench-chat h1")).to_contain_text(str(group))
    expect(page.locator("li.said-by-person").last).to_contain_text("where are you?")
    expect(row).not_to_have_class("has-unread")
    page.go_back()
    expect(page.locator("li.said-by-bot").last).to_contain_text("second")
    assert stayed(page)


#: Bytes of what a page has loaded, headers included.
LOADED = """() => [...performance.getEntriesByType("navigation"),
    ...performance.getEntriesByType("resource")].reduce((sum, one) => sum + one.transferSize, 0)"""


def test_page_of_200_kb_says_why_it_was_silent_and_shows_twelve(live, bot, open_window: OpenWindow):
    group = start_group(bot, *(f"nothing for the bot {n}" for n in range(14)))
    page = open_window(language="en").page
    open_chat(page, live, group)
    page.wait_for_load_state("load")
    assert 20_000 < page.evaluate(LOADED) <= 200_000
    last = page.locator("li.said-by-person").last
    expect(last.locator(".reason")).to_contain_text("not addressed")
    expect(last.locator(".reason")).to_be_in_viewport(ratio=1)
    expect(page.locator("#compose-text")).to_be_in_viewport(ratio=1)
    for bubble in page.locator("li.said-by-person").all()[-12:]:
        expect(bubble).to_be_in_viewport(ratio=1)


def test_keyboard_finds_opens_reads_and_answers(live, bot, model, open_window: OpenWindow):
    model.script(["pong"])
    person = start_chat(bot, "a word that only I say")
    page = open_window(language="en").page
    page.goto("/admin/agent/chatsession/")
    page.keyboard.press("/")
    page.keyboard.type(str(person))
    page.keyboard.press("Enter")
    expect(page.locator("#result_list li a").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("li.said-by-bot").last).to_contain_text("pong")
    page.keyboard.press("k")
    page.keyboard.press("k")
    expect(page.locator("li.said-by-person").last).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#panel .bars")).to_contain_text("model")
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()
    expect(page.locator("li.said-by-person").last).to_be_focused()
    page.keyboard.press("r")
    page.keyboard.type("by keyboard")
    page.keyboard.press("Control+Enter")
    assert "by keyboard" in bot.heard()
    expect(page.locator("#compose-text")).to_have_value("")


def test_panel_shows_the_run_the_person_and_the_rules(live, bot, model, open_window: OpenWindow):
    model.script(["pong"])
    person = start_chat(bot)
    page = open_window(language="en").page
    open_chat(page, live, person)
    stay(page)
    page.locator("li.said-by-person .words").last.click()
    panel = page.locator("#panel")
    expect(panel.locator("section").first).to_contain_text("answered")
    expect(panel.locator(".bars li").first).to_be_visible()
    panel.get_by_role("link", name="What counts here").click()
    expect(panel.locator(".counting")).to_contain_text("Chance (%)")
    page.locator("li.said-by-person header a").last.click()
    expect(panel.locator("dl.facts")).to_contain_text(str(person))
    page.click(".panel-close")
    expect(panel).to_be_hidden()
    assert stayed(page)


def test_act_tells_its_outcome_in_a_region_and_is_undone(live, bot, model, open_window: OpenWindow):
    model.script(["pong"])
    page = open_window(language="en").page
    open_chat(page, live, start_chat(bot))
    stay(page)
    page.fill("#compose-text", "half a word")
    page.click("#acts form[action$='take-over/'] button")
    told = page.locator("#outcome[role=status] li")
    expect(told).to_contain_text("You have taken over")
    expect(told).to_be_in_viewport(ratio=1)
    expect(page.locator("#taken-over")).to_be_visible()
    told.get_by_role("button", name="Undo").click()
    expect(told).to_contain_text("answers here again")
    expect(page.locator("#taken-over")).to_have_count(0)
    expect(page.locator("#compose-text")).to_have_value("half a word")
    assert stayed(page)


def test_what_was_written_stays_where_it_is_refused(live, bot, model, open_window: OpenWindow):
    model.script(["pong"])
    window = open_window(language="en")
    page = window.page
    open_chat(page, live, start_chat(bot))
    page.route("**/act/answer/", lambda route: route.abort(), times=1)
    page.fill("#compose-text", "once only")
    page.click("#compose button.default")
    expect(page.locator("#outcome li")).to_contain_text("did not answer")
    expect(page.locator("#compose-text")).to_have_value("once only")
    window.faults.clear()  # the browser notes that the request was broken off
    page.click("#compose button.default")
    expect(page.locator("#outcome li")).to_contain_text("On its way")
    assert bot.heard() == "once only"


def test_phone_shows_one_of_three_with_a_way_back(live, bot, model, open_window: OpenWindow):
    model.script(["pong"])
    start_chat(bot)
    page = open_window(language="en", width=PHONE).page
    page.goto("/admin/agent/chatsession/")
    listed, chat, panel = (page.locator(one) for one in (".bench-list", ".chat-box", "#panel"))
    expect(chat).to_have_count(0)
    page.locator("#result_list li a").first.click()
    expect(chat).to_be_visible()
    expect(listed).to_be_hidden()
    page.locator("a.why").last.click()
    expect(panel).to_be_visible()
    expect(chat).to_be_hidden()
    page.go_back()
    expect(chat).to_be_visible()
    expect(panel).to_be_hidden()
    page.click(".to-list")
    expect(listed).to_be_visible()


def test_without_scripts_all_is_a_link_or_a_form(live, bot, model, open_window: OpenWindow):
    model.script(["pong"])
    person = start_chat(bot)
    page = open_window(language="en", java_script_enabled=False).page
    page.goto("/admin/agent/chatsession/")
    page.fill("#searchbar", str(person))
    page.press("#searchbar", "Enter")
    page.locator("#result_list li a").first.click()
    page.locator("li.said-by-person a.why").click()
    expect(page.locator("#panel .bars")).to_be_visible()
    page.click("#acts form[action$='take-over/'] button")
    expect(page.locator("#outcome")).to_contain_text("You have taken over")
    page.locator("#outcome").get_by_role("button", name="Undo").click()
    expect(page.locator("#taken-over")).to_have_count(0)
    page.fill("#compose-text", "without a script")
    page.click("#compose button.default")
    assert bot.heard() == "without a script"


def multiply(live: LiveServer, session: int, count: int) -> None:
    """Have the only message of a chat said so often again, with a number."""
    with closing(sqlite3.connect(live.data_dir / "frostagent.sqlite3", timeout=10)) as database:
        found = database.execute("SELECT name FROM pragma_table_info('agent_message')")
        own = {"id", "text", "segments", "event_key", "message_id"}
        names = ", ".join(sorted({name for (name,) in found} - own))
        database.execute(
            f"WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted"
            f" WHERE n < {count}) INSERT INTO agent_message ({names}, text, segments, message_id)"
            f" SELECT {names}, 'many ' || n, '[]', '' FROM agent_message, counted"
            " WHERE session_id = ?",
            (session,),
        )
        database.commit()


def test_two_operators_in_one_chat_see_what_the_other_does(
    live, bot, model, open_window: OpenWindow
):
    model.script(["pong"])
    person = start_chat(bot)
    one, two = (open_window(language="en").page for _ in range(2))
    for page in (one, two):
        open_chat(page, live, person)
    take_over = "#acts form[action$='take-over/'] button"
    one.click(take_over)
    expect(two.locator("#taken-over")).to_be_visible()
    two.fill("#compose-text", "by the second")
    two.click("#compose button.default")
    assert bot.heard() == "by the second"
    expect(one.locator("li.said-by-bot").last).to_contain_text("by the second")
    one.locator("#outcome").get_by_role("button", name="Undo").click()
    expect(two.locator("#taken-over")).to_have_count(0)
    expect(two.locator(take_over)).to_be_visible()


def test_page_whose_socket_was_away_shows_all_that_was_said_meanwhile(
    live, bot, open_window: OpenWindow
):
    group, sockets, is_away = start_group(bot, "before"), [], False
    page = open_window(language="en").page

    def carry(socket: WebSocketRoute) -> None:
        if is_away:
            socket.close()
        else:
            sockets.append(socket)
            socket.connect_to_server()

    page.route_web_socket("**/ws/admin/live", carry)
    said = "SELECT session_id FROM agent_message m JOIN agent_chatsession s ON s.id = session_id"
    row = bot.wait(live.row(f"{said} WHERE s.peer_id = ?", str(group)))
    open_chat(page, live, group)
    stay(page)
    is_away = True
    sockets.pop().close()
    expect(page.locator("html[data-live-state='off']")).to_be_attached()
    multiply(live, row["session_id"], 130)
    is_away = False
    page.evaluate("window.dispatchEvent(new Event('online'))")
    shown = page.locator("ol.chat li[data-message]")
    expect(shown.last).to_contain_text("many 130")
    page.wait_for_function(UP, polling=50)
    numbers = [int(one.partition("many ")[2].split()[0]) for one in shown.all_inner_texts()[1:]]
    assert numbers == list(range(1, 131))
    assert stayed(page)


FITS = "document.documentElement.scrollWidth <= window.innerWidth"
#: Long, from right to left, and markup.
STRANGE = (
    "名" * 250 + "x" * 250,
    "\u202egnihtemos\u202c שלום עולם",
    "<img src=x onerror=window.isHurt=1>{{ 1 }}</li></main>",
)


def strange_chat(live: LiveServer, bot: Dialled, name: str) -> list[str]:
    """The pages of a group in which somebody of this name said it."""
    group = fresh_id()
    bot.say_group(group, ANN, name, sender={"user_id": ANN, "card": name, "nickname": name})
    bot.heard()
    (row,) = live.rows("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(group))
    chat = f"/admin/agent/chatsession/{row['id']}/change/"
    (message,) = live.rows(
        "SELECT max(id) AS id FROM agent_message WHERE session_id = ? AND direction = 'in'",
        row["id"],
    )
    return [f"{chat}?panel=m{message['id']}", f"{chat}?panel=chat"]


def test_strange_names_keep_to_their_place(live, bot, model, open_window: OpenWindow):
    model.script(["pong"] * len(STRANGE))
    places = [place for name in STRANGE for place in strange_chat(live, bot, name)]
    page = open_window(language="en").page
    for place in [*places, "/admin/", "/admin/spending/", "/admin/agent/run/"]:
        page.goto(place)
        expect(page.locator("main")).to_be_attached()
        for width in (1280, PHONE):
            page.set_viewport_size({"width": width, "height": 800})
            page.wait_for_function(FITS)
        assert not page.evaluate("window.isHurt"), place


UP = """() => {
    document.querySelector(".chat-box").scrollTop = -1e7;
    return document.querySelector(".edge.begin") !== null;
}"""
DOWN = """() => {
    document.querySelector(".chat-box").scrollTop = 0;
    return document.querySelector(".edge.newer") === null;
}"""


def test_chat_read_to_its_beginning_and_back_does_not_fill_the_page(
    live, bot, open_window: OpenWindow
):
    group = start_group(bot, "first of all")
    said = "SELECT session_id FROM agent_message m JOIN agent_chatsession s ON s.id = session_id"
    row = bot.wait(live.row(f"{said} WHERE s.peer_id = ?", str(group)))
    multiply(live, row["session_id"], 300)
    page = open_window(language="en").page
    open_chat(page, live, group)
    shown = page.locator("ol.chat li[data-message]")
    page.wait_for_function(UP, polling=50)
    expect(page.get_by_text("first of all", exact=True).first).to_be_attached()
    assert shown.count() <= 250
    page.wait_for_function(DOWN, polling=50)
    expect(shown.last).to_contain_text("many 300")
    assert shown.count() <= 250


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_acts_fit_beside_an_open_panel(live, bot, model, open_window: OpenWindow, language: str):
    model.script(["pong"])
    group = fresh_id()
    bot.say_group(group, ANN, "ping", group_name="A group with quite a long name")
    bot.heard()
    page = open_window(language=language).page
    open_chat(page, live, group)
    page.click("#acts a[data-panel]")
    expect(page.locator("#panel")).to_be_visible()
    acts = page.locator("#acts > .button, #acts > form > :is(.button, select), #acts summary")
    lines = acts.evaluate_all("acts => acts.map(one => one.getBoundingClientRect().bottom)")
    assert len(lines) == 6
    assert max(lines) - min(lines) < 3
    cut = acts.evaluate_all("acts => acts.filter(one => one.scrollWidth > one.clientWidth).length")
    assert cut == 0
    assert page.locator("#acts select").first.evaluate(
        """one => {
            const shown = one.clientWidth;
            one.replaceChildren(one.selectedOptions[0].cloneNode(true));
            one.style.width = one.style.fieldSizing = "auto";
            return shown >= one.clientWidth;
        }"""
    )

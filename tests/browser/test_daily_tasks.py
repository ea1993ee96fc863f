"""What operators do every day, from the signed-in first page: none of it takes more than three
clicks. An entry of a list or a chooser counts, typing does not; Ctrl+K, a name and Enter count as
one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.window import Window
from tests.demo import story as stories
from tests.demo.rows import NEW_SERVER
from tests.demo.story import GROUPS, PEOPLE, Story, say, sized, told, wait
from tests.demo.words import ENGLISH
from tests.fake_onebot import failed
from tests.scripted_model import call, held, says
from tests.security.people import run

pytestmark = pytest.mark.slow

MOST = 3
RIDE, CATS = ENGLISH.groups
PERSON = ENGLISH.people[1]
CALL = "SELECT id FROM agent_toolcall WHERE state = 'running' AND tool_name = 'wait'"


@dataclass
class Desk:
    """An operator in front of the first page, whose clicks are counted."""

    page: Page
    story: Story
    clicks: int = 0

    def click(self, what: Locator | str) -> None:
        self.clicks += 1
        (self.page.locator(what) if isinstance(what, str) else what).first.click()

    def go(self, name: str) -> None:
        """By an entry of the navigation."""
        self.click(self.page.locator("#nav-sidebar").get_by_role("link", name=name, exact=True))

    def find(self, words: str, kind: str) -> None:
        """By Ctrl+K, the words of something, and Enter at the first that is of this kind."""
        self.clicks += 1
        before = self.page.url
        self.page.keyboard.press("Control+k")
        self.page.get_by_role("dialog").get_by_role("combobox").fill(words)
        wanted = self.page.locator("#search-palette [role=option]", has_text=words)
        wanted = wanted.filter(has=self.page.get_by_text(kind, exact=True)).first
        expect(wanted).to_be_visible()
        while wanted.get_attribute("aria-selected") != "true":
            self.page.keyboard.press("ArrowDown")
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(lambda url: url != before)

    def choose(self, chooser: str, value: str) -> None:
        """An entry of a chooser."""
        self.clicks += 1
        self.page.select_option(chooser, value)

    def button(self, name: str) -> None:
        self.click(self.page.get_by_role("button", name=name))

    def link(self, name: str) -> None:
        self.click(self.page.get_by_role("link", name=name))

    def sees(self, words: str, where: str = "#content") -> None:
        expect(self.page.locator(where).first).to_contain_text(words)

    def is_told(self, words: str) -> None:
        """What became of an act."""
        expect(self.page.locator(".messagelist li").first).to_contain_text(words)


def answer_refused(story: Story) -> None:
    """An answer that the client does not take."""
    story.bot.bot.answer_with(lambda _action: failed(1200, "too fast"))
    story.script.append(sized(says("It does not arrive")))
    say(story, story.bot, GROUPS[0], PEOPLE[1], "Can you hear me?")
    wait(story, "SELECT id FROM agent_message WHERE state = 'failed' AND direction = 'out'")
    story.bot.bot.answer_again()


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stories, "THOUGHTS", (0.0,))
        with told(ENGLISH) as made:
            answer_refused(made)
            run(made.server, NEW_SERVER, None)
            yield made


@pytest.fixture(scope="module")
def window(chromium: Browser, story: Story) -> Iterator[Window]:
    made = Window(chromium, story.server, language="en")
    made.enter()
    yield made
    made.close()


@pytest.fixture
def desk(window: Window, story: Story) -> Desk:
    window.page.goto("/admin/")
    return Desk(window.page, story)


# --- The tasks ------------------------------------------------------------------------


def why_silent(desk: Desk) -> None:
    desk.find(RIDE, "chat")
    desk.sees("not addressed", "li.said-by-person .reason")


def what_the_model_saw(desk: Desk) -> None:
    desk.go("Runs")
    desk.click(desk.page.locator("tbody tr", has_text="Sunny on Sunday").locator("th a"))
    desk.click("#run-panel .context summary")
    desk.sees("You are Frosty", "#run-panel .context")


def tool_off(desk: Desk) -> None:
    desk.go("Tools")
    switch = "tr:has-text('recall') .field-enabled button, tr:has-text('query_memory') "
    desk.click(f"{switch}.field-enabled button")
    expect(desk.page.locator("tr.is-off", has_text="query_memory")).to_be_visible()


def mock_value(desk: Desk) -> None:
    desk.find("get_weather", "tool")
    desk.page.fill("#id_mock_value", "{city}: snow")
    desk.click("[name=_save]")
    desk.is_told("get_weather")


def approve(desk: Desk) -> None:
    desk.story.script += [sized(call("book_table", place="x", people=2)), sized(says("Ok"))]
    say(desk.story, desk.story.bot, GROUPS[0], PEOPLE[2], "Book a table")
    wait(desk.story, "SELECT id FROM agent_approval WHERE state = 'waiting'")
    desk.story.script.append(sized(says("Booked, then")))
    desk.button("Approve")
    wait(desk.story, stories.DELIVERED, "Booked, then")


def add_mcp_server(desk: Desk) -> None:
    desk.find("Add MCP server", "act")
    desk.page.fill("#id_name", "Maps")
    desk.choose("#id_transport", "streamable_http")
    desk.page.fill("#id_url", "https://maps.example.com/mcp")
    desk.click("[name=_save]")
    desk.is_told("Maps")


def figures_cost_and_clients(desk: Desk) -> None:
    desk.sees("Received today", ".tiles")
    expect(desk.page.locator(".tiles strong").first).to_be_in_viewport()
    desk.sees("Spent today", ".tiles")
    desk.sees("not connected", ".accounts")


def messages_of_a_person(desk: Desk) -> None:
    desk.find(PERSON, "person")
    desk.click(desk.page.locator("dl.facts a").first)
    desk.sees("Took this at the lake", "#result_list")


def persona_of_a_chat(desk: Desk) -> None:
    desk.find(CATS, "chat")
    desk.link("This chat")
    desk.click("form[action$='act/persona/'] button:not([value=''])")
    desk.is_told("answers here")


def model_of_an_endpoint(desk: Desk) -> None:
    desk.find("deepseek-flash", "endpoint")
    desk.page.fill("#id_model", "deepseek-pro")
    desk.page.fill("#id_keys", "k-1")
    desk.click("[name=_save]")
    desk.is_told("deepseek-flash")


def export(desk: Desk) -> None:
    desk.find(RIDE, "chat")
    desk.link("This chat")
    with desk.page.expect_download() as file:
        desk.button("Markdown, to read")
    assert file.value.suggested_filename.endswith(".md")


def mute_a_group(desk: Desk) -> None:
    desk.find(CATS, "chat")
    desk.button("Silence")
    desk.is_told("Silenced this chat")
    desk.page.get_by_role("button", name="Undo").click()
    desk.is_told("Let this chat speak")


def resend(desk: Desk) -> None:
    desk.find(RIDE, "chat")
    desk.button("Send again")
    wait(desk.story, "SELECT id FROM agent_message WHERE resent_from_id IS NOT NULL")


def who_spends_most(desk: Desk) -> None:
    desk.go("Spending")
    desk.link("7 days")
    desk.sees("Lin")


def why_so_slow(desk: Desk) -> None:
    desk.go("Runs")
    desk.click("#result_list tbody th a")
    desk.sees("model", "#run-panel .waterfall")


def answer_only_me(desk: Desk) -> None:
    desk.find(RIDE, "chat")
    desk.click("#only summary")
    desk.button("1 hour")
    desk.sees("Only Lin is answered here", "#only-one")
    desk.page.get_by_role("button", name="Answer everybody again").click()
    expect(desk.page.locator("#only-one")).to_have_count(0)


def answer_only_who_wrote(desk: Desk) -> None:
    desk.find(RIDE, "chat")
    desk.click("li.said-by-person a.why")
    desk.button("Answer only this person")
    expect(desk.page.locator("#only-one")).to_be_visible()
    desk.page.get_by_role("button", name="Answer everybody again").click()
    expect(desk.page.locator("#only-one")).to_have_count(0)


def model_of_a_group(desk: Desk) -> None:
    desk.find(CATS, "chat")
    desk.link("This chat")
    desk.click("form[action$='act/model/'] button:not([value=''])")
    desk.is_told("is asked first here")


def undo_a_change(desk: Desk) -> None:
    desk.find("Changes", "page")
    desk.click(desk.page.locator("#result_list a", has_text="get_weather"))
    desk.button("Take back")
    desk.is_told("back")


def what_it_knows_of_a_person(desk: Desk) -> None:
    desk.find(PERSON, "person")
    desk.click(desk.page.locator("dl.facts a[href*='/note/']"))
    expect(desk.page.locator("#content h1").first).to_be_visible()


def stop_one_answer(desk: Desk) -> None:
    desk.story.script.append(held("too late"))
    say(desk.story, desk.story.bot, GROUPS[0], PEOPLE[2], "Tell me a long story")
    wait(desk.story, "SELECT id FROM agent_message WHERE state = 'running'")
    desk.find(RIDE, "chat")
    desk.button("Cancel the answer")
    desk.is_told("cancelled")
    desk.story.model.release()


def stop_one_call(desk: Desk) -> None:
    desk.story.script += [
        sized(call("wait", seconds=60)),
        sized(says("I waited no longer")),
    ]
    say(desk.story, desk.story.bot, GROUPS[0], PEOPLE[2], "Wait a minute")
    wait(desk.story, CALL)
    desk.find(RIDE, "chat")
    desk.click(desk.page.locator("li.said-by-person a.why").last)
    desk.click("#panel button[name=call]")
    desk.is_told("its run goes on")
    expect(desk.page.locator("li.said-by-bot").last).to_contain_text("I waited no longer")


def person_never_answered(desk: Desk) -> None:
    desk.find("eople not answered", "setting")
    desk.page.fill("#id_name", "Nobody of these")
    desk.page.fill("#id_denied_people", "20002")
    desk.click("[name=_save]")
    desk.is_told("was added")


def answer_by_hand(desk: Desk) -> None:
    desk.find(RIDE, "chat")
    desk.page.fill("#compose-text", "By hand")
    desk.button("Send as the bot")
    desk.is_told("On its way")


def let_all_use_a_server(desk: Desk) -> None:
    desk.go("Tools")
    source = desk.page.locator("tr.source", has_text="Harbour")
    desk.click(source.locator(".open-all"))
    desk.click("#content form button.default, #content form [type=submit]")
    expect(source.locator(".open-all")).to_have_count(0)


def plugin_on(desk: Desk) -> None:
    desk.find("hello", "plugin")
    desk.click("#id_enabled")
    desk.click("[name=_save]")
    expect(desk.page.locator("#result_list .badge").first).not_to_have_text("disabled")


def ask_again_with_another_model(desk: Desk) -> None:
    desk.find(RIDE, "chat")
    asked = desk.page.locator("li.said-by-person", has_text="Took this at the lake")
    asked.hover()
    desk.click(asked.get_by_role("link", name="Ask again without sending"))
    desk.story.script.append(sized(says("Another answer")))
    desk.click("button[name=endpoint]")
    desk.sees("Asked again")


def give_a_group_to_a_co_admin(desk: Desk) -> None:
    desk.find("Add an admin account", "act")
    desk.page.fill("#id_username", "moderator")
    for field in ("#id_password1", "#id_password2"):
        desk.page.fill(field, "several-words-that-nobody-guesses")
    desk.click("[name=role][value=chat_owner]")
    desk.page.locator("#id_chats").press_sequentially("Court")
    desk.click(desk.page.locator(".search-list [role=option]", has_text=CATS))
    desk.click("[name=_save]")
    desk.is_told("moderator")


Task = Callable[[Desk], None]
TASKS: tuple[Task, ...] = (
    *(why_silent, what_the_model_saw, tool_off, mock_value, approve, add_mcp_server),
    *(figures_cost_and_clients, messages_of_a_person, persona_of_a_chat, model_of_an_endpoint),
    *(export, mute_a_group, resend, who_spends_most, why_so_slow),
    *(answer_only_me, answer_only_who_wrote, model_of_a_group, undo_a_change),
    *(what_it_knows_of_a_person, stop_one_answer, stop_one_call, person_never_answered),
    *(answer_by_hand, let_all_use_a_server, plugin_on, ask_again_with_another_model),
    give_a_group_to_a_co_admin,
)
#: What may take more.
MORE: dict[Task, int] = {give_a_group_to_a_co_admin: 4}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
def test_it_takes_three_clicks_at_most(task: Task, desk: Desk, window: Window):
    task(desk)
    assert desk.clicks <= MORE.get(task, MOST)
    assert window.faults == []

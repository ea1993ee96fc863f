"""Make the pictures of the documents: ``make pictures``. Pages of the story in both languages,
light and dark."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.browser.window import Window, find_browser, open_browser
from tests.demo.story import GROUPS, Story, sized, told
from tests.demo.words import CHINESE, ENGLISH
from tests.scripted_model import call, says

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
SCHEMES = ("light", "dark")
#: Bytes of a picture at most, and the numbers of colours that are tried until it fits.
LIMIT = 150_000
COLOURS = (256, 128, 64)


def dashboard(page: Page, _story: Story) -> None:
    page.goto("/admin/")
    expect(page.locator("canvas").first).to_be_visible()


def chat(page: Page, story: Story) -> None:
    peer = f"SELECT id FROM agent_chatsession WHERE peer_id = '{GROUPS[0]}'"
    page.goto(story.page(peer, "/admin/agent/chatsession/{}/change/"))
    expect(page.locator(".live-on")).to_be_visible()
    page.locator("li.said-by-person a.why").nth(2).click()
    page.wait_for_load_state("networkidle")
    shown = page.locator("li.said-by-person").nth(2)
    shown.evaluate("bubble => bubble.scrollIntoView({ block: 'start' })")
    page.evaluate("window.scrollTo(0, 0)")


def run(page: Page, story: Story) -> None:
    call = "SELECT min(run_id) FROM agent_toolcall WHERE tool_name = 'get_weather'"
    page.goto(story.page(call, "/admin/agent/run/{}/change/"))


def tool(page: Page, story: Story) -> None:
    row = "SELECT id FROM tools_toolconfig WHERE name = 'get_weather'"
    page.goto(story.page(row, "/admin/tools/toolconfig/{}/change/"))
    page.locator("#id_mock_value").evaluate("box => box.scrollIntoView({ block: 'start' })")
    page.evaluate("window.scrollBy(0, -120)")


def start(page: Page, _story: Story) -> None:
    page.goto("/admin/start/")


def playground(page: Page, story: Story) -> None:
    question, answer = story.words.played
    story.script.extend([sized(call("get_weather", city="北京")), sized(says(answer))])
    page.goto("/admin/playground/")
    expect(page.locator("#play-status[data-state=connected]")).to_be_visible()
    page.click("[data-chat='private:1001']")
    page.fill("#play-text", question)
    page.press("#play-text", "Enter")
    expect(page.locator("#play-run[data-active='0'] .play-sent")).to_be_visible()
    page.locator("#playground").scroll_into_view_if_needed()


#: With the heights of their pictures.
SCENES: dict[Callable[[Page, Story], None], int] = {
    dashboard: 1280,
    chat: 1040,
    run: 900,
    tool: 900,
    start: 900,
    playground: 800,
}


def shrink(picture: bytes) -> bytes:
    """``picture`` with as few colours as it takes to fit."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    for colours in COLOURS:
        buffer = io.BytesIO()
        image.quantize(colours, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
        if buffer.tell() <= LIMIT:
            return buffer.getvalue()
    raise ValueError(f"too large with {COLOURS[-1]} colours")


def take(browser: Browser, story: Story) -> None:
    language = "zh-CN" if story.words is CHINESE else "en"
    for scheme in SCHEMES:
        window = Window(browser, story.server, language=language, scheme=scheme)
        window.sign_in()
        for scene, height in SCENES.items():
            window.page.set_viewport_size({"width": 1280, "height": height})
            scene(window.page, story)
            window.page.wait_for_timeout(500)  # what moves has come to rest
            file = FOLDER / f"{scene.__name__}-{language[:2]}-{scheme}.png"
            file.write_bytes(shrink(window.page.screenshot()))
        window.close()
        if window.faults:
            raise RuntimeError(f"faults in the pages: {window.faults}")


def main() -> None:
    path = find_browser() or sys.exit("No Chromium or Chrome on this machine.")
    FOLDER.mkdir(exist_ok=True)
    with open_browser(path) as browser:
        for words in (CHINESE, ENGLISH):
            with told(words) as story:
                take(browser, story)


if __name__ == "__main__":
    main()

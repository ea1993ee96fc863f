"""The five pages of every day as axe-core sees them: what somebody cannot read, reach or name."""

import pytest

from tests.browser.conftest import OpenWindow
from tests.browser.dialled import dial
from tests.browser.test_chat_page import open_chat, start_chat
from tests.browser.window import Window
from tests.environment import PROJECT
from tests.reference_servers import installed_node

pytestmark = pytest.mark.slow

FOLDER = PROJECT / "tests" / "browser"
AXE = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
#: Ten findings at most of the page as it is looked at, each with the element. Colours that change
#: slowly have changed first.
FINDINGS = """async () => {
    const changes = document.getAnimations().filter((one) => one instanceof CSSTransition);
    changes.forEach((one) => one.finish());
    const found = await axe.run(document, { resultTypes: ["violations"] });
    const say = (node) => `${node.html.slice(0, 200)} ${node.any[0]?.message}`;
    const nodes = ({ id, nodes }) => nodes.map((node) => `${id}: ${say(node)}`);
    return found.violations.flatMap(nodes).slice(0, 10);
}"""
LOOKS = [("light", 390), ("light", 1280), ("dark", 1280), ("dark", 390)]


def test_axe_finds_nothing_on_the_five_pages(live, model, open_window: OpenWindow):
    installed_node(FOLDER)
    model.script(["pong"])
    window = open_window(language="en")
    page = window.page
    page.add_init_script(path=AXE)
    with dial(live) as bot:
        open_chat(page, live, start_chat(bot))
    found = look(window, "the chat")
    for link in ("/admin/", "/admin/agent/run/", "/admin/tools/toolconfig/", "/admin/spending/"):
        page.goto(link)
        found |= look(window, link)
    assert not found, "\n".join(map(str, found.items()))


def look(window: Window, name: str) -> dict[str, list[str]]:
    """What axe finds on the page as it is, by look."""
    found = {}
    for scheme, width in LOOKS:
        window.look(scheme, width)
        if lines := window.page.evaluate(FINDINGS):
            found[f"{name} {scheme} {width}"] = lines
    return found

"""Who owns one chat sees that chat alone, in pages and on the wire, while others talk as well."""

import json

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenWindow
from tests.browser.dialled import Dialled, dial
from tests.browser.window import Window
from tests.cast import fresh_id
from tests.live_server import LiveServer
from tests.security.people import PASSWORD, accounts, run

pytestmark = pytest.mark.slow

GRANT = """
import json, sys, django
django.setup()
from django.contrib.auth.models import User
from agent.models import ChatGrant
given = json.load(sys.stdin)
ChatGrant.objects.create(
    user=User.objects.get(username=given["name"]), account=given["account"], chat=given["chat"]
)
"""
#: Whom three of the chats belong to, and who may besides fill in a form that names chats.
GRANT_THREE = """
import json, sys, django
django.setup()
from django.contrib.auth.models import Permission, User
from agent.models import ChatGrant
given = json.load(sys.stdin)
user = User.objects.get(username=given["name"])
user.user_permissions.add(Permission.objects.get(codename="add_note"))
for chat in given["chats"]:
    ChatGrant.objects.create(user=user, account=given["account"], chat=f"group:{chat}")
"""
SECRET = "the surprise party"
LIVE = ("/admin/", "/admin/agent/chatsession/", "/admin/agent/run/", "/admin/agent/message/")


def listen(page: Page) -> list[str]:
    """What arrives on WebSockets of ``page`` from now on."""
    frames: list[str] = []
    page.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda frame: frames.append(str(frame))),
    )
    return frames


@pytest.fixture
def owned(live: LiveServer) -> int:
    """A group whose owner may sign in, and nothing else was given to."""
    group = fresh_id()
    accounts(live, **{f"owner-{group}": "chat_owner"})
    return group


def test_owner_of_a_chat_sees_nothing_of_others(live, owned, open_window: OpenWindow, model):
    model.answer_with(lambda request: f"answered: {request.last_text[-20:]}")
    other = fresh_id()
    with dial(live) as bot:
        run(
            live,
            GRANT,
            {"name": f"owner-{owned}", "account": bot.account, "chat": f"group:{owned}"},
        )
        bot.say_group(owned, 20001, "for everybody")
        bot.say_group(other, 20002, SECRET)
        bot.heard(), bot.heard()
        window = open_window(signed_in=False)
        page, frames = window.page, listen(window.page)
        window.sign_in(f"owner-{owned}", PASSWORD)
        page.goto("/admin/agent/chatsession/")
        expect(page.locator("#result_list > li[id]")).to_have_count(1)
        page.click(f"#result_list a:has-text('{owned}')")
        expect(page.locator(".live-on")).to_be_visible()
        bot.say_group(other, 20002, f"{SECRET} again")
        bot.say_group(owned, 20001, "is it live?")
        expect(page.locator("li.said-by-person").last).to_contain_text("is it live?")
        expect(page.locator("li.said-by-bot").last).to_contain_text("is it live?")
        bot.heard(), bot.heard()
    assert_unaware(window, other, frames)


def assert_unaware(window: Window, other: int, frames: list[str]) -> None:
    """No page that follows chats, and no frame, has words or ids of the other chat. All pages are
    looked at in tests/security/test_own_chats.py."""
    (row,) = window.server.rows("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(other))
    assert frames
    assert not any(f"session:{row['id']}" in frame for frame in frames)
    for link in ("", *LIVE):
        window.page.goto(link or window.page.url)
        shown = window.page.content() + json.dumps(frames)
        assert SECRET not in shown, link
        assert str(other) not in shown, link
    window.page.goto(f"/admin/agent/chatsession/{row['id']}/change/")
    expect(window.page).to_have_url(f"{window.server.url}/admin/")


def test_owner_of_three_chats_finds_and_counts_nothing_else(
    live, owned, open_window: OpenWindow, model
):
    model.answer_with(lambda request: "pong")
    own, others = [owned, fresh_id(), fresh_id()], [fresh_id() for _ in range(3)]
    with dial(live) as bot:
        name = f"owner-{owned}"
        run(live, GRANT_THREE, {"name": name, "account": bot.account, "chats": own})
        for group in [*own, *others]:
            greet(bot, group, owned)
        window = open_window(signed_in=False, language="en")
        page, frames = window.page, listen(window.page)
        window.sign_in(name, PASSWORD)
        page.goto("/admin/")
        tiles = page.locator("dl.tiles > div")
        expect(tiles.filter(has_text="Received today").locator("strong")).to_have_text("3")
        expect(tiles.filter(has_text="Answered today").locator("strong")).to_have_text("3")
        greet(bot, others[0], owned)
        greet(bot, own[0], owned)
        expect(tiles.filter(has_text="Received today").locator("strong")).to_have_text("4")
    page.keyboard.press("Control+k")
    for words in (f"Hut{owned}", f"Ann{owned}"):
        page.get_by_role("dialog").get_by_role("combobox").fill(words)
        assert_found(page, "#search-palette", words, own)
    page.get_by_role("dialog").get_by_role("combobox").fill(str(others[0]))
    none = page.locator("#search-palette [role=option]").first
    expect(none).to_have_attribute("aria-disabled", "true")
    page.goto("/admin/agent/note/add/")
    page.locator("#id_chat").press_sequentially(f"Hut{owned}")
    assert_found(page, ".field-chat", f"Hut{owned}", own)
    rows = live.rows("SELECT id, peer_id FROM agent_chatsession")
    hidden = {f"session:{row['id']}" for row in rows if row["peer_id"] in map(str, others)}
    assert frames
    assert not any(f'"{topic}"' in frame for frame in frames for topic in hidden)
    assert not any(str(other) in frame for frame in frames for other in others)


def greet(bot: Dialled, group: int, mark: int) -> None:
    """Somebody says hello in ``group`` and is answered; both have ``mark`` in their names."""
    sender = {"user_id": group, "nickname": f"Ann{mark} {group}", "card": ""}
    bot.say_group(group, group, "hello", sender=sender, group_name=f"Hut{mark} {group}")
    bot.heard()


def assert_found(page: Page, scope: str, words: str, groups: list[int]) -> None:
    """What is offered in ``scope`` are the ``words`` of ``groups`` alone."""
    offered = page.locator(f"{scope} [role=option]")
    for group in groups:
        expect(offered.filter(has_text=f"{words} {group}")).to_have_count(1)
    expect(offered).to_have_count(len(groups))

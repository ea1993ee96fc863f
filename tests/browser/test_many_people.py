"""Fields that are filled in by name while tens of thousands of people are on record."""

import sqlite3
from contextlib import closing

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenWindow
from tests.browser.dialled import dial
from tests.cast import fresh_id
from tests.live_server import LiveServer

pytestmark = pytest.mark.slow

PEOPLE = 50_000
#: What an answer may take on a busy machine; it reads few rows of the many.
SOON_MS = 3_000
CROWD = """
WITH RECURSIVE counted(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n < {most})
INSERT INTO {table} ({names}, {changed}) SELECT {names}, {values} FROM {table}, counted
WHERE {table}.id = (SELECT max(id) FROM {table})
"""
SLOWEST = """() => Math.max(...performance.getEntriesByType("resource")
    .filter((one) => one.name.includes("/search/")).map((one) => one.duration))"""


def crowd(database: sqlite3.Connection, table: str, most: int, **changed: str) -> None:
    """Repeat the newest row of ``table`` that often, with what an expression says of each ``n``."""
    found = database.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
    names = ", ".join({name for (name,) in found} - {"id", "event_key", *changed})
    values = ", ".join(changed.values())
    database.execute(
        CROWD.format(
            table=table, most=most - 1, names=names, changed=", ".join(changed), values=values
        )
    )


@pytest.fixture
def crowded(start_server, model) -> LiveServer:
    """A server with 50,000 people in 3,000 groups."""
    server: LiveServer = start_server()
    with dial(server) as bot:
        bot.say_group(fresh_id(), fresh_id(), "hello", mention=False)
        bot.wait(server.row("SELECT id FROM agent_message"))
    with closing(sqlite3.connect(server.data_dir / "frostagent.sqlite3", timeout=10)) as database:
        first = "(SELECT min(id) FROM agent_chatsession)"
        crowd(database, "agent_chatsession", 3_000, peer_id="'7' || n", title="'Garden ' || n")
        crowd(
            database, "agent_message", PEOPLE, session_id=f"{first} + 1 + n % 3000",
            sender_id="printf('2%05d', n)", sender_name="printf('Person %05d', n)",
        )  # fmt: skip
        database.commit()
    return server


def choose(page: Page, typed: str) -> None:
    """Fill the people of a form with the one that ``typed`` finds alone."""
    field, offered = page.locator("#id_denied_people"), page.locator(".field-denied_people")
    field.press_sequentially(typed)
    expect(offered.locator("[role=option]")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")


def test_one_of_many_people_is_found_soon_by_name_and_by_number(
    crowded: LiveServer, open_window: OpenWindow
):
    page = open_window(crowded, language="en").page
    page.goto("/admin/agent/manners/add/")
    page.locator("details:has(#id_denied_people) > summary").click()
    choose(page, "person 31234")
    choose(page, "\n204321")
    expect(page.locator("#id_denied_people")).to_have_value("231234\n204321")
    chosen = page.locator(".field-denied_people .chosen")
    expect(chosen).to_contain_text("Person 31234")
    expect(chosen).to_contain_text("Person 04321")
    page.locator("#id_chats").press_sequentially("garden 29")
    expect(page.locator(".field-chats [role=option]").first).to_contain_text("Garden 29")
    page.keyboard.press("Control+k")
    page.keyboard.type("person 49999")
    expect(page.locator("#search-palette [role=option]").first).to_contain_text("Person 49999")
    assert page.evaluate(SLOWEST) < SOON_MS

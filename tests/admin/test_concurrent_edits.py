"""Two operators who edit one row."""

import re
from typing import Any

from django.test import Client

from onebot.models import Bot
from tests.admin.record import page


def opened(browser: Client, bot: Bot) -> dict[str, Any]:
    """What the page sends back when nothing was typed."""
    text = page(browser, address(bot))
    seen = re.search(r'name="row_seen" value="(\w+)"', text)
    assert seen
    form = {"owners": bot.owners, "hear_voice": "on", "read_files": "on", "answered": "everybody"}
    return form | {"row_seen": seen[1]}


def address(bot: Bot) -> str:
    return f"/admin/onebot/bot/{bot.pk}/change/"


def test_the_second_save_is_told_what_the_first_changed_and_keeps_what_was_typed(browser: Client):
    bot = Bot.objects.create(self_id="10001", owners="1")
    first, second = opened(browser, bot), opened(browser, bot)
    assert browser.post(address(bot), first | {"owners": "111"}).status_code == 302
    refused = browser.post(address(bot), second | {"owners": "222"})
    text = refused.content.decode()
    assert "Somebody else has saved this row" in text
    assert "Owners: 1 → 111" in text
    assert "222</textarea>" in text or 'value="222"' in text
    bot.refresh_from_db()
    assert bot.owners == "111"


def test_saving_again_after_the_warning_puts_it_in_place(browser: Client):
    bot = Bot.objects.create(self_id="10001", owners="1")
    first, second = opened(browser, bot), opened(browser, bot)
    browser.post(address(bot), first | {"owners": "111"})
    text = browser.post(address(bot), second | {"owners": "222"}).content.decode()
    seen = re.search(r'name="row_seen" value="(\w+)"', text)
    assert seen
    again = second | {"owners": "222", "row_seen": seen[1]}
    assert browser.post(address(bot), again).status_code == 302
    assert Bot.objects.get().owners == "222"


def test_what_the_program_writes_meanwhile_is_no_conflict(browser: Client):
    bot = Bot.objects.create(self_id="10001", owners="1")
    form = opened(browser, bot)
    Bot.objects.update(online=True)
    assert browser.post(address(bot), form | {"owners": "3"}).status_code == 302
    assert Bot.objects.get().owners == "3"

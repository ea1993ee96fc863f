"""Every row that operators edit: who changed what, and the way back; no key is in the table or on
a page."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client

from agent.models import ChatSession, Note, Persona, Sticker
from onebot.models import Bot
from tests.admin import http_forms, mcp, plugins
from tests.admin.record import chat, logged_in, page
from tests.agent.notes import ANN_IN_GROUP, noted
from tools.models import HttpTool, McpServer, Plugin, Secret, ToolConfigChange
from tools.models.row_history import record_changes

KEY = "sk-never-shown-42"
HISTORY = "/admin/tools/toolconfigchange/"


def newest(client: Client, address: str) -> ToolConfigChange:
    """The newest change, which the page at ``address`` shows with its author."""
    change = ToolConfigChange.objects.latest("id")
    assert change.author is not None
    assert f'/revert/{change.pk}/"' in page(client, address)
    return change


def revert(client: Client, row: Any) -> str:
    meta, change = row._meta, ToolConfigChange.objects.latest("id")
    address = f"/admin/{meta.app_label}/{meta.model_name}/{row.pk}/revert/{change.pk}/"
    text = client.post(address, follow=True).content.decode()
    row.refresh_from_db()
    return text


def table() -> str:
    """All that the table of changes holds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM tools_toolconfigchange")
        return json.dumps(cursor.fetchall(), default=str)


def test_a_bots_lists_are_taken_back_while_it_goes_on_living(browser: Client):
    bot = Bot.objects.create(self_id="10001", owners="1")
    form = {"owners": "1, 2", "hear_voice": "on", "read_files": "on", "answered": "everybody"}
    assert browser.post(f"/admin/onebot/bot/{bot.pk}/change/", form).status_code == 302
    assert newest(browser, f"/admin/onebot/bot/{bot.pk}/change/").before == {"owners": "1"}
    Bot.objects.update(online=True)
    assert "Taken back: Owners." in revert(browser, bot)
    assert (bot.owners, bot.online) == ("1", True)


def test_of_a_bots_token_only_that_it_changed_is_kept(browser: Client):
    bot = Bot.objects.create(self_id="10001")
    form = {
        "hear_voice": "on",
        "read_files": "on",
        "answered": "everybody",
        "token_change": "type",
        "token_typed": KEY,
    }
    assert browser.post(f"/admin/onebot/bot/{bot.pk}/change/", form).status_code == 302
    bot.refresh_from_db()
    text = page(browser, f"/admin/onebot/bot/{bot.pk}/change/")
    assert (
        'class="field">Access token</span> <del class="words">-</del> → <ins '
        'class="words">••••</ins>' in text
    )
    assert "/revert/" not in text
    assert KEY not in table()
    assert bot.token_hash not in table()


def test_a_servers_limits_are_taken_back_and_its_keys_are_named_alone(settings: Any, db: None):
    settings.MCP_ALLOWED_COMMANDS = []
    chief = mcp.warden()
    server = mcp.address(headers={"Authorization": f"Bearer {KEY}", "X-Other": KEY})
    address = f"{mcp.SERVERS}{server.pk}/change/"
    form = mcp.form(headers="Authorization: new\r\nX-Other: ••••", call_seconds=9)
    assert chief.post(address, form).status_code == 302
    change = newest(chief, address)
    assert change.before == {"call_seconds": 60, "headers": {"Authorization": "••••"}}
    assert "Taken back: Time limit of calls (seconds)." in revert(chief, server)
    assert (server.call_seconds, server.headers) == (60, {"Authorization": "new", "X-Other": KEY})
    assert KEY not in table()


def test_an_http_tools_request_goes_back_as_a_whole_and_no_key_is_shown(browser: Client):
    headers = http_forms.entries("headers", Authorization=f"Bearer {KEY}")
    assert http_forms.save(browser, **headers) == ""
    tool = HttpTool.objects.get()
    address = f"{http_forms.TOOLS}{tool.pk}/change/"
    assert http_forms.save(browser, tool, url="https://other.example/", timeout_seconds=7) == ""
    change = newest(browser, address)
    assert "https://other.example" in page(browser, address)
    assert change.before["timeout_seconds"] == 30
    assert KEY not in page(browser, address).partition('id="changes"')[2]
    assert KEY not in table()
    assert "Taken back" in revert(browser, tool)
    assert tool.headers == {"Authorization": f"Bearer {KEY}"}
    assert (tool.url, tool.timeout_seconds) == ("https://api.example.com/weather", 30)


def test_an_old_key_of_an_http_tool_never_goes_to_a_new_place(browser: Client):
    assert http_forms.save(browser, **http_forms.entries("headers", Authorization=KEY)) == ""
    tool = HttpTool.objects.get()
    assert http_forms.save(browser, tool) == ""  # without the key
    removed = ToolConfigChange.objects.latest("id")
    assert http_forms.save(browser, tool, url="https://evil.example/") == ""
    browser.post(f"{http_forms.TOOLS}{tool.pk}/revert/{removed.pk}/")
    tool.refresh_from_db()
    assert (tool.url, tool.headers) == ("https://api.example.com/weather", {"Authorization": KEY})


def test_http_tools_that_are_switched_together_each_have_their_change(browser: Client):
    tools = [
        HttpTool.objects.create(name=name, url="https://api.example.com/") for name in ("a", "b")
    ]
    browser.post(
        http_forms.TOOLS, {"action": "disable", "_selected_action": [tool.pk for tool in tools]}
    )
    assert [change.after for change in ToolConfigChange.objects.all()] == [{"enabled": False}] * 2


def test_of_a_secret_its_name_is_kept_and_nothing_is_taken_back(browser: Client):
    secret = http_forms.secret("key", "old-value-7", "a.example")
    address = f"{http_forms.SECRETS}{secret.pk}/change/"
    browser.post(address, {"hosts": "b.example", "value": KEY})
    change = ToolConfigChange.objects.get()
    assert (change.name, change.before, change.after) == (
        "key",
        {"hosts": "a.example", "value": "••••"},
        {"hosts": "b.example", "value": "••••"},
    )
    assert "nothing to take back" in revert(browser, secret)
    assert Secret.objects.get().hosts == "b.example"
    assert KEY not in table() + page(browser, address)
    assert "old-value-7" not in table()


def test_a_plugins_configuration_is_taken_back_and_named_alone(browser: Client):
    row = plugins.configured(config={"city": "Oslo"})
    sent = plugins.form(enabled=False, city="Bergen", key=KEY)
    assert browser.post(plugins.address(row), sent).status_code == 302
    assert set(Plugin.objects.get().config) >= {"city", "key"}
    assert "Bergen" not in table()
    assert KEY not in table()
    newest(browser, plugins.address(row))
    revert(browser, row)
    assert row.config == {"city": "Oslo"}


def test_a_stickers_words_are_taken_back(browser: Client):
    sticker = Sticker.objects.create(path="a.png", words="笑", sha256="0")
    with record_changes(None, sticker):
        Sticker.objects.update(words="哭")
    assert "Taken back: Words." in revert(browser, sticker)
    assert sticker.words == "笑"


def test_a_chats_state_is_taken_back(browser: Client):
    session = chat()
    address = f"/admin/agent/chatsession/{session.pk}/change/"
    browser.post(address, {"state": '{"city": "Oslo"}', "initial-state": "{}"})
    assert newest(browser, f"{address}?panel=settings").after == {"state": {"city": "Oslo"}}
    revert(browser, session)
    assert session.state == {}


def test_a_note_that_is_forgotten_leaves_nothing_in_its_changes(browser: Client):
    note = Note.objects.get(pk=noted(ANN_IN_GROUP, "喜欢苹果").pk)
    with record_changes(None, note):
        Note.objects.filter(pk=note.pk).update(text="喜欢香蕉")
    assert "Taken back" in revert(browser, note)
    assert note.text == "喜欢苹果"
    browser.post(f"/admin/agent/note/{note.pk}/delete/", {"post": "yes"})
    assert not Note.objects.exists()
    left = ToolConfigChange.objects.get()  # that it was deleted, and by whom
    assert (left.kind, left.name, left.before, left.after) == ("deleted", "-", {}, {})


def make_again(client: Client, change: ToolConfigChange) -> str:
    return client.post(f"{HISTORY}{change.pk}/make-again/", follow=True).content.decode()


def test_a_deleted_row_is_made_again_with_what_belongs_to_it(browser: Client):
    row = Persona.objects.create(name="cat", prompt="You are a cat.")
    row.places.create(account="10001")
    browser.post(f"/admin/agent/persona/{row.pk}/delete/", {"post": "yes"})
    change = ToolConfigChange.objects.get()
    assert (change.kind, change.name) == ("deleted", "cat")
    text = page(browser, f"{HISTORY}{change.pk}/change/")
    assert "You are a cat." in text
    assert "Make it again" in text
    viewer = logged_in("viewer")
    assert "Make it again" not in page(viewer, f"{HISTORY}{change.pk}/change/")
    assert viewer.post(f"{HISTORY}{change.pk}/make-again/").status_code == 403
    assert "It is there again." in make_again(browser, change)
    again = Persona.objects.get(pk=row.pk)
    assert (again.prompt, again.places.get().account) == ("You are a cat.", "10001")
    assert [one.kind for one in ToolConfigChange.objects.all()] == ["added", "deleted"]
    assert "already exists" in make_again(browser, change)


def test_a_deleted_http_tool_is_made_again_with_its_keys_which_no_page_shows(browser: Client):
    assert http_forms.save(browser, **http_forms.entries("headers", Authorization=KEY)) == ""
    tool = HttpTool.objects.get()
    browser.post(f"{http_forms.TOOLS}{tool.pk}/delete/", {"post": "yes"})
    change = ToolConfigChange.objects.latest("pk")
    shown = page(browser, f"{HISTORY}{change.pk}/change/") + page(browser, HISTORY)
    assert KEY not in table() + shown
    make_again(browser, change)
    assert HttpTool.objects.get(pk=tool.pk).headers == {"Authorization": KEY}


def test_a_row_of_which_a_key_is_not_kept_is_not_made_again(browser: Client):
    secret = http_forms.secret("key", KEY, "a.example")
    browser.post(f"{http_forms.SECRETS}{secret.pk}/delete/", {"post": "yes"})
    change = ToolConfigChange.objects.get()
    assert "Make it again" not in page(browser, f"{HISTORY}{change.pk}/change/")
    assert browser.post(f"{HISTORY}{change.pk}/make-again/").status_code == 403


def test_the_history_of_a_row_tells_all_that_was_done_with_it(browser: Client):
    browser.post("/admin/auth/group/add/", {"name": "cats"})
    row = Group.objects.get(name="cats")
    browser.post(f"/admin/auth/group/{row.pk}/change/", {"name": "dogs"})
    text = page(browser, f"/admin/auth/group/{row.pk}/history/")
    assert text.index("Added.") < text.index("Changed Name.")
    assert text.count("<td>user-</td>") == 2
    browser.post(f"/admin/auth/group/{row.pk}/delete/", {"post": "yes"})
    assert "Deleted." in page(browser, HISTORY)
    assert "dogs" not in page(mcp.person("view_toolconfigchange"), HISTORY)


def test_a_form_that_is_saved_as_it_was_is_not_in_the_history(browser: Client):
    row = Group.objects.create(name="cats")
    form = browser.post(f"/admin/auth/group/{row.pk}/change/", {"name": "cats"})
    assert form.status_code == 302
    assert not ToolConfigChange.objects.exists()


def test_the_list_shows_the_changes_of_those_rows_that_one_may_see(browser: Client):
    session, bot = chat(), Bot.objects.create(self_id="10001")
    with record_changes(None, session, bot):
        ChatSession.objects.update(timing_gate=True)
        Bot.objects.update(timing_gate=True)
    listed = "/admin/tools/toolconfigchange/"
    assert page(browser, listed).count('class="differences"') == 2
    assert (
        page(browser, f"{listed}?subject__exact=onebot.bot:{bot.pk}").count('class="differences"')
        == 1
    )
    assert page(browser, f"{listed}?q=10001").count('class="differences"') >= 1
    limited = mcp.person("view_toolconfigchange")
    assert 'class="differences"' not in page(limited, listed)


def test_what_the_program_writes_leaves_nothing(db: None):
    bot, server = Bot.objects.create(self_id="1"), McpServer.objects.create(name="a")
    bot.save()
    server.save()
    assert not ToolConfigChange.objects.exists()


@pytest.mark.parametrize("group", ["viewer"])
def test_a_viewer_takes_nothing_back(group: str, browser: Client):
    bot = Bot.objects.create(self_id="1")
    with record_changes(None, bot) as made:
        Bot.objects.update(timing_gate=True)
    client = logged_in(group)
    assert 'class="change"' in page(client, f"/admin/onebot/bot/{bot.pk}/change/")
    assert client.post(f"/admin/onebot/bot/{bot.pk}/revert/{made[0].pk}/").status_code == 403


def test_an_owners_change_in_a_chat_is_on_the_page_with_his_words_and_taken_back(browser: Client):
    bot = Bot.objects.create(self_id="10001", owners="")
    with record_changes("owner 20002 in group:30003", bot):
        bot.owners = "30004"
        bot.save()
    address = f"/admin/onebot/bot/{bot.pk}/change/"
    assert "owner 20002 in group:30003" in page(browser, address)
    listed = page(browser, "/admin/tools/toolconfigchange/")
    assert "owner 20002 in group:30003" in listed
    assert "$author" not in listed
    assert "Taken back" in revert(browser, bot)
    assert bot.owners == ""

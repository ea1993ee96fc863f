"""The page of a plugin: whether it runs, what it may do, what became of it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import django
import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from tests.admin.plugins import PLUGINS, address, form, plugin, status
from tests.admin.record import ENGLISH, page
from tools.admin.settings_page import change_words
from tools.models import (
    ConfigVersion,
    Plugin,
    PluginCrash,
    PluginLogLine,
    PluginValue,
    ToolConfig,
    ToolConfigChange,
)


def somebody(*permissions: str) -> Client:
    """A browser of somebody who is not a superuser and may do just this."""
    account = User.objects.create_user("somebody", is_staff=True)
    account.user_permissions.set(
        Permission.objects.filter(content_type__app_label="tools", codename__in=permissions)
    )
    account.user_permissions.add(Permission.objects.get(codename="view_every_chat"))
    client = Client(headers=ENGLISH)
    client.force_login(account)
    return client


def logged() -> str:
    return change_words(ToolConfigChange.objects.latest("pk"))


# --- Decisions ----------------------------------------------------------------------


def test_a_plugin_is_enabled_and_granted_what_was_ticked_from_the_next_message_on(browser: Client):
    row, before = plugin(), ConfigVersion.current()
    browser.post(address(row), form(granted=("storage",)))
    row.refresh_from_db()
    assert (row.enabled, row.granted) == (True, ["storage"])
    assert ConfigVersion.current() > before
    assert logged() == "Enabled. Granted: storage."


def test_what_is_taken_back_is_in_the_history_by_name(browser: Client):
    row = plugin(enabled=True, granted=["send.text", "storage"])
    browser.post(address(row), form(enabled=False, granted=("storage",)))
    row.refresh_from_db()
    assert (row.enabled, row.granted) == (False, ["storage"])
    assert logged() == "Disabled. No longer granted: send.text."
    assert "No longer granted: send.text." in page(browser, address(row, "history/"))


def test_nothing_is_granted_to_begin_with_and_each_box_says_what_it_means(browser: Client):
    text = page(browser, address(plugin()))
    assert "Store values of its own in this server" in text
    assert 'value="storage"' in text
    assert "checked" not in text
    assert "llm.generate" not in text


@pytest.mark.parametrize(
    "granted", [("llm.generate",), ("root",), ("storage", "history.read"), ("",)]
)
def test_what_the_manifest_does_not_ask_for_cannot_be_granted(
    browser: Client, granted: tuple[str, ...]
):
    row = plugin()
    assert "errornote" in browser.post(address(row), form(granted=granted)).content.decode()
    row.refresh_from_db()
    assert (row.enabled, row.granted) == (False, [])


def test_what_this_server_does_not_have_is_named_without_a_box(browser: Client):
    text = page(browser, address(plugin(manifest={"capabilities": ["emoji.steal<b>", "storage"]})))
    assert "emoji.steal&lt;b&gt;" in text
    assert text.count('name="granted"') == 1


def test_what_an_update_asks_for_is_shown_as_new_and_not_granted(browser: Client):
    row = plugin()
    assert "badge-waiting" not in page(browser, address(row))
    browser.post(address(row), form(granted=("send.text",)))
    Plugin.objects.update(
        manifest=row.manifest | {"capabilities": ["send.text", "storage", "llm.generate"]}
    )
    text = page(browser, address(row))
    assert text.count('<span class="badge badge-waiting">new</span>') == 1
    assert text.count("checked") == 2  # enabled, and what was granted
    assert "asks for more" in page(browser, PLUGINS)


def test_what_the_page_did_not_show_yet_is_not_decided_by_it(browser: Client):
    row = plugin(decided=["send.text"])
    browser.post(address(row), form(asked="send.text"))
    row.refresh_from_db()
    assert row.decided == ["send.text"]
    browser.post(address(row), form())
    row.refresh_from_db()
    assert row.decided == ["send.text", "storage"]
    assert "asks for more" not in page(browser, PLUGINS)


def test_a_plugin_that_cannot_run_is_not_enabled(browser: Client):
    row = plugin(fault="the manifest <is> no JSON")
    text = browser.post(address(row), form()).content.decode()
    assert "It cannot run as it is: the manifest &lt;is&gt; no JSON" in text
    row.refresh_from_db()
    assert not row.enabled


def test_saving_leaves_alone_what_the_program_wrote_meanwhile(
    browser: Client, monkeypatch: pytest.MonkeyPatch
):
    row = plugin()
    Plugin.objects.update(reloads=7, version="2.0.0")
    monkeypatch.setattr(
        Plugin, "save", lambda *_arguments, **_options: pytest.fail("the whole row was written")
    )
    browser.post(address(row), form())
    row.refresh_from_db()
    assert (row.reloads, row.version, row.enabled) == (7, "2.0.0", True)


# --- Who ----------------------------------------------------------------------------


def test_who_may_only_look_sees_everything_and_changes_nothing(browser: Client, db: None):
    row = plugin(granted=["storage"])
    PluginValue.objects.create(plugin=row, key="the-key", value=1)
    viewer = somebody("view_plugin")
    text = page(viewer, address(row))
    assert "not granted" in text
    assert "the-key" not in text
    assert 'name="enabled"' not in text
    for end in ("change/", "reload/", "forget/"):
        assert viewer.post(address(row, end), form()).status_code == 403
    row.refresh_from_db()
    assert (row.enabled, row.reloads, PluginValue.objects.count()) == (False, 0, 1)


@pytest.mark.parametrize("permissions", [(), ("view_toolconfig", "change_toolconfig")])
def test_others_do_not_see_plugins(permissions: tuple[str, ...], db: None):
    row = plugin()
    assert somebody(*permissions).get(address(row)).status_code == 403


def test_plugins_are_not_added_here_and_deleted_only_once_their_folder_is_gone(
    browser: Client, settings: Settings, tmp_path: Path
):
    settings.PLUGINS_DIR = tmp_path
    (tmp_path / "weather").mkdir()
    row = plugin()
    assert browser.get(f"{PLUGINS}add/").status_code == 403
    assert browser.post(address(row, "delete/"), {"post": "yes"}).status_code == 403
    (tmp_path / "weather").rmdir()
    assert "deletelink" in page(browser, address(row))
    assert browser.post(address(row, "delete/"), {"post": "yes"}).status_code == 302
    assert not Plugin.objects.exists()


# --- The buttons --------------------------------------------------------------------


def test_a_reload_is_asked_for_by_a_post_alone_and_noted(browser: Client):
    row, before = plugin(enabled=True), ConfigVersion.current()
    assert browser.get(address(row, "reload/")).status_code == 405
    browser.post(address(row, "reload/"))
    row.refresh_from_db()
    assert row.reloads == 1
    assert ConfigVersion.current() > before
    assert logged() == "Asked for a reload."


def test_stored_values_are_shown_and_cleared_of_this_plugin_alone(browser: Client):
    row, other = plugin(), plugin("other")
    for owner in (row, other):
        PluginValue.objects.create(
            plugin=owner, key=f"key-{owner.folder}", value={"text": "<b>天</b>"}
        )
    text = page(browser, address(row))
    assert "key-weather" in text
    assert "&lt;b&gt;天&lt;/b&gt;" in text
    assert "key-other" not in text
    assert browser.get(address(row, "forget/")).status_code == 405
    browser.post(address(row, "forget/"))
    assert list(PluginValue.objects.values_list("key", flat=True)) == ["key-other"]
    assert logged() == "1 stored value was deleted."


def test_a_value_has_a_page_of_its_own(browser: Client):
    row = plugin()
    value = PluginValue.objects.create(plugin=row, key="k\u202e<i>", value={"text": "<b>\u202e"})
    text = page(browser, f"/admin/tools/pluginvalue/{value.pk}/change/")
    assert "&lt;b&gt;\\u202e" in text
    assert "k\\u202e&lt;i&gt;" in page(
        browser, f"/admin/tools/pluginvalue/?plugin__id__exact={row.pk}"
    )


# --- What is known ------------------------------------------------------------------


def test_the_page_says_what_the_manifest_says(browser: Client):
    text = page(browser, address(plugin()))
    for words in (
        "someone.weather",
        "1.2.3",
        "Ann &lt;ann@example.org&gt;",
        "MIT",
        "Tells the weather.",
    ):
        assert words in text


def test_the_page_says_what_it_needs_and_whether_that_is_there(browser: Client):
    needs: dict[str, Any] = {
        "python": ">=3.11",
        "host_application": {"min": "1.0.0", "max_version": "99.0.0"},
        "sdk": {"min_version": "99.0.0"},
        "dependencies": [
            {"type": "python_package", "name": "django", "version_spec": ">=5"},
            "django<2",
            "no-such-thing>=1",
            'no-such-thing; python_version < "3"',
            {"type": "plugin", "id": "someone.else"},
            5,
        ],
    }
    text = page(browser, address(plugin(manifest=needs)))
    found = [text.count(words) for words in ("there: ", "there is only ", ">not there<")]
    assert found == [3, 2, 3]
    assert f"there: {django.get_version()}" in text
    assert "MaiBot &gt;=1.0.0,&lt;=99.0.0" in text


def test_the_state_of_each_process_is_shown_and_that_of_a_silent_one_marked(browser: Client):
    row = plugin(enabled=True)
    status(row, "broken", error="boom\x1b[31m <b>")
    status(
        row,
        "running",
        process_id="p2",
        seen_at=timezone.now() - timedelta(seconds=61),
        error="of long ago",
    )
    text = page(browser, address(row))
    assert "given up after repeated crashes" in text
    assert "boom\\x1b[31m &lt;b&gt;" in text
    assert text.count("no longer heard of") == 1
    listed = page(browser, PLUGINS)
    assert "given up after repeated crashes" in listed
    assert "boom" in listed
    assert "of long ago" not in listed


@pytest.mark.parametrize(
    ("fields", "states", "words"),
    [
        ({"enabled": False}, ["running"], "disabled"),
        ({"enabled": True}, [], "not running anywhere"),
        ({"enabled": True}, ["running", "waiting"], "waiting to start again"),
        ({"enabled": True}, ["running", "running"], ">up and running<"),
        ({"enabled": True, "fault": "gone"}, ["running"], "cannot run"),
    ],
)
def test_the_list_shows_the_worst_state_at_a_glance(
    browser: Client, fields: dict[str, Any], states: list[str], words: str
):
    row = plugin(**fields)
    for number, state in enumerate(states):
        status(row, state, process_id=f"p{number}")
    assert words in page(browser, PLUGINS)


def test_its_tools_are_linked_to_their_settings_and_nobody_elses_are(browser: Client):
    row = plugin(enabled=True)
    status(row, tools=["forecast", "history"])
    mine = ToolConfig.objects.create(name="forecast", provider_name="someone.weather")
    other = ToolConfig.objects.create(name="history", provider_name="somebody.else")
    text = page(browser, address(row))
    assert f"/admin/tools/toolconfig/{mine.pk}/change/" in text
    assert f"/admin/tools/toolconfig/{other.pk}/change/" not in text
    assert "forecast, history" in page(browser, PLUGINS)


def log(row: Plugin, *texts: str, level: str = "info") -> list[PluginLogLine]:
    return [
        PluginLogLine.objects.create(plugin=row, at=timezone.now(), level=level, text=text)
        for text in texts
    ]


def test_hostile_lines_of_the_log_are_shown_as_they_are_written(browser: Client):
    row = plugin()
    log(
        row,
        "<script>alert(1)</script>",
        "\x1b[2J\x1b[31mred\x07",
        "\u202egnp.exe",
        "a\rb\x00c\x9b",
        "👩\u200d💻 天气\nnext",
    )
    text = page(browser, address(row))
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "\\x1b[2J\\x1b[31mred\\x07" in text
    assert "\\u202egnp.exe" in text
    assert "a\\rb\\x00c\\x9b" in text
    assert "👩\u200d💻 天气\nnext" in text


def test_the_log_is_filtered_by_level_and_paged_back(
    browser: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tools.plugins.admin.pages.LINES", 2)
    row = plugin()
    log(plugin("other"), "of another")
    lines = log(row, "one-", "two-", "three-")
    log(row, "bad-", level="error")
    text = page(browser, address(row))
    assert [word in text for word in ("one-", "two-", "three-", "bad-", "of another")] == [
        False,
        False,
        True,
        True,
        False,
    ]
    assert "one-" in page(browser, f"{address(row)}?before={lines[1].pk}")
    text = page(browser, f"{address(row)}?level=error")
    assert [word in text for word in ("three-", "bad-")] == [False, True]


@pytest.mark.parametrize(
    "query",
    ["level=nonsense", "before=x", "before=-1", "before=9999999999999999999999", "level=%00"],
)
def test_any_address_of_the_log_is_answered(browser: Client, query: str):
    row = plugin()
    log(row, "line-")
    assert "Log" in page(browser, f"{address(row)}?{query}")


def test_crashes_are_shown_with_their_last_words(browser: Client):
    row = plugin()
    PluginCrash.objects.create(
        plugin=row, at=timezone.now(), reason="killed: <memory>", detail="Traceback\n\x1b[1m<b>"
    )
    text = page(browser, address(row))
    assert "killed: &lt;memory&gt;" in text
    assert "Traceback\n\\x1b[1m&lt;b&gt;" in text


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        [],
        {
            "author": "Ann",
            "capabilities": "storage",
            "tools": {},
            "dependencies": 5,
            "config_schema": [],
        },
        {
            "author": None,
            "capabilities": [1, None, {"a": 1}],
            "tools": [1, {"name": ""}, {}],
            "dependencies": [None, {}],
        },
        {
            "name": ["x"],
            "config_schema": {"properties": {"a": 5, "": {"type": ["string"]}}, "required": "a"},
        },
    ],
)
def test_whatever_a_manifest_holds_can_be_shown(browser: Client, manifest: Any):
    row = Plugin.objects.create(folder="odd", manifest=manifest)
    assert "odd" in page(browser, PLUGINS)
    assert "odd" in page(browser, address(row))
    assert browser.post(address(row), form(enabled=False, asked="")).status_code == 302


def test_the_list_says_how_a_plugin_is_added(browser: Client, settings: Settings):
    assert f"<code>{settings.PLUGINS_DIR}</code>" in page(browser, PLUGINS)
    assert "manage.py plugin new NAME" in page(browser, PLUGINS)


def test_many_plugins_cost_no_more_questions_than_a_few(
    browser: Client, django_assert_max_num_queries: DjangoAssertNumQueries
):
    for number in range(60):
        status(plugin(f"p{number}", enabled=True))
    with django_assert_max_num_queries(12):
        assert page(browser, PLUGINS).count("forecast") == 50


def test_a_page_with_many_rows_shows_some_and_asks_no_more_questions(
    browser: Client, django_assert_max_num_queries: DjangoAssertNumQueries
):
    row = plugin()
    at = timezone.now()
    PluginLogLine.objects.bulk_create(
        PluginLogLine(plugin=row, at=at, level="info", text=f"line-{n}.") for n in range(3000)
    )
    PluginValue.objects.bulk_create(
        PluginValue(plugin=row, key=f"key-{n}.", value="x" * 60_000) for n in range(300)
    )
    with django_assert_max_num_queries(25):
        text = page(browser, address(row))
    assert (text.count("line-"), text.count("key-")) == (200, 20)
    assert "all 300 values" in text
    assert len(text) < 200_000

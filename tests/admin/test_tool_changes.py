"""Who changed what in a tool's settings, and the way back, on the tool's page."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.admin.record import logged_in, page, tool_form
from tools.models import ToolConfig, ToolConfigChange

TOOLS = "/admin/tools/toolconfig/"


@pytest.fixture
def weather(db: None) -> ToolConfig:
    return ToolConfig.objects.create(name="get_weather", parameter_names=["city"])


def address(tool: ToolConfig) -> str:
    return f"{TOOLS}{tool.pk}/change/"


def save(client: Client, tool: ToolConfig, **changes: object) -> ToolConfigChange:
    assert client.post(address(tool), tool_form(**changes)).status_code == 302
    return ToolConfigChange.objects.latest("id")


def revert(client: Client, change: ToolConfigChange, config_pk: int | None = None) -> str:
    url = f"{TOOLS}{config_pk or change.config_id}/revert/{change.pk}/"
    return client.post(url, follow=True).content.decode()


def test_a_save_is_on_record_with_its_author_and_what_became_different(
    browser: Client, weather: ToolConfig
):
    change = save(browser, weather, scope="group", timeout_seconds=5)
    assert (change.before, change.after) == (
        {"scope": "all", "timeout_seconds": 60},
        {"scope": "group", "timeout_seconds": 5},
    )
    assert change.author == User.objects.get()


def test_a_save_that_changes_nothing_leaves_no_trace(browser: Client, weather: ToolConfig):
    assert browser.post(address(weather), tool_form()).status_code == 302
    assert not ToolConfigChange.objects.filter(kind="changed").exists()


def test_a_switch_of_the_list_is_on_record_as_well(browser: Client, weather: ToolConfig):
    browser.post(f"{TOOLS}{weather.pk}/switch/", {"enabled": "false"})
    change = ToolConfigChange.objects.get()
    assert (change.before, change.after, change.author) == (
        {"enabled": True},
        {"enabled": False},
        User.objects.get(),
    )


def test_the_page_shows_old_and_new_by_the_names_of_the_form(browser: Client, weather: ToolConfig):
    save(
        browser,
        weather,
        allowed="people",
        allowed_ids="1 2",
        enabled=None,
        parameter_descriptions='{"city": "<b>"}',
    )
    text = page(browser, address(weather))
    found = re.findall(
        r'class="field">(.*?)</span> <del class="words">(.*?)</del> → <ins '
        r'class="words">(.*?)</ins>',
        text,
        re.DOTALL,
    )
    assert ("Who may use it", "everyone", "listed people") in found
    assert ("Enabled", "yes", "no") in found
    assert (
        "Descriptions of arguments",
        "-",
        "{\n  &quot;city&quot;: &quot;&lt;b&gt;&quot;\n}",
    ) in found


def test_the_newest_twenty_changes_are_shown_and_the_rest_is_a_link_away(
    browser: Client, weather: ToolConfig
):
    for seconds in range(1, 23):
        save(browser, weather, timeout_seconds=seconds)
    text = page(browser, address(weather))
    assert text.count('class="change"') == 20
    link = f"/admin/tools/toolconfigchange/?config__id__exact={weather.pk}"
    assert link in text
    assert page(browser, link).count('class="differences"') == 22


def test_one_click_takes_a_change_back_and_leaves_later_ones(browser: Client, weather: ToolConfig):
    first = save(browser, weather, description="new")
    save(browser, weather, description="new", timeout_seconds=5)
    assert "Taken back: Description." in revert(browser, first)
    weather.refresh_from_db()
    assert (weather.description, weather.timeout_seconds) == ("", 5)
    assert ToolConfigChange.objects.latest("id").after == {"description": ""}
    assert "There was nothing to take back" in revert(browser, first)


def test_a_change_whose_old_values_are_no_longer_valid_is_not_taken_back(
    browser: Client, weather: ToolConfig
):
    change = save(browser, weather, timeout_seconds=5)
    ToolConfigChange.objects.update(before={"timeout_seconds": 9999})
    assert "Time limit (seconds): Ensure this value is less than or equal to 3600." in revert(
        browser, change
    )
    weather.refresh_from_db()
    assert weather.timeout_seconds == 5


def test_a_change_of_another_tool_is_not_taken_back_here(browser: Client, weather: ToolConfig):
    change = save(browser, weather, timeout_seconds=5)
    other = ToolConfig.objects.create(name="other")
    assert browser.post(f"{TOOLS}{other.pk}/revert/{change.pk}/").status_code == 404
    assert browser.get(f"{TOOLS}{weather.pk}/revert/{change.pk}/").status_code == 405


def test_a_viewer_reads_the_changes_and_takes_none_back(browser: Client, weather: ToolConfig):
    change, viewer = save(browser, weather, timeout_seconds=5), logged_in("viewer")
    text = page(viewer, address(weather))
    assert 'class="change"' in text
    assert "/revert/" not in text
    assert viewer.post(f"{TOOLS}{weather.pk}/revert/{change.pk}/").status_code == 403
    weather.refresh_from_db()
    assert weather.timeout_seconds == 5


def test_the_list_of_changes_finds_a_tool_and_changes_nothing(browser: Client, weather: ToolConfig):
    change = save(browser, weather, timeout_seconds=5)
    assert 'class="differences"' in page(browser, "/admin/tools/toolconfigchange/?q=get_weather")
    assert 'class="differences"' not in page(browser, "/admin/tools/toolconfigchange/?q=other")
    assert (
        browser.post(
            f"/admin/tools/toolconfigchange/{change.pk}/change/", {"after": "{}"}
        ).status_code
        == 403
    )
    assert (
        browser.post(
            f"/admin/tools/toolconfigchange/{change.pk}/delete/", {"post": "yes"}
        ).status_code
        == 403
    )

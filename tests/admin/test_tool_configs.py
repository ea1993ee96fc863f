"""The operator's settings for tools, edited in the list and on the page."""

import re
from typing import Any

import pytest
from django.test import Client

from agent.runtime.wiring import declared_tools
from tests.admin.record import logged_in, page, tool_form
from tools.models import ToolConfig
from tools.registry.catalogue import ensure_tool_rows
from tools.registry.settings import load_tool_settings

TOOLS = "/admin/tools/toolconfig/"


@pytest.fixture
def weather(db: None) -> ToolConfig:
    return ToolConfig.objects.create(
        name="get_weather", mock_enabled=True, mock_value="{city}", parameter_names=["city"]
    )


def switch(browser: Client, row: ToolConfig, query: str = "", **values: str) -> Any:
    return browser.post(f"{TOOLS}{row.pk}/switch/{query}", values)


def page_form(**changes: Any) -> dict[str, Any]:
    return tool_form(**{"mock_enabled": "on", "mock_value": "{city}"} | changes)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"enabled": "false"}, (False, True, "own")),
        ({"mock_enabled": "false"}, (True, False, "own")),
        ({"requires_approval": "always"}, (True, True, "always")),
    ],
)
def test_switch_of_the_list_sets_one_thing_at_once(
    browser: Client, weather: ToolConfig, values: dict[str, str], expected: tuple[Any, ...]
):
    answer = switch(browser, weather, "?_changelist_filters=q%3Dget", **values)
    assert answer.headers["Location"] == f"{TOOLS}?q=get#tool-{weather.pk}"
    row = load_tool_settings()["get_weather"]
    assert (row.enabled, row.mock_enabled, row.requires_approval) == expected
    weather.refresh_from_db()
    assert (weather.mock_value, weather.parameter_names) == ("{city}", ["city"])
    assert weather.changes.get().after.keys() == values.keys()


def test_switch_is_taken_back_on_the_page_of_the_tool(browser: Client, weather: ToolConfig):
    switch(browser, weather, enabled="false")
    browser.post(f"{TOOLS}{weather.pk}/revert/{weather.changes.get().pk}/")
    weather.refresh_from_db()
    assert weather.enabled


def test_two_who_switch_the_same_way_change_it_once(browser: Client, weather: ToolConfig):
    other = logged_in("operator")
    for client in (browser, other):  # both saw it enabled
        assert switch(client, weather, enabled="false").status_code == 302
    weather.refresh_from_db()
    assert (weather.enabled, weather.changes.count()) == (False, 1)


def test_switch_checks_what_the_page_checks(browser: Client, weather: ToolConfig):
    ToolConfig.objects.update(mock_enabled=False, mock_value="{town}")
    switch(browser, weather, mock_enabled="true")
    told = page(browser, TOOLS).split('class="messagelist"')[1].split("</ul>")[0]
    assert "Known: city. (get_weather)" in told
    weather.refresh_from_db()
    assert not weather.mock_enabled
    switch(browser, weather, requires_approval="perhaps")
    assert not weather.changes.exists()


def test_viewer_has_no_switches(db: None, weather: ToolConfig):
    viewer = logged_in("viewer")
    text = page(viewer, TOOLS)
    assert "get_weather" in text
    assert not any(words in text for words in ("switch/", "source/", "look/?"))
    assert switch(viewer, weather, enabled="false").status_code == 403
    assert viewer.post(f"{TOOLS}source/", {"off": ""}).status_code == 403
    assert viewer.get(f"{TOOLS}look/?source=").status_code == 403
    weather.refresh_from_db()
    assert weather.enabled


def test_switches_are_buttons_of_a_form_where_scripts_are_off(browser: Client, weather: ToolConfig):
    text = page(browser, f"{TOOLS}?q=get")
    (button,) = re.findall(r'<button class="switch" id="enabled-[^>]*>', text)
    for part in (
        'name="enabled" value="false"',
        f'formaction="{weather.pk}/switch/?_changelist_filters=q%3Dget"',
        'aria-pressed="true"',
        'aria-label="Enabled: get_weather"',
    ):
        assert part in button
    assert text.index('id="changelist-form" method="post"') < text.index(button)
    assert browser.get(f"{TOOLS}{weather.pk}/switch/").status_code == 405


@pytest.mark.parametrize(
    ("mode", "declared", "pressed", "wanted"),
    [
        ("own", None, "false", "always"),
        ("own", "some", "mixed", "always"),
        ("own", True, "true", "never"),
        ("never", True, "false", "own"),
        ("never", None, "false", "always"),
        ("always", None, "true", "own"),
        ("always", "some", "true", "never"),
    ],
)
def test_switch_of_approval_goes_by_what_the_tool_declares(
    browser: Client, mode: str, declared: Any, pressed: str, wanted: str
):
    row = ToolConfig.objects.create(
        name="transfer", requires_approval=mode, declaration={"requires_approval": declared}
    )
    text = page(browser, TOOLS)
    (button,) = re.findall(rf'<button class="switch" id="requires_approval-{row.pk}"[^>]*>', text)
    assert f'value="{wanted}"' in button
    assert f'aria-pressed="{pressed}"' in button


def test_mock_value_and_description_are_edited_on_the_page(browser: Client, weather: ToolConfig):
    value = "{city}: {{晴}}\n25°C"
    response = browser.post(
        f"{TOOLS}{weather.pk}/change/", page_form(mock_value=value, description="天气")
    )
    assert response.status_code == 302
    weather.refresh_from_db()
    assert (weather.mock_value.replace("\r\n", "\n"), weather.description) == (value, "天气")


@pytest.mark.parametrize(
    ("value", "problem"),
    [("{town}", "{town}"), ("{", "stands alone"), ("{city.__class__}", "Known: city")],
)
def test_a_mock_value_that_cannot_be_filled_in_is_refused_with_the_reason(
    browser: Client, weather: ToolConfig, value: str, problem: str
):
    text = browser.post(
        f"{TOOLS}{weather.pk}/change/", page_form(mock_value=value)
    ).content.decode()
    assert problem in text
    assert "errornote" in text
    weather.refresh_from_db()
    assert weather.mock_value == "{city}"


def test_any_name_may_stand_in_the_mock_value_of_a_tool_whose_arguments_are_unknown(
    browser: Client,
):
    tool = ToolConfig.objects.create(name="far_away")
    assert (
        browser.post(f"{TOOLS}{tool.pk}/change/", page_form(mock_value="{anything}")).status_code
        == 302
    )
    assert (
        "stands alone"
        in browser.post(f"{TOOLS}{tool.pk}/change/", page_form(mock_value="}")).content.decode()
    )


def test_the_page_names_the_arguments_that_may_be_used(browser: Client, weather: ToolConfig):
    assert '<div class="readonly">{city}</div>' in page(browser, f"{TOOLS}{weather.pk}/change/")


def test_the_name_of_a_tool_is_not_editable(browser: Client, weather: ToolConfig):
    browser.post(f"{TOOLS}{weather.pk}/change/", page_form(name="other", provider_name="other"))
    weather.refresh_from_db()
    assert weather.name == "get_weather"


def test_rows_are_neither_added_nor_deleted_here(browser: Client, weather: ToolConfig):
    assert browser.get(f"{TOOLS}add/").status_code == 403
    assert browser.post(f"{TOOLS}{weather.pk}/delete/", {"post": "yes"}).status_code == 403
    assert "delete_selected" not in page(browser, TOOLS)


def test_what_was_changed_is_in_the_history(browser: Client, weather: ToolConfig):
    browser.post(f"{TOOLS}{weather.pk}/change/", page_form(description="new"))
    assert "Changed Description." in page(browser, f"{TOOLS}{weather.pk}/history/")


def test_a_tool_is_deferred_in_the_list_and_pinned_on_its_page(
    browser: Client, weather: ToolConfig
):
    browser.post(f"{TOOLS}{weather.pk}/change/", page_form(visibility="deferred"))
    form = page(browser, f"{TOOLS}{weather.pk}/change/")
    assert '<option value="deferred" selected>deferred</option>' in form
    assert "never deferred, however many tools there are" in form
    browser.post(f"{TOOLS}{weather.pk}/change/", page_form(visibility="deferred", pinned="on"))
    weather.refresh_from_db()
    assert (weather.visibility, weather.pinned) == ("deferred", True)
    assert weather.changes.latest("pk").after == {"pinned": True}
    assert ">deferred</a>" in page(browser, TOOLS)


def test_the_search_for_tools_can_be_tried_by_hand(browser: Client):
    ensure_tool_rows(declared_tools())
    tool = ToolConfig.objects.get(name="tool_search")
    answer = browser.post(
        f"{TOOLS}{tool.pk}/trial/", {"argument-query": "weather"}
    ).content.decode()
    assert "badge-succeeded" in answer
    assert "没有找到与“weather”相关的工具" in answer


def test_a_tool_is_found_by_what_it_does(browser: Client):
    ToolConfig.objects.create(
        name="one", declaration={"description": "查询一个城市当前的天气。"}, provider_name="samples"
    )
    ToolConfig.objects.create(name="two", declaration={"description": "发送一条消息。"})
    text = page(browser, f"{TOOLS}?q=天气")
    assert "1 tool config" in text
    assert "查询一个城市当前的天气。" in text
    assert "two" not in text.split("<tbody>")[-1]


@pytest.mark.parametrize(
    ("choice", "declared", "words"),
    [
        ("own", True, "every call"),
        ("own", "some", "some calls"),
        ("own", None, "-"),
        ("never", True, "never"),
        ("always", None, "every call"),
    ],
)
def test_the_list_says_which_calls_ask_an_owner(db: None, choice: str, declared: Any, words: str):
    ToolConfig.objects.create(
        name="transfer", requires_approval=choice, declaration={"requires_approval": declared}
    )
    cell = page(logged_in("viewer"), TOOLS).split('<td class="field-approval"')[1]
    assert cell.split(">", 1)[1].startswith(f"{words}</td>")


def test_providers_are_called_by_words(browser: Client):
    row = ToolConfig.objects.create(name="transfer", provider_name="maisaka_builtin")
    for address in (TOOLS, f"{TOOLS}{row.pk}/change/"):
        text = page(browser, address)
        assert "maisaka" not in re.sub(r"(provider=|source=|value=\")maisaka_builtin", "", text)
        assert "built in" in text

"""The operator's settings for tools, edited in the list and on the page."""

from typing import Any

import pytest
from django.test import Client

from agent.runtime.wiring import declared_tools
from tests.admin.record import page, tool_form
from tools.models import ConfigVersion, ToolConfig
from tools.registry.catalogue import ensure_tool_rows
from tools.registry.settings import load_tool_settings

TOOLS = "/admin/tools/toolconfig/"


@pytest.fixture
def weather(db: None) -> ToolConfig:
    return ToolConfig.objects.create(
        name="get_weather", mock_enabled=True, mock_value="{city}", parameter_names=["city"]
    )


def list_form(*rows: ToolConfig, **changes: Any) -> dict[str, Any]:
    form: dict[str, Any] = {
        "form-TOTAL_FORMS": len(rows),
        "form-INITIAL_FORMS": len(rows),
        "_save": "Save",
    }
    for place, row in enumerate(rows):
        values = {
            "id": row.pk,
            "enabled": "on",
            "mock_enabled": "on",
            "timeout_seconds": row.timeout_seconds,
        }
        values |= {"visibility": row.visibility, "scope": row.scope} | changes
        form |= {
            f"form-{place}-{name}": value for name, value in values.items() if value is not None
        }
    return form


def page_form(**changes: Any) -> dict[str, Any]:
    return tool_form(**{"mock_enabled": "on", "mock_value": "{city}"} | changes)


def test_settings_are_edited_in_the_list_and_live_at_once(browser: Client, weather: ToolConfig):
    assert load_tool_settings()["get_weather"].enabled
    browser.post(TOOLS, list_form(weather, enabled=None, mock_enabled=None, timeout_seconds=7))
    settings = load_tool_settings()["get_weather"]
    assert (settings.enabled, settings.mock_enabled, settings.timeout_seconds) == (False, False, 7)


@pytest.mark.parametrize("seconds", ["0", "-1", "3601", "soon", ""])
def test_a_wrong_time_limit_is_refused_in_the_list(
    browser: Client, weather: ToolConfig, seconds: str
):
    before = ConfigVersion.current()
    text = browser.post(TOOLS, list_form(weather, timeout_seconds=seconds)).content.decode()
    assert "errorlist" in text
    weather.refresh_from_db()
    assert (weather.timeout_seconds, ConfigVersion.current()) == (60, before)


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
    assert browser.post(TOOLS, list_form(weather, visibility="deferred")).status_code == 302
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
def test_the_list_says_which_calls_ask_an_owner(
    browser: Client, choice: str, declared: Any, words: str
):
    ToolConfig.objects.create(
        name="transfer", requires_approval=choice, declaration={"requires_approval": declared}
    )
    assert f'class="field-approval">{words}</td>' in page(browser, TOOLS)


def test_providers_are_called_by_words(browser: Client):
    row = ToolConfig.objects.create(name="transfer", provider_name="maisaka_builtin")
    for address in (TOOLS, f"{TOOLS}{row.pk}/change/"):
        text = page(browser, address)
        assert "maisaka" not in text.replace("?provider=maisaka_builtin", "")
        assert "built in" in text

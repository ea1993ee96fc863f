"""What may be written into a tool's row, and what its change leaves behind."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils import translation
from pytest_django import DjangoAssertNumQueries

from tools.live_rows import ConfigVersion, LiveKind
from tools.models import ToolConfig, ToolConfigChange
from tools.models.row_history import record_changes, revert_change
from tools.registry.settings import ToolSettings, load_tool_settings

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _in_english() -> Iterator[None]:
    with translation.override("en"):
        yield


@pytest.fixture
def weather() -> ToolConfig:
    return ToolConfig.objects.create(
        name="get_weather", mock_value="{city}", parameter_names=["city", "days"]
    )


@pytest.fixture
def author() -> User:
    return User.objects.create(username="mo")


def problems(config: ToolConfig, **values: Any) -> dict[str, list[str]]:
    for field, value in values.items():
        setattr(config, field, value)
    try:
        config.full_clean()
    except ValidationError as error:
        return error.message_dict
    return {}


def changed(config: ToolConfig, author: User | None, **values: Any) -> ToolConfigChange | None:
    assert problems(config, **values) == {}
    with record_changes(author, config) as made:
        config.save()
    return made[0] if made else None


@pytest.mark.parametrize(
    "values",
    [
        {"scope": "group", "visibility": "hidden", "requires_approval": "always"},
        {"visibility": "deferred", "pinned": True},
        {"allowed": "people", "allowed_ids": "10001, 10002\n10003，10004 onebot:5;onebot:group:6"},
        {"allowed": "group_admins", "calls_per_minute_person": 1, "calls_per_minute_chat": 10_000},
        {"parameter_descriptions": {"city": "城市", "days": ""}},
        {"parameter_descriptions": {}, "mock_value": "{city} {days} {{}}"},
    ],
    ids=str,
)
def test_what_makes_sense_is_accepted(weather, values):
    assert problems(weather, **values) == {}


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"scope": "moon"}, "scope", "moon"),
        ({"visibility": "veiled"}, "visibility", "veiled"),
        ({"allowed": "nobody"}, "allowed", "nobody"),
        ({"requires_approval": "maybe"}, "requires_approval", "maybe"),
        ({"allowed": "people"}, "allowed_ids", "at least one id"),
        ({"allowed": "groups", "allowed_ids": " ,\n"}, "allowed_ids", "at least one id"),
        ({"allowed": "people", "allowed_ids": "10001 <b>"}, "allowed_ids", "<b>"),
        ({"allowed_ids": "张三"}, "allowed_ids", "张三"),
        ({"calls_per_minute_person": -1}, "calls_per_minute_person", ""),
        ({"calls_per_minute_chat": 10_001}, "calls_per_minute_chat", "10000"),
        ({"parameter_descriptions": ["city"]}, "parameter_descriptions", "JSON object"),
        ({"parameter_descriptions": {"town": "x"}}, "parameter_descriptions", "Known: city, days"),
        ({"parameter_descriptions": {"city": 5}}, "parameter_descriptions", "not text"),
        ({"mock_value": "{town}"}, "mock_value", "{town}"),
        ({"timeout_seconds": 0}, "timeout_seconds", ""),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_at_its_field(weather, values, field, words):
    found = problems(weather, **values)
    assert list(found) == [field]
    assert words in found[field][0]


def test_a_form_without_a_field_hears_nothing_of_it(weather):
    weather.parameter_descriptions = {"gone": "x"}
    weather.full_clean(exclude=["parameter_descriptions"])


def test_any_argument_may_be_described_where_none_is_known():
    assert (
        problems(ToolConfig(name="far"), parameter_descriptions={"x": "y"}, mock_value="{anything}")
        == {}
    )


def test_every_setting_reaches_the_run_loop_in_one_query(
    django_assert_num_queries: DjangoAssertNumQueries,
):
    values: dict[str, Any] = {
        "visibility": "hidden",
        "scope": "group",
        "allowed": "people",
        "requires_approval": "always",
        "calls_per_minute_person": 2,
        "calls_per_minute_chat": 3,
        "parameter_descriptions": {"city": "x"},
        "provider_name": "samples",
    }
    ToolConfig.objects.create(name="t", allowed_ids="1, 2\n2", **values)
    with django_assert_num_queries(1):
        assert load_tool_settings() == {
            "t": ToolSettings("t", allowed_ids=frozenset({"1", "2"}), **values)
        }


def test_a_change_leaves_what_was_and_what_is(weather, author):
    change = changed(weather, author, enabled=False, description="天气")
    assert change is not None
    assert (change.config, change.author) == (weather, author)
    assert change.before == {"enabled": True, "description": ""}
    assert change.after == {"enabled": False, "description": "天气"}
    assert str(change) == f"#{change.pk} enabled, description"


def test_saving_without_a_change_leaves_nothing(weather, author):
    assert changed(weather, author) is None
    assert not ToolConfigChange.objects.exists()


def test_the_program_has_no_name_and_a_deleted_author_keeps_the_change(weather, author):
    changed(weather, None, enabled=False)
    changed(weather, author, enabled=True)
    author.delete()
    assert [change.author for change in ToolConfigChange.objects.all()] == [None, None]


def test_a_change_is_taken_back_and_what_came_later_stays(weather, author):
    first = changed(
        weather, author, scope="group", timeout_seconds=5, parameter_descriptions={"city": "x"}
    )
    changed(weather, author, description="later", timeout_seconds=9)
    assert first is not None
    back = revert_change(first, weather, author)
    weather.refresh_from_db()
    assert (weather.scope, weather.timeout_seconds, weather.parameter_descriptions) == (
        "all",
        60,
        {},
    )
    assert weather.description == "later"
    assert back is not None
    assert (back.before["timeout_seconds"], back.after["timeout_seconds"]) == (9, 60)


def test_taking_back_twice_changes_nothing_more(weather, author):
    change = changed(weather, author, enabled=False)
    assert change is not None
    assert revert_change(change, weather, author) is not None
    assert revert_change(change, weather, author) is None
    assert ToolConfigChange.objects.count() == 2


def test_a_revert_can_be_reverted(weather, author):
    change = changed(weather, author, enabled=False)
    assert change is not None
    back = revert_change(change, weather, author)
    assert back is not None
    revert_change(back, weather, author)
    weather.refresh_from_db()
    assert not weather.enabled


def test_a_value_that_is_no_longer_valid_is_not_brought_back(weather, author):
    change = changed(weather, author, mock_value="")
    ToolConfig.objects.update(parameter_names=["town"])
    assert change is not None
    with pytest.raises(ValidationError):
        revert_change(change, weather, author)
    weather.refresh_from_db()
    assert weather.mock_value == ""
    assert ToolConfigChange.objects.count() == 1


def test_a_revert_is_obeyed_from_the_next_message_on(weather, author):
    change = changed(weather, author, enabled=False)
    assert not load_tool_settings()["get_weather"].enabled
    assert change is not None
    before = ConfigVersion.current(LiveKind.TOOLS)
    revert_change(change, weather, author)
    assert ConfigVersion.current(LiveKind.TOOLS) > before
    assert load_tool_settings()["get_weather"].enabled


def test_a_field_of_an_older_version_is_left_out_of_a_revert(weather, author):
    change = ToolConfigChange.objects.create(
        config=weather, before={"enabled": False, "name": "x", "colour": "red"}, after={}
    )
    revert_change(change, weather, author)
    weather.refresh_from_db()
    assert (weather.enabled, weather.name) == (False, "get_weather")

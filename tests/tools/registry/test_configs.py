"""The rows as the run loop reads them, and the rows that tools bring along."""

import pytest
from django.core.management import call_command
from pytest_django import DjangoAssertNumQueries

from tools.contract import ToolAnnotation, ToolIcon, ToolSpec
from tools.live_rows import LiveKind
from tools.models import ConfigVersion, ToolConfig
from tools.registry.catalogue import (
    DefaultConfig,
    declared_settings,
    ensure_tool_rows,
)
from tools.registry.settings import ToolSettings, load_tool_settings

pytestmark = pytest.mark.django_db

SCHEMA = {"type": "object", "properties": {"city": {}, "days": {}}}
WEATHER = ToolSpec(
    name="get_weather",
    provider_name="samples",
    parameters_schema=SCHEMA,
    metadata={
        "default_config": DefaultConfig(mock_enabled=True, mock_value="{city}", timeout_seconds=5)
    },
)
PLAIN = ToolSpec(name="plain")


def test_every_row_is_loaded_in_one_query(django_assert_num_queries: DjangoAssertNumQueries):
    ToolConfig.objects.create(
        name="a", mock_enabled=True, mock_value="m", description="d", timeout_seconds=9
    )
    ToolConfig.objects.create(name="b", enabled=False)
    with django_assert_num_queries(1):
        settings = load_tool_settings()
    assert settings == {
        "a": ToolSettings(
            "a", mock_enabled=True, mock_value="m", description="d", timeout_seconds=9
        ),
        "b": ToolSettings("b", enabled=False),
    }


def test_each_way_to_change_a_row_is_noticed():
    row = ToolConfig.objects.create(name="a")
    seen = [ConfigVersion.current(LiveKind.TOOLS)]

    def save() -> None:
        row.mock_value = "new"
        row.save()

    for change in (
        save,
        lambda: ToolConfig.objects.update(enabled=False),
        lambda: ToolConfig.objects.bulk_update([row], ["mock_value"]),
        lambda: ToolConfig.objects.bulk_create([ToolConfig(name="b"), ToolConfig(name="c")]),
        lambda: ToolConfig.objects.filter(name="b").delete(),
        row.delete,
    ):
        change()
        seen.append(ConfigVersion.current(LiveKind.TOOLS))
    assert seen == sorted(set(seen))
    assert list(load_tool_settings()) == ["c"]


def test_the_whole_table_cannot_be_emptied_by_a_slip():
    assert not hasattr(ToolConfig.objects, "delete")


def test_a_change_that_is_rolled_back_leaves_the_number_alone():
    ToolConfig.objects.create(name="a")
    number = ConfigVersion.current()
    with pytest.raises(Exception, match=r"(?i)unique"):
        ToolConfig.objects.create(name="a")
    assert ConfigVersion.current() == number


def test_a_new_tool_gets_a_row_with_its_own_first_values():
    assert ensure_tool_rows([WEATHER, PLAIN]) == 2
    row = ToolConfig.objects.get(name="get_weather")
    assert (row.provider_name, row.enabled, row.description) == ("samples", True, "")
    assert (row.mock_enabled, row.mock_value, row.timeout_seconds) == (True, "{city}", 5)
    plain = ToolConfig.objects.get(name="plain")
    assert (plain.mock_enabled, plain.mock_value, plain.timeout_seconds) == (False, "", 60)


def test_a_long_running_tool_begins_with_the_longest_time_limit(db: None):
    ensure_tool_rows([ToolSpec(name="t", metadata={"is_long_running": True})])
    assert ToolConfig.objects.get().timeout_seconds == 3600


def test_known_tools_cost_one_query_and_keep_what_the_operator_made_of_them(
    django_assert_num_queries: DjangoAssertNumQueries,
):
    ensure_tool_rows([WEATHER])
    ToolConfig.objects.update(mock_value="mine", enabled=False)
    with django_assert_num_queries(1):
        assert ensure_tool_rows([WEATHER]) == 0
    row = ToolConfig.objects.get()
    assert (row.mock_value, row.enabled) == ("mine", False)


def test_a_row_follows_the_declaration_in_what_only_that_knows():
    ensure_tool_rows([ToolSpec(name="get_weather")])
    assert ToolConfig.objects.get().parameter_names is None
    ensure_tool_rows([WEATHER])
    row = ToolConfig.objects.get()
    assert (row.provider_name, row.parameter_names) == ("samples", ["city", "days"])


def test_a_row_shows_what_the_tool_says_of_itself():
    spec = ToolSpec(
        name="t",
        title="T",
        description="d",
        parameters_schema={"properties": {"n": {"enum": (1, 2)}}},
        output_schema={"type": "object"},
        icons=[ToolIcon("i.png", "image/png")],
        annotation=ToolAnnotation(audience=["user"], read_only=True),
        metadata={"is_long_running": True},
    )
    ensure_tool_rows([spec])
    said = ToolConfig.objects.get().declaration
    assert (said["title"], said["description"], said["output_schema"]) == (
        "T",
        "d",
        {"type": "object"},
    )
    assert said["parameters_schema"] == {"properties": {"n": {"enum": [1, 2]}}}
    assert said["icons"] == [{"src": "i.png", "mime_type": "image/png", "sizes": []}]
    assert (said["annotation"]["read_only"], said["is_long_running"]) == (True, True)
    number = ConfigVersion.current()
    ensure_tool_rows([spec])
    assert ConfigVersion.current() == number
    ensure_tool_rows([ToolSpec(name="t")])
    assert ToolConfig.objects.get().declaration == {}


def test_a_tool_may_start_with_limits_of_its_own():
    default = DefaultConfig(scope="group", allowed="owners", calls_per_minute_person=3)
    spec = ToolSpec(name="t", metadata={"default_config": default})
    ensure_tool_rows([spec])
    row = load_tool_settings()["t"]
    assert (row.scope, row.allowed, row.calls_per_minute_person) == ("group", "owners", 3)
    assert declared_settings(spec) == row


def test_two_specs_of_one_name_make_one_row():
    ensure_tool_rows([PLAIN, ToolSpec(name="plain")])
    assert ToolConfig.objects.count() == 1


def test_new_rows_are_noticed_by_a_running_process():
    before = ConfigVersion.current(LiveKind.TOOLS)
    ensure_tool_rows([WEATHER])
    assert ConfigVersion.current(LiveKind.TOOLS) > before
    assert load_tool_settings()["get_weather"].mock_enabled


def test_a_tool_without_a_row_behaves_as_its_first_row_would():
    ensure_tool_rows([WEATHER, PLAIN])
    assert {spec.name: declared_settings(spec) for spec in (WEATHER, PLAIN)} == load_tool_settings()


def test_the_migrations_are_up_to_date():
    call_command("makemigrations", "tools", check=True, dry_run=True, verbosity=0)

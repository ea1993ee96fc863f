"""The tools that are there from the first start."""

import pytest

from tools.contract import ToolInvocation
from tools.functions.function_tool import FunctionProvider, FunctionTool
from tools.functions.samples.game_version import get_game_version
from tools.functions.samples.weather import get_weather
from tools.registry.catalogue import ensure_tool_rows
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings, load_tool_settings

SAMPLES = [
    pytest.param(get_weather, {"city": "北京"}, "北京 的天气是晴朗，温度 25°C", id="weather"),
    pytest.param(
        get_game_version, {"game": "原神"}, "原神 的最新版本是 V1.14.51", id="game version"
    ),
]


def registry_of(tool: FunctionTool, **rows: ToolSettings) -> ToolRegistry:
    registry = ToolRegistry(lambda: rows)
    registry.register_provider(FunctionProvider("samples", "builtin", [tool]))
    return registry


@pytest.mark.parametrize(("tool", "arguments", "text"), SAMPLES)
async def test_the_mock_answers_from_the_first_start(tool, arguments, text):
    assert (
        await registry_of(tool).invoke(ToolInvocation(tool.spec.name, arguments))
    ).content == text


@pytest.mark.parametrize(("tool", "arguments", "text"), SAMPLES)
async def test_the_one_argument_is_required_and_described(tool, arguments, text):
    [name] = arguments
    definition = tool.spec.llm_definition()
    assert definition["description"]
    assert definition["parameters_schema"]["required"] == [name]
    assert definition["parameters_schema"]["properties"][name]["description"]
    for given in ({}, {name: " "}):
        assert (
            await registry_of(tool).invoke(ToolInvocation(tool.spec.name, given))
        ).error_message == f"{name} 不能为空"


@pytest.mark.django_db
def test_their_rows_start_with_the_mock_on():
    ensure_tool_rows([get_weather.spec, get_game_version.spec])
    assert {
        name: (row.mock_enabled, row.mock_value) for name, row in load_tool_settings().items()
    } == {
        "get_weather": (True, "{city} 的天气是晴朗，温度 25°C"),
        "get_game_version": (True, "{game} 的最新版本是 V1.14.51"),
    }

"""The weather of a city. It has no live source yet: the row's mock value answers."""

from tools.catalogue import DefaultConfig
from tools.errors import ToolFailed
from tools.functions import NonBlank, tool


@tool(default_config=DefaultConfig(mock_enabled=True, mock_value="{city} 的天气是晴朗，温度 25°C"))
async def get_weather(city: NonBlank) -> str:
    """查询一个城市当前的天气。

    Args:
        city: 城市名，例如：北京
    """
    raise ToolFailed("没有可用的实时数据源，请如实告诉用户查不到，不要编造")

"""The latest version of a game. It has no live source yet: the row's mock value answers."""

from tools.catalogue import DefaultConfig
from tools.errors import ToolFailed
from tools.functions import NonBlank, tool


@tool(default_config=DefaultConfig(mock_enabled=True, mock_value="{game} 的最新版本是 V1.14.51"))
async def get_game_version(game: NonBlank) -> str:
    """查询一个游戏的最新版本号。

    Args:
        game: 游戏名，例如：Minecraft
    """
    raise ToolFailed("没有可用的实时数据源，请如实告诉用户查不到，不要编造")

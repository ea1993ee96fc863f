"""The latest version of a game: the row's mock value, or live from the game's own publisher where
that is known."""

from tools.contract import ToolFailed
from tools.functions.function_tool import NonBlank, tool
from tools.functions.samples.source import expect_fields, fetch_json
from tools.registry.catalogue import DefaultConfig

MINECRAFT_URL = "https://piston-meta.mojang.com/mc/game/version_manifest_v2.json"
MINECRAFT = {"minecraft", "minecraft java", "minecraft java edition", "mc", "我的世界"}


@tool(default_config=DefaultConfig(mock_enabled=True, mock_value="{game} 的最新版本是 V1.14.51"))
def get_game_version(game: NonBlank) -> str:
    """查询一个游戏的最新版本号。

    Args:
        game: 游戏名，例如：Minecraft
    """
    if " ".join(game.lower().split()) not in MINECRAFT:
        raise ToolFailed(
            f"没有 {game} 的实时数据源，目前只支持 Minecraft（我的世界）。"
            "请如实告诉用户查不到，不要编造"
        )
    with expect_fields():
        latest = fetch_json(MINECRAFT_URL)["latest"]
        return (
            f"{game} 的最新版本是 {latest['release']}（Java 版），最新快照是 {latest['snapshot']}"
        )

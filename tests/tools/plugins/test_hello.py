"""The plugin that ships, in its own process."""

import datetime
import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from tests.tools.plugins.processes import started
from tools.plugin_sdk.calls import RpcError
from tools.plugins.manifest import read_manifest

HELLO = Path(settings.BASE_DIR) / "plugins" / "hello"
CONFIG = {"points": 5, "congratulate_every": 2, "congratulation": "连续 {days} 天"}


class Store:
    """What the server would keep for the plugin, and send."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.sent: list[str] = []

    def put(self, key: str, value: Any) -> None:
        self.values[key] = value

    def gives(self) -> dict[str, Any]:
        return {
            "storage_get": lambda key: self.values.get(key),
            "storage_set": self.put,
            "send_text": lambda text: self.sent.append(text),
        }


async def test_its_tools_are_those_of_its_manifest():
    async with started(HELLO) as plugin:
        names = {tool["name"] for tool in await plugin.load()}
    assert names == {tool.name for tool in read_manifest(HELLO).tools}


async def test_dice_show_what_they_can_show():
    async with started(HELLO) as plugin:
        await plugin.load()
        text = await plugin.invoke("roll_dice", {"sides": 2, "times": 20})
    points = [int(number) for number in re.findall(r"\d+", text)]
    assert len(points) == 21
    assert set(points[:-1]) <= {1, 2}
    assert points[-1] == sum(points[:-1])


async def test_each_person_checks_in_once_a_day():
    store = Store()
    async with started(HELLO, **store.gives()) as plugin:
        await plugin.load(CONFIG)
        assert (await plugin.invoke("check_in"))["content"] == "签到成功。积分 5，连续签到 1 天。"
        assert "今天已经签到过了" in (await plugin.invoke("check_in"))["content"]
        assert (await plugin.invoke("check_in", user_id="43"))["days"] == 1


@pytest.mark.parametrize(("ago", "days", "sent"), [(1, 2, ["连续 2 天"]), (2, 1, [])])
async def test_days_in_a_row_are_counted_and_congratulated(ago, days, sent):
    store = Store()
    seen = datetime.date.today() - datetime.timedelta(days=ago)  # noqa: DTZ011 - as the plugin does
    store.put("check_in:qq:42", {"day": seen.isoformat(), "days": 1, "points": 5})
    async with started(HELLO, **store.gives()) as plugin:
        await plugin.load(CONFIG)
        result = await plugin.invoke("check_in")
    assert (result["days"], result["points"]) == (days, 10)
    assert store.sent == sent


async def test_without_storage_the_user_is_told_whom_to_ask():
    async with started(HELLO) as plugin:
        await plugin.load()
        with pytest.raises(RpcError, match="需要管理员"):
            await plugin.invoke("check_in")

"""An example plugin: a daily check-in and dice. Copy the folder, or let ``manage.py plugin new
NAME`` make one for you.

A plugin is a folder in ``plugins/`` with ``_manifest.json`` and this file. It runs in a
process of its own: when it crashes, hangs or needs too much memory, only its own calls
fail. After each change of a file it is loaded anew, while the bot goes on talking.
"""

import random
from datetime import date, timedelta
from typing import Annotated, Any

from pydantic import Field

from tools.plugin_sdk import CapabilityError, Plugin, Tool, ToolFailed


class HelloPlugin(Plugin):
    """The one plugin of this file. Each method with ``@Tool`` is a tool that the model may call."""

    # The model is told the tool's name, its docstring and its parameters, so these words decide
    # whether it calls the
    # tool well. The types are checked before the method runs: here `sides` is always a whole number
    # from 2 to 1000.
    @Tool
    def roll_dice(
        self,
        sides: Annotated[int, Field(ge=2, le=1000)] = 6,
        times: Annotated[int, Field(ge=1, le=20)] = 1,
    ) -> str:
        """掷骰子，得到真正随机的点数。用户要掷骰子、抽签、比大小时使用。

        Args:
            sides: 骰子有几面。
            times: 掷几次。
        """
        points = [random.randint(1, sides) for _ in range(times)]  # noqa: S311 - a game
        return f"点数：{'、'.join(map(str, points))}；合计 {sum(points)}"

    # An `async def` may use `await`. Everything the plugin asks of the server goes through
    # `self.ctx`, and only what the
    # operator has granted in the admin is there: this tool needs "storage", and "send.text" if it
    # is to congratulate.
    @Tool
    async def check_in(self) -> dict[str, object]:
        """为当前发言的用户签到，每人每天一次，返回积分和连续签到的天数。用户说“签到”或“打卡”时使用。"""
        # Who is speaking comes from the server. Never let the model say it: it could be talked into
        # a lie.
        key = f"check_in:{self.ctx.call.platform}:{self.ctx.call.user_id}"
        today = date.today()  # noqa: DTZ011 - the plugin's process has the server's time zone
        seen = await self._stored(key)
        if seen.get("day") == today.isoformat():
            return {
                "content": f"今天已经签到过了。积分 {seen['points']}，连续签到 {seen['days']} 天。"
            }

        days = (
            int(seen.get("days", 0)) + 1
            if seen.get("day") == (today - timedelta(days=1)).isoformat()
            else 1
        )
        points = int(seen.get("points", 0)) + int(self.config.get("points", 10))
        await self.ctx.storage.set(key, {"day": today.isoformat(), "days": days, "points": points})
        await self._congratulate(days)
        # A text is fine as a result as well. Of an object, the model is told `content`.
        return {
            "content": f"签到成功。积分 {points}，连续签到 {days} 天。",
            "points": points,
            "days": days,
        }

    async def _stored(self, key: str) -> dict[str, Any]:
        try:
            return await self.ctx.storage.get(key) or {}
        except CapabilityError as error:
            if error.code != "E_CAPABILITY_DENIED":
                raise
            # What a ToolFailed says is told to the model, who tells the user.
            raise ToolFailed(
                "签到功能还没有开通：需要管理员在后台为这个插件授予 storage 能力。"
            ) from error

    async def _congratulate(self, days: int) -> None:
        """Say something in the chat itself, beside the model's answer."""
        every = int(self.config.get("congratulate_every", 0))
        if every <= 0 or days % every:
            return
        try:
            await self.ctx.send.text(
                str(self.config["congratulation"]).replace("{days}", str(days))
            )
        except CapabilityError as error:
            self.ctx.logger.info(
                "没有祝贺：%s", error
            )  # such lines are in the admin, on the plugin's page

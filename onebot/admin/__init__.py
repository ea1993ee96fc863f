"""Bots as the operator sees and steers them."""

from onebot.admin.bots import BotAdmin, ClientEventAdmin

__all__ = ["BotAdmin", "ClientEventAdmin"]

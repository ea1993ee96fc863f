"""Who of the admin's users may reach which chats."""

from agent.access.chat_access import (
    EVERY_CHAT,
    EVERYTHING,
    NOTHING,
    ChatAccess,
    KeyedChat,
    find_access,
)

__all__ = ["EVERYTHING", "EVERY_CHAT", "NOTHING", "ChatAccess", "KeyedChat", "find_access"]

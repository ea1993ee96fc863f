"""Which permissions count for users who may not see every chat.

Whatever is not of single chats is closed to them, also a permission that a group gives them: a page
that is added is closed until it is known to show their chats alone.
"""

from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied

from agent.access.chat_access import EVERY_CHAT

#: Apps whose permissions are for users who see every chat, but for :data:`OF_CHATS`.
CLOSED_APPS = frozenset({"agent", "onebot", "tools"})
#: What can be done with the rows of single chats and accounts. The pages of these models obey
#: :func:`agent.access.find_access`.
OF_CHATS = frozenset(
    {
        *("agent.view_chatsession", "agent.change_chatsession", "agent.export_chatsession"),
        *("agent.view_message", "agent.speak_in_chat", "agent.use_playground"),
        *("agent.view_run", "agent.view_step", "agent.view_toolcall"),
        *("agent.view_approval", "agent.change_approval"),
        *("agent.view_operatoract", "agent.view_digest"),
        *("agent.view_note", "agent.add_note", "agent.change_note", "agent.delete_note"),
        *("agent.view_reminder", "agent.add_reminder", "agent.change_reminder"),
        *("agent.view_joinrequest", "agent.change_joinrequest"),
        *("agent.view_keptfile", "agent.view_description"),
        *("onebot.view_bot", "onebot.view_clientevent"),
        EVERY_CHAT,
    }
)


class OwnChatsBackend:
    """Refuses, before the other backends are asked. It signs nobody in."""

    def authenticate(self, request: object) -> None:
        """Takes no credentials."""

    def has_perm(self, user: Any, permission: str, obj: object = None) -> bool:
        """False, which leaves it to the other backends. Raises
        :class:`django.core.exceptions.PermissionDenied` for what is closed to ``user``."""
        app = permission.partition(".")[0]
        is_closed = app in CLOSED_APPS and permission not in OF_CHATS
        if is_closed and not user.has_perm(EVERY_CHAT):
            raise PermissionDenied
        return False

    ahas_perm = sync_to_async(has_perm)

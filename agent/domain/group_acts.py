"""What the account may be told to do in a chat, and against whom. Pure.

Names of tools and roles are those of the tool contract and of OneBot.
"""

from collections.abc import Mapping

from agent.domain.client_actions import RANKS, GroupRole

LEAST_ROLE: Mapping[str, GroupRole] = {
    **dict.fromkeys(("mute_member", "unmute_member", "mute_group", "kick_member"), "admin"),
    **dict.fromkeys(("set_essence", "announce", "delete_file"), "admin"),
    "set_member_title": "owner",
    **dict.fromkeys(("recall_message", "set_member_card", "list_members"), "member"),
    **dict.fromkeys(("get_member", "get_group", "list_files", "get_file", "poke"), "member"),
    **dict.fromkeys(("like", "react", "send_face", "send_music", "send_forward"), "member"),
}
"""The acts, each with the lowest role of the account in its group with which it is offered."""


def roles_for(act: str) -> tuple[str, ...]:
    """The roles of the account with which ``act`` is offered."""
    least = RANKS[LEAST_ROLE[act]]
    return tuple(role for role, rank in RANKS.items() if rank >= least)

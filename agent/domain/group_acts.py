"""What the account may be told to do in a chat, and against whom. Pure.

Names of tools and roles are those of the tool contract and of OneBot. Sentences are in Chinese and
in English.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from agent.domain.client_actions import RANKS, GroupMember, GroupRole

LIGHT = frozenset(
    [
        *("list_members", "get_member", "get_group", "list_files", "get_file", "poke"),
        *("like", "react", "send_face", "send_music", "send_forward"),
    ]
)
"""The acts for which it is enough to be there: no client is asked for the account's role."""
LEAST_ROLE: Mapping[str, GroupRole] = {
    **dict.fromkeys(("mute_member", "unmute_member", "mute_group", "kick_member"), "admin"),
    **dict.fromkeys(("set_essence", "announce", "delete_file"), "admin"),
    "set_member_title": "owner",
    **dict.fromkeys(("recall_message", "set_member_card", *LIGHT), "member"),
}
"""The acts, each with the lowest role of the account in its group with which it is offered."""
MOST_MINUTES = 43_200

#: An id of one person. No leading zero: clients read "0" as everyone.
PERSON = re.compile(r"[1-9][0-9]{0,18}|(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_-]{1,64}")

Sentence = tuple[str, str]
NOT_ONE_PERSON: Sentence = (
    "要写一个人的 QQ 号，不能是 0、all、名单或文字。",
    "This is not the number of one person.",
)
IS_SELF: Sentence = ("不能对机器人自己这样做。", "That is not done to the bot itself.")
IS_BOT_OWNER: Sentence = ("不能对机器人的主人这样做。", "That is not done to the bot's owners.")
NO_MEMBER: Sentence = (
    "{person} 不是本群成员，或者客户端没有回答。",
    "{person} is no member of this group, or the client does not answer.",
)
OWN_UNKNOWN: Sentence = (
    "不知道机器人在本群的身份：客户端没有回答。",
    "The bot's own role in this group is not known: the client does not answer.",
)
OWN_TOO_LOW: Sentence = (
    "机器人在本群的身份不够，需要是{role}。",
    "The bot's own role in this group is not enough: this takes {role}.",
)
ROLES: Mapping[str, Sentence] = {
    "owner": ("群主", "the owner of the group"),
    "admin": ("管理员", "an administrator"),
    "member": ("成员", "a member"),
}
TARGET_TOO_HIGH: Sentence = (
    "{person} 是本群的{role}，机器人的身份不比他高。",
    "{person} is {role} here, and the bot does not rank above that.",
)
ASKER_TOO_LOW: Sentence = (
    "{person} 是本群的{role}，提出者的身份不比他高。",
    "{person} is {role} here, and who asks does not rank above that.",
)
NO_CLIENT: Sentence = (
    "这里没有可以执行操作的客户端。",
    "There is no client here that could do it.",
)
UNKNOWN: Sentence = (
    "结果未知：客户端没有确认，操作可能已经执行。请勿重复，也不要说成已经完成。",
    "Nobody knows what came of it: the client did not confirm it. It is not repeated.",
)
UNSUPPORTED: Sentence = ("客户端不支持这项操作。", "The client does not know how to do that.")
REFUSED: Sentence = ("没有成功，客户端说：{words}", "Not done. The client says: {words}")


@dataclass(frozen=True, slots=True)
class Asker:
    """Who wants something done. ``is_trusted``: an owner of the bot or an operator, who may act on
    whom the account may."""

    user_id: str
    rank: int = 0
    is_trusted: bool = False

    @property
    def is_manager(self) -> bool:
        """Whether he may decide such things in the group himself."""
        return self.is_trusted or self.rank >= RANKS["admin"]


def roles_for(act: str) -> tuple[str, ...]:
    """The roles of the account with which ``act`` is offered; none where any will do."""
    if act in LIGHT:
        return ()
    least = RANKS[LEAST_ROLE[act]]
    return tuple(role for role, rank in RANKS.items() if rank >= least)


def judge_person(
    user_id: str, account: str, owners: Collection[str], *, by: str
) -> Sentence | None:
    """Why nobody acts on ``user_id``, whatever the ranks; None where somebody may. An owner may
    have something done to himself."""
    if not PERSON.fullmatch(user_id):
        return NOT_ONE_PERSON
    if user_id == account:
        return IS_SELF
    return IS_BOT_OWNER if user_id in owners and user_id != by else None


def judge_ranks(own: GroupMember, target: GroupMember, asker: Asker) -> Sentence | None:
    """Why ``asker`` may not have the account act on ``target``; None where he may. An administrator
    has nothing done to others, and a member nothing that takes more."""
    if target.rank >= own.rank:
        return TARGET_TOO_HIGH
    is_equal = target.rank >= max(asker.rank, RANKS["admin"])
    if is_equal and not asker.is_trusted and target.user_id != asker.user_id:
        return ASKER_TOO_LOW
    return None

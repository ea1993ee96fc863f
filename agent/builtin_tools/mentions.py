"""Whom a message may mention on the model's word: people, and everybody only for who may do so by
his own right."""

import re

from tools.contract import ToolExecutionContext
from tools.registry.policy import is_chat_manager

EVERYBODY = "all"
#: No zero in front: clients read "0" as everybody.
_PERSON = re.compile(r"[1-9][0-9]{0,18}")


def check_mention(user_id: str, context: ToolExecutionContext) -> str:
    """Why the sender of ``context`` cannot have ``user_id`` mentioned, as the end of a sentence; ""
    where he can."""
    if user_id == EVERYBODY:
        return (
            ""
            if is_chat_manager(context)
            else " 不能是 all：只有群主、群管理员或机器人的主人可以 @全体成员，请如实告诉用户，不要重试"
        )
    return "" if _PERSON.fullmatch(user_id) else " 只能是数字的用户 ID"

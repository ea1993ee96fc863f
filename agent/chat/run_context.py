"""On whose behalf the run of a message acts, and who its model calls count for."""

from typing import Any

from agent.domain.types import AccountSettings, IncomingMessage
from agent.record.sums.tallies import account_subject, person_subject
from agent.record.waiting.recovery import PendingMessage
from agent.run.services import RunServices
from tools.contract import ToolExecutionContext


def build_spenders(pending: PendingMessage, persona: str) -> dict[str, Any]:
    """Who the model calls for a message count for, in the fields of
    :class:`agent.llm.spending.meter.SpendScope`."""
    chat, sender = pending.message.chat, pending.message.sender_id
    return {
        "account": account_subject(chat),
        "chat": chat.place,
        "person": person_subject(chat, sender),
        "is_owner": sender in pending.account.owners,
        "is_outcome": pending.is_later_result,
        "persona": persona,
        "tool": "",
    }


def build_tool_context(
    message: IncomingMessage, account: AccountSettings, services: RunServices
) -> ToolExecutionContext:
    """Where tools of this run act: the chat of the message, on behalf of its sender."""
    chat = message.chat
    is_group = chat.kind == "group"
    role = message.sender_role if account.believes_senders else ""
    return ToolExecutionContext(
        session_id=chat.address,
        stream_id=chat.address,
        is_group_chat=is_group,
        group_id=chat.peer_id if is_group else "",
        user_id=message.sender_id,
        platform=chat.platform,
        metadata={
            "account": chat.account,
            "message_id": message.message_id,
            "owners": account.owners,
            "sender_role": role,
        },
        owners=account.owners,
        sender_role=role,
        believes_sender=account.believes_senders,
        services=services,
    )

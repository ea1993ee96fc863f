"""The shape of a final answer, and what decisions over waiting calls are answered. Pure."""

from agent.domain.persona import Persona
from agent.domain.types import IncomingMessage, MessagePart
from agent.record.approvals import ApprovalOutcome

#: The account number that stands for every anonymous member of a group; mentioning it has no
#: effect.
ANONYMOUS = "80000000"


def build_final_parts(message: IncomingMessage, text: str, persona: Persona) -> list[MessagePart]:
    """``text`` as the answer to ``message``: in groups with a quote and a mention, as ``persona``
    speaks."""
    if message.chat.kind != "group":
        return [MessagePart("plain", text=text)]
    parts = []
    if persona.quote and message.message_id:
        parts.append(MessagePart("quote", message_id=message.message_id))
    if persona.mention and message.sender_id != ANONYMOUS:
        parts.append(MessagePart("mention_user", mention_user_id=message.sender_id))
        text = f" {text}"
    return [*parts, MessagePart("plain", text=text)]


def approval_outcome_text(outcome: ApprovalOutcome, code: str, problem: str) -> str:
    """The reply to the person who decided."""
    match outcome:
        case ApprovalOutcome.APPROVED:
            return f"已批准 {code}，正在执行。"
        case ApprovalOutcome.REFUSED:
            return f"已拒绝 {code}。"
        case ApprovalOutcome.NOT_AN_OWNER:
            return f"只有机器人主人可以处理 {code}。"
        case ApprovalOutcome.NOT_SHOWN:
            return (
                f"{code} 的参数没有全部显示在会话中，不能在这里批准。"
                f"请在管理后台查看全部参数后处理，或在这里回复「拒绝 {code}」。"
            )
        case ApprovalOutcome.INVALID:
            return f"{code} 的参数有误，仍在等待：\n{problem}"
        case ApprovalOutcome.UNKNOWN:
            return f"没有等待批准的调用 {code}，它可能已经处理过，或者已经过期。"

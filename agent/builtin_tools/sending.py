"""What the model is told of one message that a tool has sent."""

from agent.builtin_tools.send_message import UNCONFIRMED
from agent.domain.states import MessageState
from agent.domain.types import Delivery
from tools.contract import ToolExecutionResult


def delivery_result(name: str, delivery: Delivery, confirmed: str) -> ToolExecutionResult:
    """The result of a tool whose message came to ``delivery``: never to send again what may be
    there."""
    if delivery.state == MessageState.FAILED:
        return ToolExecutionResult(
            name, success=False, error_message=f"消息发送失败: {delivery.error}"
        )
    return ToolExecutionResult(
        name,
        success=True,
        content=UNCONFIRMED if delivery.state == MessageState.UNKNOWN else confirmed,
    )

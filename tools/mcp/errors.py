"""What can go wrong between us and an MCP server, by what can be done about it.

::

    McpClientError              str(error) is for the operator; ``text`` is for the model
    ├── CallNotSentError        the connection was lost before the call: it did not run, and may be
    │                           repeated
    ├── ConnectionLostError     the connection was lost during the call: it may or may not have run
    ├── ServerRefusedError      the server answered with a protocol error: an ordinary failure
    ├── ProtocolViolationError  the answer of the server breaks the protocol
    ├── AnswerTimeoutError      the time is up; the server was notified of the cancellation
    ├── ServerUnavailableError  there is no connection, and nothing was tried
    └── PermanentFailureError   there will be no connection until the row is changed
"""

from django.utils.translation import gettext as _


class McpClientError(Exception):
    """A call or a connection that came to nothing."""

    text = "与 MCP 服务器通信失败"

    def __init__(self, operator: str, text: str = "") -> None:
        super().__init__(operator)
        self.text = text or self.text


class CallNotSentError(McpClientError):
    """The server cannot have seen the call."""

    text = "MCP 服务器连接不上，本次调用没有发出"


class ConnectionLostError(McpClientError):
    """The server may have seen the call."""

    text = "与 MCP 服务器的连接中断，本次调用可能已经执行，也可能没有"


class ServerRefusedError(McpClientError):
    """An answer of the server, in its own words."""


class ProtocolViolationError(McpClientError):
    """An answer that cannot be read."""

    text = "MCP 服务器返回的结果不符合协议，无法读取"


class ServerUnavailableError(McpClientError):
    """The server is away, or rests after failures."""

    text = "MCP 服务器目前不可用"


class AnswerTimeoutError(McpClientError):
    """No answer came in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            _("No answer within %s s.") % f"{seconds:g}",
            f"超过 {seconds:g} 秒没有结果；本次调用可能已经在服务器上执行",
        )


class PermanentFailureError(McpClientError):
    """Trying again would be of no use."""

"""What can go wrong with a tool, and who reads it.

::

    ToolError
    ├── InvalidDeclaration    a function cannot be offered as a tool; raised at its declaration
    ├── InvalidArguments      the model wrote arguments the tool does not take, and may try again
    ├── CallRefused           the call may not be made
    ├── ApprovalNeeded        the call has to wait for an owner's approval; the caller asks
    └── ToolFailed            the tool could not do it

Their texts, except the first one's, are written for the model. Any other exception that
leaves a tool is a bug of the tool: it is logged with its traceback and reported as a
failure.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tools.refusals import ToolRefusal


class ToolError(Exception):
    """Something about a tool is wrong in a way that its author or the model can act on."""


class InvalidDeclaration(ToolError):  # noqa: N818 - it says what is wrong
    """A function cannot be described to a model. Raised where the function is declared."""


class InvalidArguments(ToolError):  # noqa: N818 - as above
    """Arguments that must not reach a tool; ``problems`` are one line each, in the model's words.

    ``arguments`` are as far as they could be read.
    """

    def __init__(self, problems: Sequence[str], arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)
        self.arguments = dict(arguments or {})


class CallRefused(ToolError):  # noqa: N818 - as above
    """The tool's row does not permit the call."""

    def __init__(self, refusal: ToolRefusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


class ApprovalNeeded(ToolError):  # noqa: N818 - as above
    """The call is valid but needs an owner's approval; ``arguments`` are checked and coerced."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__("the call needs approval")
        self.arguments = arguments


class ToolFailed(ToolError):  # noqa: N818 - as above
    """The tool cannot do what was asked. ``text`` is for the model."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

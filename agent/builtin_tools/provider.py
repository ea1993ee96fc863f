"""The provider of the run loop's own tools."""

from collections.abc import Iterable

from agent.run.flow import PROVIDER_NAME
from tools.functions.function_tool import FunctionTool
from tools.functions.provider import FunctionProvider

PROVIDER_TYPE = "builtin"


class MaisakaBuiltinToolProvider(FunctionProvider):
    """Function tools under the name by which the loop knows its own."""

    def __init__(self, tools: Iterable[FunctionTool]) -> None:
        super().__init__(PROVIDER_NAME, PROVIDER_TYPE, tools)

"""``tool_search``: finds the tools that the model was only told the names of."""

from agent.builtin_tools.entry import BuiltinTool
from agent.run.toolbox import FOUND, TOOLBOX, FoundTools, RunToolset
from tools.contract import (
    JsonSchema,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)
from tools.errors import InvalidArguments
from tools.registry.discovery import SEARCH_TOOL, format_tool_names
from tools.registry.search import rank_tools
from tools.text.search_terms import normalize_text

LIMIT, HIGHEST_LIMIT = 5, 20
NOTHING_FOUND = "没有找到与“{query}”相关的工具。可以换一种说法，或者直接用工具的名称搜索。"
NEW, KNOWN = (
    "新发现的工具（从下一步起可以直接调用）：",
    "此前已经发现的工具（现在就可以直接调用）：",
)
#: Characters of a query that are repeated.
SHOWN_QUERY = 100

PARAMETERS: JsonSchema = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "要找的工具的名称，或者描述它的用途的关键词"},
        "limit": {
            "type": "integer",
            "description": f"最多返回几个，1 到 {HIGHEST_LIMIT}，默认 {LIMIT}",
        },
    },
    "required": ["query"],
}


async def tool_search(
    invocation: ToolInvocation, context: ToolExecutionContext
) -> ToolExecutionResult:
    """Look among the deferred tools of this run. Raises :class:`InvalidArguments` for a query of
    nothing but white space."""
    query = invocation.arguments["query"].strip()
    if not normalize_text(query):
        raise InvalidArguments(["query 不能为空"])
    limit = invocation.arguments.get("limit")
    limit = LIMIT if limit is None else min(max(limit, 1), HIGHEST_LIMIT)
    toolbox: RunToolset | None = context.metadata.get(
        TOOLBOX
    )  # none where an operator tries the tool by hand
    matched = rank_tools(query, await toolbox.deferred(context))[:limit] if toolbox else []
    new = [tool for tool in matched if toolbox and tool.name not in toolbox.discovered]
    return ToolExecutionResult(
        SEARCH_TOOL,
        success=True,
        content=_told(query, new, [tool for tool in matched if tool not in new]),
        structured_content={
            "query": query,
            "matched_tool_names": [tool.name for tool in matched],
            "newly_discovered_tool_names": [tool.name for tool in new],
        },
        metadata={FOUND: FoundTools(tuple(tool.name for tool in new))},
    )


def _told(query: str, new: list[ToolSpec], known: list[ToolSpec]) -> str:
    groups = [(NEW, new), (KNOWN, known)]
    lines = [
        line for heading, tools in groups if tools for line in (heading, *format_tool_names(tools))
    ]
    return "\n".join(lines) or NOTHING_FOUND.format(query=query[:SHOWN_QUERY])


TOOL = BuiltinTool(
    name=SEARCH_TOOL,
    description="搜索没有列出参数的工具。找到的工具从下一步起可以直接调用，在本会话中一直有效。",
    parameters=PARAMETERS,
    handler=tool_search,
    traits=frozenset({"repeatable"}),
)

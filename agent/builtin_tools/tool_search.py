"""``tool_search``: finds the tools of which the model has only the names."""

from typing import Annotated

from agent.run.services import FOUND, FoundTools, get_services
from tools.contract import InvalidArguments, ToolExecutionContext, ToolExecutionResult
from tools.functions.function_tool import tool
from tools.registry.offers import SEARCH_TOOL, format_tool_names, rank_tools
from tools.text.search_terms import normalize_text

LIMIT, HIGHEST_LIMIT = 5, 20
NOTHING_FOUND = "没有找到与“{query}”相关的工具。可以换一种说法，或者直接用工具的名称搜索。"
NEW = "新发现的工具（从下一步起可以直接调用）："
KNOWN = "此前已经发现的工具（现在就可以直接调用）："
#: Characters of a query that are repeated.
SHOWN_QUERY = 100


@tool(
    name=SEARCH_TOOL,
    description="搜索没有列出参数的工具，提醒和定时任务的工具（set_reminder 等）也在其中。"
    "找到的工具从下一步起可以直接调用，在本会话中一直有效。",
    lenient=True,
    traits=("repeatable",),
)
async def tool_search(
    context: ToolExecutionContext,
    query: Annotated[str, "要找的工具的名称，或者描述它的用途的关键词"],
    limit: Annotated[int, f"最多返回几个，1 到 {HIGHEST_LIMIT}，默认 {LIMIT}"] = LIMIT,
) -> ToolExecutionResult:
    """Look among the deferred tools of this run. Raises :class:`InvalidArguments` for a query of
    nothing but white space."""
    query = query.strip()
    if not normalize_text(query):
        raise InvalidArguments(["query 不能为空"])
    toolset = get_services(context).toolset  # none where an operator tries the tool by hand
    deferred = await toolset.deferred(context) if toolset else []
    discovered = toolset.discovered if toolset else ()
    matched = rank_tools(query, deferred)[: min(max(limit, 1), HIGHEST_LIMIT)]
    new = [spec for spec in matched if spec.name not in discovered]
    known = [spec for spec in matched if spec.name in discovered]
    lines = [NEW, *format_tool_names(new)] if new else []
    lines += [KNOWN, *format_tool_names(known)] if known else []
    names = [spec.name for spec in new]
    return ToolExecutionResult(
        SEARCH_TOOL,
        success=True,
        content="\n".join(lines) or NOTHING_FOUND.format(query=query[:SHOWN_QUERY]),
        structured_content={
            "query": query,
            "matched_tool_names": [spec.name for spec in matched],
            "newly_discovered_tool_names": names,
        },
        metadata={FOUND: FoundTools(tuple(names))},
    )

"""The pages of MCP servers."""

from tools.mcp.admin.servers import McpServerAdmin

__all__ = ["McpServerAdmin"]

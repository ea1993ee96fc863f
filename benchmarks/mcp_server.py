"""A small MCP server over stdio by the official library, with one tool."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("bench", log_level="CRITICAL")


@server.tool()
def weather(city: str, days: int = 1) -> str:
    """The weather of a city."""
    return f"{city}: sunny for {days} days"


if __name__ == "__main__":
    server.run("stdio")

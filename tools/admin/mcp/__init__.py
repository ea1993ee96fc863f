"""The pages of MCP servers."""

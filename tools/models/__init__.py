"""The rows that configure tools and where they come from: what the admin edits and the next message obeys."""

from tools.models.http_tool import HttpTool
from tools.models.live import ConfigVersion, LiveModel, LiveQuerySet
from tools.models.mcp_server import McpServer, McpServerStatus
from tools.models.plugin import Plugin, PluginCrash, PluginLogLine, PluginStatus, PluginValue
from tools.models.secret import Secret
from tools.models.tool_config import ToolConfig, ToolConfigChange

__all__ = [
    "ConfigVersion",
    "HttpTool",
    "LiveModel",
    "LiveQuerySet",
    "McpServer",
    "McpServerStatus",
    "Plugin",
    "PluginCrash",
    "PluginLogLine",
    "PluginStatus",
    "PluginValue",
    "Secret",
    "ToolConfig",
    "ToolConfigChange",
]

"""The rows that configure tools and where they come from: what the admin edits and the next message
obeys."""

from tools.http_tools.models import HttpTool
from tools.live_rows import ConfigVersion, LiveModel, LiveQuerySet
from tools.mcp.models import McpServer, McpServerStatus
from tools.models.change import ToolConfigChange
from tools.models.kept_list import KeptList
from tools.models.tool_config import ToolConfig
from tools.plugins.models import Plugin, PluginCrash, PluginLogLine, PluginStatus, PluginValue
from tools.secrets.models import Secret

__all__ = [
    "ConfigVersion",
    "HttpTool",
    "KeptList",
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

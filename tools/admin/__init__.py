"""Tools as the operator sees and steers them: the rows, and who changed what in them."""

from tools.admin.changes import ToolConfigChangeAdmin
from tools.admin.configs import ToolConfigAdmin
from tools.admin.http_tools.pages import HttpToolAdmin
from tools.admin.http_tools.secrets import SecretAdmin
from tools.admin.mcp.servers import McpServerAdmin
from tools.admin.plugins.pages import PluginAdmin, PluginValueAdmin

__all__ = [
    "HttpToolAdmin",
    "McpServerAdmin",
    "PluginAdmin",
    "PluginValueAdmin",
    "SecretAdmin",
    "ToolConfigAdmin",
    "ToolConfigChangeAdmin",
]

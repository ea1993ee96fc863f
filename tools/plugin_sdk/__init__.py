"""What a plugin imports: ``from tools.plugin_sdk import Plugin, Tool``.

Names are those of MaiBot's SDK where it has them. A plugin runs in a process of its own
and reaches the server through ``ctx`` alone; nothing here needs Django or settings.
"""

from tools.contract import ToolFailed
from tools.plugin_sdk.calls import Call
from tools.plugin_sdk.context import CapabilityError, Context, ctx
from tools.plugin_sdk.declarations import Action, MaiBotPlugin, Tool
from tools.plugin_sdk.types import ActivationType, ChatMode, ToolParameterInfo, ToolParamType

SDK_VERSION = "2.0.0"
"""Compared with ``sdk`` in manifests. The names are those of MaiBot's SDK 2."""
Plugin = MaiBotPlugin
CONFIG_RELOAD_SCOPE_SELF = "self"

__all__ = [
    "CONFIG_RELOAD_SCOPE_SELF",
    "SDK_VERSION",
    "Action",
    "ActivationType",
    "Call",
    "CapabilityError",
    "ChatMode",
    "Context",
    "MaiBotPlugin",
    "Plugin",
    "Tool",
    "ToolFailed",
    "ToolParamType",
    "ToolParameterInfo",
    "ctx",
]

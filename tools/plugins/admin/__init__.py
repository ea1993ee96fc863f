"""The pages of plugins."""

from tools.plugins.admin.pages import PluginAdmin, PluginValueAdmin

__all__ = ["PluginAdmin", "PluginValueAdmin"]

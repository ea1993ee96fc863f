from importlib import import_module

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

FEATURES_WITH_PAGES = ("http_tools", "mcp", "plugins")
"""Rooms that bring admin pages of their own, which Django does not find: it looks into
``tools.admin``."""


class ToolsConfig(AppConfig):
    name = "tools"
    verbose_name = _("Tools")

    def ready(self) -> None:
        for feature in FEATURES_WITH_PAGES:
            import_module(f"tools.{feature}.admin")

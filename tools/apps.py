from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ToolsConfig(AppConfig):
    name = "tools"
    verbose_name = _("Tools")

    def ready(self) -> None:
        """Load the pages that rooms bring along; Django looks into ``tools.admin`` alone."""
        import tools.http_tools.admin
        import tools.mcp.admin
        import tools.plugins.admin  # noqa: F401

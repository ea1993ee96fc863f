"""Tools as the operator sees and steers them: the rows, and who changed what in them."""

from tools.admin.configs import ToolConfigAdmin
from tools.admin.settings_page import ToolConfigChangeAdmin

__all__ = ["ToolConfigAdmin", "ToolConfigChangeAdmin"]

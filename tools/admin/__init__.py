"""Tools as the operator sees and steers them: the rows, and who changed what in them."""

from tools.admin.changes import ToolConfigChangeAdmin
from tools.admin.configs import ToolConfigAdmin

__all__ = ["ToolConfigAdmin", "ToolConfigChangeAdmin"]

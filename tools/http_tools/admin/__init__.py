"""The pages of HTTP tools and of secrets."""

from tools.http_tools.admin.pages import HttpToolAdmin
from tools.http_tools.admin.secrets import SecretAdmin

__all__ = ["HttpToolAdmin", "SecretAdmin"]

"""The rows of HTTP tools, read. Synchronous; for the thread that talks to the database."""

from tools.http_tools.settings import FIELDS, HttpToolSettings
from tools.models import HttpTool


def load_http_tools() -> list[HttpToolSettings]:
    """Every row, switched off ones as well, by name."""
    return [
        HttpToolSettings(**values) for values in HttpTool.objects.values(*FIELDS).order_by("name")
    ]

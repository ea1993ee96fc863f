"""Which HTTP tools name a secret, for the pages of both."""

from collections.abc import Iterable

from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from tools.admin.record_pages import record_link
from tools.http_tools.row_templates import row_templates
from tools.http_tools.settings import to_http_tool_settings
from tools.http_tools.templates import parse_template, template_secrets
from tools.models import HttpTool

TOOLS_READ = 1_000
"""HTTP tools that are looked through; more are no longer a list that somebody made."""


def tools_by_secret() -> dict[str, list[HttpTool]]:
    """The tools that name each secret, by the secret's name, in the order of their names."""
    uses: dict[str, list[HttpTool]] = {}
    for tool in HttpTool.objects.order_by("name")[:TOOLS_READ]:
        for name in secret_names_of(tool):
            uses.setdefault(name, []).append(tool)
    return uses


def secret_names_of(tool: HttpTool) -> set[str]:
    """The names of the secrets that ``tool`` carries, whether there are such secrets or not."""
    return {
        name
        for _field, text in row_templates(to_http_tool_settings(tool))
        for name in template_secrets(parse_template(text))
    }


def tool_links(tools: Iterable[HttpTool]) -> SafeString | str:
    """Links to the pages of ``tools``; "-" for none."""
    return (
        format_html_join(
            ", ", "{}", ((record_link("tools_httptool", tool.pk, tool.name),) for tool in tools)
        )
        or "-"
    )

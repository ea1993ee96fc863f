"""The connection status of a server in this process: as a row for the admin, and as text for the
model."""

from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from tools.mcp.specs import ToolCatalogue
from tools.models import McpServer, McpServerStatus, ToolConfig
from tools.registry.catalogue import MOST_ROWS
from tools.text.untrusted import clean_line, clean_quote

State = McpServerStatus.ConnectionState
SHADOWED = gettext_noop("Another server has a tool of that name.")
GONE_SECONDS = 60
"""A process that has not been seen for so long no longer works with any server."""


@dataclass(frozen=True, slots=True)
class ConnectionStatus:
    """One row of :class:`tools.models.McpServerStatus`.

    ``about``: the server's description of itself (``name``, ``title``, ``version``, ``protocol``,
    ``instructions``) and ``left_out``, the number of tools that are not offered. ``tools``: first
    those that are, each with ``name``, ``original`` (the server's own name), ``title`` and
    ``description``; then some of those that are not, each with ``original`` and ``left_out``, the
    reason.
    """

    server_id: int
    process_id: str
    state: str = State.CONNECTING.value
    error: str = ""
    error_at: datetime | None = None
    connected_at: datetime | None = None
    retry_at: datetime | None = None
    latency_ms: float | None = None
    about: dict[str, Any] = field(default_factory=dict)
    tools: list[dict[str, Any]] = field(default_factory=list)


def describe_tools(catalogue: ToolCatalogue, shadowed: frozenset[str]) -> list[dict[str, Any]]:
    """``ConnectionStatus.tools`` of a server whose tools in ``shadowed`` belong to another."""
    offered = [
        {
            "name": spec.name,
            "original": clean_line(catalogue.originals[spec.name], 200),
            "title": spec.title,
            "description": spec.description,
        }
        for spec in catalogue.specs
        if spec.name not in shadowed
    ]
    left_out = [
        {"original": clean_line(catalogue.originals[name], 100), "left_out": _(SHADOWED)}
        for name in sorted(shadowed)
    ]
    omitted = [{"original": tool.name, "left_out": tool.reason} for tool in catalogue.left_out]
    return offered + left_out + omitted


def write_statuses(status: ConnectionStatus) -> None:
    """Write a status, unless its server was deleted meanwhile."""
    if McpServer.objects.filter(pk=status.server_id).exists():
        McpServerStatus.objects.update_or_create(
            server_id=status.server_id,
            process_id=status.process_id,
            defaults=asdict(status) | {"seen_at": timezone.now()},
        )


def renew_statuses(process_id: str) -> None:
    """Report that a process still runs, and delete the rows of those that do not."""
    now = timezone.now()
    McpServerStatus.objects.filter(process_id=process_id).update(seen_at=now)
    McpServerStatus.objects.filter(seen_at__lt=now - timedelta(seconds=GONE_SECONDS)).delete()


def delete_statuses(process_id: str, server_id: int | None) -> None:
    """Forget how a process stood with the server, or with all."""
    rows = McpServerStatus.objects.filter(process_id=process_id)
    (rows if server_id is None else rows.filter(server_id=server_id)).delete()


def load_known_tool_names() -> frozenset[str]:
    """The tools of all servers that ever were there, as far as they are not too many. For the
    database thread."""
    names = ToolConfig.objects.filter(provider_name="mcp").values_list("name", flat=True)
    return frozenset(names[:MOST_ROWS])


def absence_message(tool: str, server: str, why: str) -> str:
    """The sentence for a model that called ``tool``, which is not there."""
    return (
        f"工具 {tool} 来自 MCP 服务器“{clean_quote(server)}”，{why}。"
        "请先用其他方法，或如实告诉用户。"
    )


def state_message(state: str, seconds: float) -> str:
    """Why a server in ``state`` has no tools now, and when it is tried again."""
    soon = f"约 {max(1, round(seconds))} 秒后自动重试" if seconds else "稍后自动重试"
    match state:
        case State.STOPPED:
            return "该服务器已停止，需要管理员处理后才能使用"
        case State.WAITING:
            return f"该服务器目前连接不上，{soon}"
        case State.CONNECTING:
            return "该服务器正在连接，请稍后再试"
        case _:
            return "该服务器现在没有提供这个工具"


def breaker_message(seconds: float) -> str:
    """The same of a server that is connected and fails."""
    return f"该服务器最近多次调用失败，已暂停使用，约 {max(1, round(seconds))} 秒后可以再试"

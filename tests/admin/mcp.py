"""MCP servers in the admin: rows, forms as browsers send them, and people with different rights."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from tests.admin.record import refused, signed_in
from tools.models import McpServer, McpServerStatus

SERVERS = "/admin/tools/mcpserver/"


def program(name: str = "files", **fields: Any) -> McpServer:
    usual: dict[str, Any] = {"transport": "stdio", "command": "npx", "arguments": ["-y", "server"]}
    return McpServer.objects.create(name=name, **usual | fields)


def address(name: str = "far", **fields: Any) -> McpServer:
    usual: dict[str, Any] = {"transport": "streamable_http", "url": "https://93.184.216.34/mcp"}
    return McpServer.objects.create(name=name, **usual | fields)


def status(
    server: McpServer, process_id: str = "p1", *, seconds_ago: float = 0, **fields: Any
) -> McpServerStatus:
    seen = timezone.now() - timedelta(seconds=seconds_ago)
    usual: dict[str, Any] = {"state": "connected", "latency_ms": 12.4}
    return McpServerStatus.objects.create(
        server=server, process_id=process_id, seen_at=seen, **usual | fields
    )


def form(**changes: Any) -> dict[str, Any]:
    """What a browser sends of a server's page; None leaves a field out, as a box that is not
    ticked."""
    fields: dict[str, Any] = {
        "name": "far",
        "enabled": "on",
        "transport": "streamable_http",
        "url": "https://93.184.216.34/mcp",
    }
    fields |= dict.fromkeys(
        ("command", "arguments", "environment", "headers", "include", "exclude", "name_prefix"), ""
    )
    fields |= {"connect_seconds": 30, "call_seconds": 60}
    return {name: value for name, value in (fields | changes).items() if value is not None}


def program_form(**changes: Any) -> dict[str, Any]:
    return form(
        **{
            "name": "files",
            "transport": "stdio",
            "url": "",
            "command": "npx",
            "arguments": "-y\r\nserver",
        }
        | changes
    )


def person(*codenames: str, is_superuser: bool = False) -> Client:
    """A browser of somebody with just these permissions of ``tools``; a superuser was given them
    besides."""
    account = User.objects.create_user(
        f"user{User.objects.count()}", is_staff=True, is_superuser=is_superuser
    )
    account.user_permissions.set(
        Permission.objects.filter(codename__in=codenames, content_type__app_label="tools")
    )
    account.user_permissions.add(Permission.objects.get(codename="view_every_chat"))
    return signed_in(account)


def warden() -> Client:
    """A superuser who may run commands."""
    return person("run_commands", is_superuser=True)


def editor() -> Client:
    """Somebody who may do everything with servers but run commands."""
    return person(
        *(f"{action}_mcpserver" for action in ("view", "add", "change", "delete")),
        "view_toolconfig",
    )


def viewer() -> Client:
    return person("view_mcpserver")


def saved(client: Client, where: McpServer | None, fields: dict[str, Any]) -> str:
    """What the form says against what is sent; "" once it was saved."""
    return refused(client, f"{SERVERS}{where.pk}/change/" if where else f"{SERVERS}add/", fields)

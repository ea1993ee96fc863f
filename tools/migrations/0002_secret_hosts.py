"""Secrets name the hosts that they may be sent to; those that are there, the hosts of the tools that use them."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import django.core.validators
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_PIECE = re.compile(r"\{\{|\}\}|\{secret:([^{}]*)\}")
_USUAL_PORTS = {"http": 80, "https": 443}


def name_hosts(apps: Apps, _editor: BaseDatabaseSchemaEditor) -> None:
    """What a secret is used for today goes on; one that no tool uses is sent nowhere until somebody names its hosts."""
    hosts: dict[str, set[str]] = {}
    for tool in apps.get_model("tools", "HttpTool").objects.order_by("pk"):
        if host := _host(tool.url):
            for name in _secrets(tool):
                hosts.setdefault(name, set()).add(host)
    for secret in apps.get_model("tools", "Secret").objects.filter(name__in=hosts):
        secret.hosts = "\n".join(sorted(hosts[secret.name]))
        secret.save(update_fields=["hosts"])


def _secrets(tool: Any) -> Iterator[str]:
    texts = [tool.url, tool.body, json.dumps([tool.query, tool.headers], ensure_ascii=False)]
    return (found[1] for text in texts for found in _PIECE.finditer(text) if found[1])


def _host(url: str) -> str:
    """As :mod:`tools.secret_hosts` writes it; "" for what cannot be requested."""
    try:
        parts = urlsplit(url.strip())
        port, name = parts.port, (parts.hostname or "").removesuffix(".")
        name = name if name.isascii() else name.encode("idna").decode()
    except ValueError:
        return ""
    if parts.scheme not in _USUAL_PORTS or not re.fullmatch(r"[a-z0-9._-]+|[0-9a-f:.]+", name):
        return ""
    name = f"[{name}]" if ":" in name else name
    clear = "http://" if parts.scheme == "http" else ""
    return f"{clear}{name}" + ("" if port in (None, _USUAL_PORTS[parts.scheme]) else f":{port}")


class Migration(migrations.Migration):
    dependencies = [("tools", "0001_initial")]

    operations = [
        migrations.AddField(
            "secret",
            "hosts",
            models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="Where it may be sent; nowhere while this is empty.",
                verbose_name="hosts",
            ),
        ),
        migrations.AlterField(
            "secret",
            "name",
            models.CharField(
                help_text="HTTP tools and MCP servers name it as {secret:NAME}.",
                max_length=64,
                unique=True,
                validators=[
                    django.core.validators.RegexValidator(
                        "^[A-Za-z][A-Za-z0-9_]*\\Z", "Letters, digits and _, beginning with a letter."
                    )
                ],
                verbose_name="name",
            ),
        ),
        migrations.RunPython(name_hosts, migrations.RunPython.noop, elidable=True),
    ]

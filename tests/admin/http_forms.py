"""What a browser sends of the pages of HTTP tools."""

from typing import Any

from django.test import Client, override_settings

from tools.models import HttpTool, Secret

TOOLS = "/admin/tools/httptool/"
SECRETS = "/admin/tools/secret/"
LEAST: dict[str, Any] = {
    "name": "get_weather",
    "enabled": "on",
    "description": "查天气",
    "method": "GET",
    "url": "https://api.example.com/weather",
    "body_kind": "none",
    "body": "",
    "answer_kind": "text",
    "answer_path": "",
    "timeout_seconds": 30,
    "max_kib": 1024,
    "cache_seconds": 0,
    "parameters_schema-as": "rows",
    "parameters_schema-json": "",
}


def table(name: str, *rows: dict[str, str]) -> dict[str, str]:
    """The inputs of a small table."""
    return {name: "rows"} | {
        f"{name}-{number}-{column}": text
        for number, row in enumerate(rows)
        for column, text in row.items()
    }


def arguments(*rows: dict[str, str]) -> dict[str, str]:
    return table("parameters_schema-row", *rows)


def entries(name: str, **templates: str) -> dict[str, str]:
    """The rows of ``query``, ``headers`` or ``form_fields``."""
    return table(
        name, *({"name": key, "template": template} for key, template in templates.items())
    )


def tool_form(**changes: Any) -> dict[str, Any]:
    """A whole page; None leaves a field out, as a box that is not ticked."""
    tables = dict.fromkeys(("query", "headers", "form_fields", "parameters_schema-row"), "rows")
    return {name: value for name, value in (LEAST | tables | changes).items() if value is not None}


def save(client: Client, row: HttpTool | None = None, /, **changes: Any) -> str:
    """Send the page; "" when it was saved, otherwise the page that came back."""
    response = client.post(
        f"{TOOLS}{row.pk}/change/" if row else f"{TOOLS}add/", tool_form(**changes)
    )
    return "" if response.status_code == 302 else response.content.decode()


def secret(
    name: str = "key", value: str = "s3cr3t-value", hosts: str = "api.example.com\na.example"
) -> Secret:
    made = Secret(name=name, hosts=hosts)
    made.value = value
    made.save()
    return made


def broken_secret(name: str = "key") -> Secret:
    """A secret that was sealed under another installation's key."""
    with override_settings(SECRET_KEY="another"):
        return secret(name)

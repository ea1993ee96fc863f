"""Rows of HTTP tools for tests: the least that is one, with what a test changes."""

from typing import Any

from tools.fetch.request import FetchRequest
from tools.http_tools.tool import request_template
from tools.http_tools.validation import HttpToolSettings
from tools.models import Secret
from tools.secrets.hosts import SecretHosts
from tools.secrets.masked import SecretValues

LEAST: dict[str, Any] = {
    "name": "weather",
    "enabled": True,
    "description": "查天气",
    "method": "GET",
    "url": "https://api.example.com/v1/weather",
    "body_kind": "none",
    "answer_kind": "text",
    "answer_path": "",
    "timeout_seconds": 30,
    "max_kib": 1024,
    "cache_seconds": 0,
    "query": {},
    "headers": {},
    "body": "",
    "parameters_schema": {},
}


def settings(*names: str, **changes: Any) -> HttpToolSettings:
    """A row whose arguments are ``names``, of any type and none required."""
    schema = {"type": "object", "properties": {name: {} for name in names}} if names else {}
    return HttpToolSettings(**{"pk": 1, **LEAST, "parameters_schema": schema, **changes})


def request(
    row: dict[str, Any], arguments: dict[str, Any] | None = None, **secrets: str
) -> FetchRequest:
    """What the row that holds ``row`` sends."""
    made = settings(**row)
    hosts = dict.fromkeys(secrets, SecretHosts.of_urls([made.url]))
    return request_template(made).request(arguments or {}, SecretValues(secrets, hosts=hosts))


def enter_secrets(hosts: str = "", **values: str) -> None:
    """Give secrets their values and hosts, whether they are there or not."""
    rows: Any = Secret.objects
    for name, value in values.items():
        secret = rows.filter(name=name).first() or Secret(name=name)
        secret.value, secret.hosts = value, hosts or secret.hosts
        secret.save()

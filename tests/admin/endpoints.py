"""The form of a model endpoint as a browser sends it."""

from typing import Any

from django.test import Client

from agent.models import ModelEndpoint
from tests.admin.record import faults

KEY = "sk-a-key-that-nobody-may-see"
ADD = "/admin/agent/modelendpoint/add/"


def form(**changes: Any) -> dict[str, Any]:
    """What a browser sends; None leaves a field out, as a box that is not ticked."""
    fields: dict[str, Any] = {
        "preset": "other",
        "base_url": "https://api.example.com/v1",
        "keys": KEY,
        "model": "m1",
        "name": "First",
        "enabled": "on",
        "can_chat": "on",
        "can_tools": "on",
        "thinking": "",
        "piece_seconds": 60,
        "currency": "CNY",
        "text_calls": "auto",
        "position": 100,
        "extra_body": "{}",
    }
    return {name: value for name, value in (fields | changes).items() if value is not None}


def row(**values: Any) -> ModelEndpoint:
    usual: dict[str, Any] = {"name": "First", "base_url": "https://api.example.com/v1"}
    made = ModelEndpoint(**usual | {"model": "m1"} | values)
    if "keys" not in values:
        made.keys = [KEY]
    made.save()
    return made


def page_of(row: ModelEndpoint, name: str = "change") -> str:
    return f"/admin/agent/modelendpoint/{row.pk}/{name}/"


def errors(client: Client, address: str = ADD, **changes: Any) -> dict[str, list[str]]:
    """The sentences at the fields; none where it was saved."""
    return faults(client, address, form(**changes))

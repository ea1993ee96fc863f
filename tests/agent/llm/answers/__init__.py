"""Answers of real models as they came; the README beside says which and how."""

import json
from pathlib import Path
from typing import Any


def recorded(name: str) -> dict[str, Any]:
    """The body of the recorded answer ``name``."""
    body: dict[str, Any] = json.loads(Path(__file__).with_name(f"{name}.json").read_text("utf-8"))
    return body


def recorded_text(name: str) -> str:
    """The text of the recorded answer ``name``."""
    return str(recorded(name)["choices"][0]["message"]["content"])

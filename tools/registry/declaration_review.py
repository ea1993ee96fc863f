"""Whether somebody has looked at what a tool from outside declares: until then it is for the bot's
owners alone.

What a server or a plugin says of its tools is read by the model, and it may say something
else tomorrow. So what was looked at is kept as a fingerprint beside the operator's settings,
which count again as soon as the tool declares the same again, or somebody has looked again.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from tools.contract import ToolSpec

LOOK_PROVIDERS = frozenset({"mcp", "plugin"})
"""Types of providers whose tools are made by others and change by themselves. An HTTP tool is a row
that a person has written."""
_UNJUDGED = frozenset({"icons", "provider_type"})
"""Pictures are for pages alone; the type is part of the source."""
_MARK = "@"
_NO_SERVER = "\n"
"""Stands in the name of no MCP server."""


def needs_look(*provider_types: str) -> bool:
    return not LOOK_PROVIDERS.isdisjoint(provider_types)


def tool_source(spec: ToolSpec, provider_name: str = "") -> str:
    """Whose tool it is: an MCP server by its name, a plugin by its id, which no server can be
    called like."""
    if server := spec.metadata.get("server_name"):
        return str(server)
    return f"{_NO_SERVER}{spec.provider_name or provider_name}"


def declaration_fingerprint(declaration: Mapping[str, Any], source: str) -> str:
    """Of everything in ``declaration`` that is judged, and of the ``source``: ``<hash>@<hash>``."""
    return f"{_hash(judged_parts(declaration))}{_MARK}{_hash(source)[:16]}"


def source_mark(fingerprint: str) -> str:
    """What of a fingerprint stands for the source; "" for none."""
    return fingerprint.partition(_MARK)[2]


def judged_parts(declaration: Mapping[str, Any]) -> dict[str, Any]:
    """What of a tool's declaration somebody has to look at: words, schemas, annotations, and
    whether it asks."""
    return {key: value for key, value in declaration.items() if key not in _UNJUDGED}


def covers_fingerprint(looked_at: str, fingerprint: str) -> bool:
    """Whether what was looked at is what is declared now; a row from before there were fingerprints
    names no source."""
    return bool(looked_at) and looked_at in (fingerprint, fingerprint.partition(_MARK)[0])


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()

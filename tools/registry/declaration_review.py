"""Whether the declaration of an external tool was reviewed. Until then only the bot's owners may
call it.

The model reads what a server or a plugin declares, and the declaration may change tomorrow. So a
fingerprint of the reviewed declaration is stored with the operator's settings. These apply again as
soon as the tool declares the same, or an operator has reviewed it again.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from tools.contract import ToolSpec

LOOK_PROVIDERS = frozenset({"mcp", "plugin"})
"""Types of providers whose tools are declared by others and can change at any time. An HTTP tool is
a row that an operator wrote."""
_UNJUDGED = frozenset({"icons", "provider_type"})
"""Pictures are for pages alone; the type is part of the source."""
_MARK = "@"
_NO_SERVER = "\n"
"""Never part of the name of an MCP server."""


def needs_look(*provider_types: str) -> bool:
    return not LOOK_PROVIDERS.isdisjoint(provider_types)


def tool_source(spec: ToolSpec, provider_name: str = "") -> str:
    """The source of the tool: the name of the MCP server, or the id of the plugin, which no server
    can have as its name."""
    if server := spec.metadata.get("server_name"):
        return str(server)
    return f"{_NO_SERVER}{spec.provider_name or provider_name}"


def declaration_fingerprint(declaration: Mapping[str, Any], source: str) -> str:
    """Of everything in ``declaration`` that is judged, and of the ``source``: ``<hash>@<hash>``."""
    return f"{_hash(judged_parts(declaration))}{_MARK}{_hash(source)[:16]}"


def source_mark(fingerprint: str) -> str:
    """The part of a fingerprint that names the source; "" for none."""
    return fingerprint.partition(_MARK)[2]


def judged_parts(declaration: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a tool's declaration that need a review: texts, schemas, annotations, and
    whether it asks for approval."""
    return {key: value for key, value in declaration.items() if key not in _UNJUDGED}


def covers_fingerprint(looked_at: str, fingerprint: str) -> bool:
    """Whether the reviewed declaration is the current one. A row older than the fingerprints names
    no source."""
    return bool(looked_at) and looked_at in (fingerprint, fingerprint.partition(_MARK)[0])


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()

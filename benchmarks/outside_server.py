"""A small MCP server over stdio, with COUNT tools whose names begin with PREFIX: ``PREFIX COUNT``.

Nothing but the standard library, so that ten of them start at once and cost nothing while nobody
calls.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

VERSION = "2025-11-25"
METHOD_NOT_FOUND = -32601


def tools(prefix: str, count: int) -> list[dict[str, Any]]:
    """Tools as servers have them: four arguments, one of them a choice, and a few lines of
    description."""
    choices = {
        "type": "string",
        "enum": ["celsius", "fahrenheit"],
        "description": "what temperatures are given in",
    }
    properties = {
        "city": {"type": "string", "description": "where it is, in any language"},
        "days": {
            "type": "integer",
            "minimum": 1,
            "maximum": 14,
            "description": "for how many days, from today on",
        },
        "unit": choices,
        "tags": {
            "type": "array",
            "items": {"type": "string"},
            "description": "what else is wanted",
        },
    }
    schema = {"type": "object", "properties": properties, "required": ["city"]}
    words = "查询一座城市的资料。 Look up one of the many things that are known about a city, as of today, number {}."
    hints = {"readOnlyHint": True, "openWorldHint": True}
    return [
        {
            "name": f"{prefix}_look_up_{n}",
            "description": words.format(n),
            "inputSchema": schema,
            "annotations": hints,
        }
        for n in range(count)
    ]


def answers(prefix: str, count: int) -> Iterator[dict[str, Any]]:
    about = {
        "protocolVersion": VERSION,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": prefix, "version": "1"},
    }
    results: dict[str, Any] = {
        "initialize": about,
        "tools/list": {"tools": tools(prefix, count)},
        "ping": {},
    }
    results["tools/call"] = {"content": [{"type": "text", "text": "sunny"}]}
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        answer = {"jsonrpc": "2.0", "id": asked["id"]}
        known = results.get(asked["method"])
        fault = {"code": METHOD_NOT_FOUND, "message": "no such method"}
        yield answer | ({"error": fault} if known is None else {"result": known})


if __name__ == "__main__":
    for message in answers(sys.argv[1], int(sys.argv[2])):
        print(json.dumps(message), flush=True)

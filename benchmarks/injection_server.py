"""An MCP server over stdio that says of itself what a file says:
``python benchmarks/injection_server.py FILE``, see :func:`benchmarks.injection_scenes.mcp_server`.
"""

import json
import sys
from pathlib import Path
from typing import Any


def result(said: dict[str, Any], method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "stage", "version": "1"},
                "instructions": said["instructions"],
            }
        case "tools/list":
            return {"tools": [declare(tool) for tool in said["tools"]]}
        case "tools/call":
            (tool,) = (tool for tool in said["tools"] if tool["name"] == params["name"])
            return {"content": [{"type": "text", "text": tool["result"]}]}
    return {}


def declare(tool: dict[str, Any]) -> dict[str, Any]:
    words = {"type": "string", "description": tool["parameter"]}
    schema = {"type": "object", "properties": {"a": words}}
    return {"name": tool["name"], "description": tool["description"], "inputSchema": schema}


def main() -> None:
    said = json.loads(Path(sys.argv[1]).read_bytes())
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            found = result(said, message["method"], message.get("params") or {})
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": found}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()

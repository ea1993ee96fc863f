"""An MCP server over stdio that lists what a file says, and notices by itself when that changes:
``changing_server.py FILE``."""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

FILE = Path(sys.argv[1])


def out(message: dict[str, Any]) -> None:
    os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def watch(said: bytes) -> None:
    while True:
        time.sleep(0.02)
        if (now := FILE.read_bytes()) != said:
            said = now
            out({"method": "notifications/tools/list_changed"})


def result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            about = {"name": "changing", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": capabilities,
                "serverInfo": about,
            }
        case "tools/list":
            return {"tools": json.loads(FILE.read_bytes())}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"{params['name']} was called"}]}
    return {}


def main() -> None:
    threading.Thread(target=watch, args=(FILE.read_bytes(),), daemon=True).start()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            out(
                {
                    "id": message["id"],
                    "result": result(message["method"], message.get("params") or {}),
                }
            )


if __name__ == "__main__":
    main()

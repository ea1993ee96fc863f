"""Faster parts where they are installed, the standard library where they are not."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

try:
    import uvloop
except ImportError:
    uvloop = None

try:
    import orjson
except ImportError:
    orjson = None


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """``asyncio.run``, on uvloop if there is one."""
    return (uvloop or asyncio).run(main)


def dumps(value: Any) -> bytes:
    if orjson:
        return orjson.dumps(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def loads(data: bytes) -> Any:
    return orjson.loads(data) if orjson else json.loads(data)

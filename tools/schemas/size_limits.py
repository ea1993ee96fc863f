"""How large arguments may be. Coercion and validation are plain Python on the event loop."""

from typing import Any

from tools.errors import InvalidArguments

MAX_DEPTH = 32
MAX_BYTES = 2**20
MAX_VALUES = 10_000
"""So many values take about a tenth of a second to check."""
TOO_DEEP = f"参数嵌套过深（最多 {MAX_DEPTH} 层）"
TOO_LARGE = f"参数过大（最多 {MAX_BYTES // 2**20} MiB）"
TOO_MANY = f"参数过多（最多 {MAX_VALUES} 个值）"


def check_text_size(text: str) -> None:
    """Raise :class:`InvalidArguments` for more than ``MAX_BYTES`` of UTF-8."""
    if len(text) * 4 > MAX_BYTES and len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise InvalidArguments([TOO_LARGE])


def check_size(value: Any) -> None:
    """Raise :class:`InvalidArguments` for more than ``MAX_DEPTH`` lists and objects in each other,
    or ``MAX_VALUES`` values."""
    layer, depth, values = [value], 0, 1
    while layer := [item for item in layer if isinstance(item, (dict, list))]:
        depth += 1
        layer = [
            item
            for container in layer
            for item in (container.values() if isinstance(container, dict) else container)
        ]
        values += len(layer)
        if depth > MAX_DEPTH:
            raise InvalidArguments([TOO_DEEP])
        if values > MAX_VALUES:
            raise InvalidArguments([TOO_MANY])

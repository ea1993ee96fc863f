"""Request bodies: JSON in UTF-8, in which each tool is encoded once and not for every message."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent.llm.requests.messages import ChatMessage
from tools.text.storable import make_storable

MOST_KEPT = 1024
"""Encoded tools that are kept."""
NO_PARAMETERS = {"type": "object", "properties": {}, "required": []}
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class RequestEncoder:
    """Bodies of requests to ``model`` with ``parameters``.

    Fifty tools are 35 KB, which take half a millisecond to encode. Definitions are shared and never
    changed (:class:`tools.registry.definitions.DefinitionCache`), so the encoded form of one is
    cached by its identity.
    """

    def __init__(self, model: str, parameters: Mapping[str, Any] | None = None) -> None:
        self._head = b'{"model":%b,"messages":' % encode_json(model)
        self._end = b",%b" % encode_json(parameters)[1:] if parameters else b"}"
        self._kept: dict[int, tuple[dict[str, Any], bytes]] = {}
        """By the ids of the definitions, which are kept too, so that no other takes over an id."""

    def __len__(self) -> int:
        return len(self._kept)

    def encode(self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]]) -> bytes:
        """The body that sends ``messages`` and offers ``tools``; none are named where there are
        none."""
        offer = b',"tools":[%b]' % self.encode_tools(tools) if tools else b""
        return b"".join((self._head, encode_json(messages), offer, self._end))

    def encode_tools(self, tools: Sequence[dict[str, Any]]) -> bytes:
        """``tools`` as they stand in a body, between the brackets."""
        kept = self._kept
        return b",".join(
            [
                known[1] if (known := kept.get(id(tool))) else self._encode_tool(tool)
                for tool in tools
            ]
        )

    def _encode_tool(self, definition: dict[str, Any]) -> bytes:
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        function = {
            "name": definition["name"],
            "description": definition["description"],
            "parameters": definition.get("parameters_schema") or NO_PARAMETERS,
        }
        encoded = encode_json({"type": "function", "function": function})
        self._kept[id(definition)] = (definition, encoded)
        return encoded


def encode_request(
    model: str,
    messages: Sequence[ChatMessage],
    tools: Sequence[dict[str, Any]],
    parameters: Mapping[str, Any],
) -> bytes:
    """The body of a request, as it is sent to ``model``."""
    return RequestEncoder(model, parameters).encode(messages, tools)


def encode_json(value: Any) -> bytes:
    """``value``, which is JSON but for numbers that are none and halves of pairs of surrogates:
    these become null and ``�``."""
    try:
        return _JSON.encode(value).encode()
    except ValueError:
        plain = make_storable(json.loads(json.dumps(value), parse_constant=lambda _: None))
        return _JSON.encode(plain).encode()

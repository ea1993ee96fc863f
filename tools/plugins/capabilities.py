"""What plugins may request of this server: only capabilities that the operator has granted.

A plugin never chooses the chat: it sends to and reads from the chat of a running call, which the
host finds by the call's token. Names and codes of errors are MaiBot's.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.db.models import JSONField, Value
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tools.contract import JsonSchema, ToolExecutionContext, ToolFailed, ToolInvocation
from tools.error_boundary import capture_error
from tools.models import PluginValue
from tools.plugin_sdk.calls import RpcError, RpcErrorCode
from tools.registry.catalogue import DatabaseThread
from tools.schemas.arguments import check_arguments
from tools.text.storable import make_storable
from tools.token_bucket import Quota, TokenBuckets

logger = logging.getLogger(__name__)


# What plugins store for themselves: rows under keys, one plugin's never another's. For the database
# thread.

#: Keys of one plugin.
KEYS_LIMIT = 1_000


def get_value(plugin_pk: int, key: str) -> object:
    """The value under ``key``; None where there is none."""
    rows = PluginValue.objects.filter(plugin_id=plugin_pk, key=key)
    return rows.values_list("value", flat=True).first()


def delete_value(plugin_pk: int, key: str) -> bool:
    """Drop what is there; whether anything was."""
    return bool(PluginValue.objects.filter(plugin_id=plugin_pk, key=key).delete()[0])


def put_value(plugin_pk: int, key: str, value: object) -> bool:
    """Keep a value in place of what was there; False where the plugin has :data:`KEYS_LIMIT` other
    keys."""
    mine = PluginValue.objects.filter(plugin_id=plugin_pk)
    row = mine.filter(key=key).first()
    if row is None and mine.count() >= KEYS_LIMIT:
        return False
    row = row or PluginValue(plugin_id=plugin_pk, key=key)
    # None alone would be NULL.
    row.value = Value(None, JSONField()) if value is None else value
    row.save()
    return True


def list_keys(plugin_pk: int, prefix: str) -> list[str]:
    """The plugin's keys that begin so, in order."""
    # not in the query: SQLite knows no case in LIKE, and each database has an order of its own
    every = PluginValue.objects.filter(plugin_id=plugin_pk).values_list("key", flat=True)
    return sorted(key for key in every if key.startswith(prefix))


#: Characters of a message; of a request to the model.
TEXT_LIMIT, PROMPT_LIMIT = 4_000, 16_000
#: Messages of the history that are read at once, at most and unless another number is asked for.
HISTORY_LIMIT, HISTORY_NUMBER = 50, 20
KEY_LIMIT = 128
#: Bytes of one stored value, as JSON.
VALUE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing that is granted or not: ``label`` says what a plugin that has it can do, for the
    operator.

    A plugin may use it so often ``per_call`` and ``per_minute``; 0 for the first: no calls are
    counted.
    """

    label: str | Promise
    per_minute: int
    per_call: int = 0


CAPABILITIES: Mapping[str, Capability] = {
    "send.text": Capability(
        _("Send text messages to the chat in which one of its tools is called."),
        per_minute=30,
        per_call=5,
    ),
    "history.read": Capability(
        _(
            "Read the newest messages of the chat in which one of its tools is called, whoever "
            "wrote them."
        ),
        per_minute=120,
        per_call=10,
    ),
    "llm.generate": Capability(
        _(
            "Ask the chat model, while one of its tools is called. Every request costs what a "
            "request costs."
        ),
        per_minute=20,
        per_call=5,
    ),
    "storage": Capability(
        _("Store values of its own in this server's database."), per_minute=3_000
    ),
}
"""All capabilities, in the order of the operator's page."""


class CapabilityHolder(Protocol):
    """The plugin that asks: what its row grants and its manifest asks for (see
    :func:`effective_capabilities`)."""

    @property
    def pk(self) -> int: ...
    @property
    def enabled(self) -> bool: ...
    @property
    def granted(self) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True, eq=False)
class CallInFlight:
    """A call of one of the plugin's tools that has not ended, and what was asked for it so far."""

    invocation: ToolInvocation
    context: ToolExecutionContext
    spent: Counter[str] = field(default_factory=Counter)


class ChatServices(Protocol):
    """What the layer above does for a call in flight, in the call's own chat.

    Each raises :class:`tools.contract.ToolFailed`, in words, where it cannot be done.
    """

    async def send_text(self, call: CallInFlight, text: str) -> str:
        """Send ``text``; what is known of it afterwards. A message that may have arrived is no
        failure."""
        ...

    async def history(self, call: CallInFlight, number: int) -> list[dict[str, object]]:
        """The newest ``number`` messages before the one that is answered, oldest first."""
        ...

    async def generate(self, call: CallInFlight, prompt: str) -> str:
        """The model's answer to ``prompt``, without tools."""
        ...

    async def close(self) -> None:
        """Release what was opened for this."""
        ...


_KEY: JsonSchema = {"type": "string", "minLength": 1, "maxLength": KEY_LIMIT}


def _arguments(required: Iterable[str] = (), **properties: JsonSchema) -> JsonSchema:
    """Nothing but these is taken: above all no address."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _words(limit: int) -> JsonSchema:
    return {"type": "string", "pattern": r"\S", "maxLength": limit}


OPERATIONS: Mapping[str, tuple[str, JsonSchema]] = {
    "send.text": ("send.text", _arguments(["text"], text=_words(TEXT_LIMIT))),
    "history.read": (
        "history.read",
        _arguments(number={"type": "integer", "minimum": 1, "maximum": HISTORY_LIMIT}),
    ),
    "llm.generate": ("llm.generate", _arguments(["prompt"], prompt=_words(PROMPT_LIMIT))),
    "storage.get": ("storage", _arguments(["key"], key=_KEY)),
    "storage.set": ("storage", _arguments(["key", "value"], key=_KEY, value={})),
    "storage.delete": ("storage", _arguments(["key"], key=_KEY)),
    "storage.keys": ("storage", _arguments(prefix={"type": "string", "maxLength": KEY_LIMIT})),
}
"""What can be asked for: the capability that it needs, and the arguments that it takes."""


def effective_capabilities(granted: object, asked: object) -> frozenset[str]:
    """Of the capabilities that a row grants those that the manifest asks for and this server
    has."""
    return frozenset(CAPABILITIES) & _names(granted) & _names(asked)


def _names(value: object) -> set[str]:
    return (
        {name for name in value if isinstance(name, str)}
        if isinstance(value, list | tuple | set | frozenset)
        else set()
    )


class CapabilityService:
    """Carries out what plugins ask for, through ``services`` and the database thread. Used from one
    event loop."""

    def __init__(
        self,
        desk: DatabaseThread,
        services: ChatServices,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._desk = desk
        self._services = services
        self._rates = TokenBuckets(clock=clock)

    async def run_capability(
        self, plugin: CapabilityHolder, call: CallInFlight | None, name: object, arguments: object
    ) -> object:
        """What ``name`` gives ``plugin``; ``call`` is the call in flight whose token came along, if
        one did.

        ``send.text`` and ``llm.generate`` give a text, ``history.read`` a list of messages,
        ``storage.get`` the value or None, ``storage.set`` None, ``storage.delete`` whether the
        key was there, ``storage.keys`` the keys in order. When cancelled, a message that was
        handed on may have been sent (its row says so), and a value may have been stored.

        Raises :class:`tools.plugin_sdk.calls.RpcError`: ``E_METHOD_NOT_ALLOWED`` for what
        does not exist, ``E_CAPABILITY_DENIED`` for what was not granted or needs a call in
        flight, ``E_BAD_PAYLOAD`` for other arguments, ``E_BACK_PRESSURE`` for more than a call
        or a minute may have, ``E_CAPABILITY_FAILED`` with the reason for what went wrong.
        """
        if not isinstance(name, str) or name not in OPERATIONS:
            raise RpcError(
                RpcErrorCode.METHOD_NOT_ALLOWED, f"there is no capability {str(name)[:64]!r}"
            )
        capability, schema = OPERATIONS[name]
        if not plugin.enabled or capability not in plugin.granted:
            raise RpcError(
                RpcErrorCode.CAPABILITY_DENIED, f"{capability} is not granted to this plugin"
            )
        given = _checked(schema, arguments)
        self._count(plugin, call, capability)
        with capture_error() as attempt:
            return await self._perform(plugin.pk, call, name, given)
        error = attempt.error
        if isinstance(error, RpcError):
            raise error
        if isinstance(error, ToolFailed):
            raise RpcError(RpcErrorCode.CAPABILITY_FAILED, error.text) from error
        logger.error("%s could not be carried out for a plugin", name, exc_info=error)
        raise RpcError(
            RpcErrorCode.CAPABILITY_FAILED,
            f"{name} could not be carried out; the reason is in the server's log",
        ) from error

    async def close(self) -> None:
        """Release what the services hold; afterwards nothing is carried out any more."""
        await self._services.close()

    def _count(self, plugin: CapabilityHolder, call: CallInFlight | None, name: str) -> None:
        """Count one use. Raises RpcError when there were too many: of the call, or of the plugin in
        every chat together."""
        capability = CAPABILITIES[name]
        if call is not None and 0 < capability.per_call <= call.spent[name]:
            raise RpcError(
                RpcErrorCode.BACK_PRESSURE, f"{name}: at most {capability.per_call} for one call"
            )
        quota = Quota.per_minute(capability.per_minute, plugin.pk, name)
        if wait := self._rates.wait_seconds(quota):
            raise RpcError(
                RpcErrorCode.BACK_PRESSURE,
                f"{name}: at most {capability.per_minute} a minute; again in {wait:.0f} s",
            )
        self._rates.take(quota)
        if call is not None:
            call.spent[name] += 1

    async def _perform(
        self, plugin_pk: int, call: CallInFlight | None, name: str, given: dict[str, Any]
    ) -> Any:
        key = given.get("key", given.get("prefix", ""))
        match name:
            case "storage.get":
                return await self._desk.submit(get_value, plugin_pk, key)
            case "storage.set":
                value = _storable_value(given["value"])
                if not await self._desk.submit(put_value, plugin_pk, key, value):
                    raise RpcError(
                        RpcErrorCode.CAPABILITY_FAILED,
                        f"a plugin can store {KEYS_LIMIT} keys; delete some first",
                    )
                return None
            case "storage.delete":
                return await self._desk.submit(delete_value, plugin_pk, key)
            case "storage.keys":
                return await self._desk.submit(list_keys, plugin_pk, key)
        if call is None:
            raise RpcError(
                RpcErrorCode.CAPABILITY_DENIED,
                f"{name} is there only while a tool of this plugin is called",
            )
        match name:
            case "send.text":
                return await self._services.send_text(call, given["text"])
            case "history.read":
                return await self._services.history(call, given.get("number", HISTORY_NUMBER))
            case _:
                return await self._services.generate(call, given["prompt"])


def _checked(schema: JsonSchema, arguments: object) -> dict[str, object]:
    """The arguments as storable text. Raises RpcError for others than ``schema`` takes."""
    if not isinstance(arguments, dict) or not all(isinstance(key, str) for key in arguments):
        raise RpcError(RpcErrorCode.BAD_PAYLOAD, "the arguments are no object")
    with capture_error() as attempt:  # what comes over the wire may be anything
        return dict(make_storable(check_arguments(schema, arguments)))
    raise RpcError(RpcErrorCode.BAD_PAYLOAD, str(attempt.error)[:1000]) from attempt.error


def _storable_value(value: object) -> object:
    """``value`` as it comes back from the database. Raises RpcError for what is no JSON, or too
    much of it."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RpcError(RpcErrorCode.BAD_PAYLOAD, f"the value is no JSON: {error}") from error
    if len(text.encode()) > VALUE_BYTES:
        raise RpcError(
            RpcErrorCode.BAD_PAYLOAD, f"a value has room for {VALUE_BYTES} bytes of JSON"
        )
    return json.loads(text)

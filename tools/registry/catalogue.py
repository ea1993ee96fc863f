"""What the registry and its providers share: what a tool brings for its row, results that do not
come from a tool, and providers whose tools come from rows that the operator sets up while the bot
runs.

Until the declaration of an external tool was reviewed, only the bot's owners may call it. The model
reads what a server or a plugin declares, and the declaration may change tomorrow. So a
fingerprint of the reviewed declaration is stored with the operator's settings. These apply again as
soon as the tool declares the same, or an operator has reviewed it again.
"""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, TypeVar, TypeVarTuple

from tools import refusals
from tools.contract import (
    CallBasis,
    InvalidArguments,
    OutcomeUnknown,
    ToolExecutionResult,
    ToolProvider,
    ToolSpec,
)
from tools.models import ToolConfig
from tools.models.tool_config import AllowedCallers, ToolScope, ToolVisibility
from tools.refusals import RefusalReason, ToolRefusal
from tools.registry.settings import ToolSettings
from tools.text.storable import make_storable

R = TypeVar("R")
Ts = TypeVarTuple("Ts")


class DatabaseThread(Protocol):
    """The one thread of this process that talks to the database."""

    process_id: str

    def submit(self, function: Callable[[*Ts], R], *args: *Ts) -> "asyncio.Future[R]":
        """Have ``function(*args)`` run there, inside a transaction; done when committed."""
        ...


class LiveProvider(ToolProvider, Protocol):
    """A provider that follows its rows: a method ``obey`` of its own takes them, in the database
    thread, after each commit that changed one. What is switched off in them must not be listed or
    called any more from then on.

    ``obey`` and :meth:`start` may come in any order; until both were called it offers nothing.
    """

    def start(self) -> None:
        """Start, once, on the event loop of the server. Returns immediately."""
        ...

    def absence(self, tool_name: str) -> str:
        """Why a tool of that name from this provider is unavailable now: a sentence for the model;
        "" for a tool that does not come from here."""
        ...


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


def declaration_fingerprint(declaration: Mapping[str, object], source: str) -> str:
    """Of everything in ``declaration`` that is judged, and of the ``source``: ``<hash>@<hash>``."""
    return f"{_hash(judged_parts(declaration))}{_MARK}{_hash(source)[:16]}"


def source_mark(fingerprint: str) -> str:
    """The part of a fingerprint that names the source; "" for none."""
    return fingerprint.partition(_MARK)[2]


def judged_parts(declaration: Mapping[str, object]) -> dict[str, object]:
    """The parts of a tool's declaration that need a review: texts, schemas, annotations, and
    whether it asks for approval."""
    return {key: value for key, value in declaration.items() if key not in _UNJUDGED}


def covers_fingerprint(looked_at: str, fingerprint: str) -> bool:
    """Whether the reviewed declaration is the current one. A row older than the fingerprints names
    no source."""
    return bool(looked_at) and looked_at in (fingerprint, fingerprint.partition(_MARK)[0])


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


FAILURE = "工具执行失败: "
TEXT_LIMIT = 64 * 1024
"""The most bytes of UTF-8 that the model gets of one result."""
CUT_MARK = "\n...(工具输出过长，已截断)"


def not_found_result(name: str) -> ToolExecutionResult:
    """The answer of a provider that is called for a tool it does not have."""
    return ToolExecutionResult(name, success=False, error_message=refusals.not_found_message(name))


def refused_result(
    name: str, refusal: ToolRefusal, near: Collection[str] = (), **metadata: object
) -> ToolExecutionResult:
    """A call that was not made; the reason is recorded in ``metadata["refusal"]``."""
    metadata = {"refusal": refusal.reason.value, **metadata}
    return clip_result(
        ToolExecutionResult(
            name,
            success=False,
            error_message=refusals.refusal_message(name, refusal, near),
            metadata=metadata,
        )
    )


def unapproved_result(
    name: str, arguments: dict[str, object], basis: CallBasis
) -> ToolExecutionResult:
    """A call that waits for an owner; its checked arguments are in ``metadata["arguments"]``, what
    it rests on in ``metadata["basis"]``."""
    refusal = ToolRefusal(
        RefusalReason.NEEDS_APPROVAL, f"工具 {name} 的这次调用需要机器人主人批准，尚未执行。"
    )
    refused = refused_result(name, refusal, arguments=arguments)
    if basis.said_by:
        refused.metadata["basis"] = basis
    return refused


def invalid_arguments_result(name: str, error: InvalidArguments) -> ToolExecutionResult:
    return ToolExecutionResult(name, success=False, error_message="\n".join(error.problems))


def mocked_result(name: str, text: str) -> ToolExecutionResult:
    return clip_result(
        ToolExecutionResult(name, success=True, content=text, metadata={"mock": True})
    )


def timed_out_result(name: str, seconds: float, warning: str | None = None) -> ToolExecutionResult:
    """``warning`` is for a tool whose work may have had its effect: no failure, or the model would
    try again."""
    if warning:
        return ToolExecutionResult(name, success=True, content=warning)
    return failed_result(name, f"超过 {seconds:g} 秒")


def mismatch_message(problems: Collection[str]) -> str:
    """Of a result that is not what the tool's output schema promises."""
    return "工具返回的结果与其声明不符: " + "; ".join(problems)


def raised_result(name: str, error: BaseException) -> ToolExecutionResult:
    """The failed result for ``error``; the operator gets its class, the model does not."""
    message, kind = str(error).strip(), type(error).__name__
    unknown = {"unknown": True} if isinstance(error, OutcomeUnknown) else {}
    return failed_result(
        name, message or kind, error_detail=f"{kind}: {message}" if message else kind, **unknown
    )


def failed_result(name: str, reason: str, **metadata: object) -> ToolExecutionResult:
    return clip_result(
        ToolExecutionResult(name, success=False, error_message=FAILURE + reason, metadata=metadata)
    )


def normalize_failure(result: ToolExecutionResult) -> ToolExecutionResult:
    """``result`` with a failure's message in one of the two forms that failures have."""
    if result.success or result.error_message.startswith(
        (FAILURE, refusals.not_found_message(result.tool_name))
    ):
        return result
    reason = result.error_message.strip() or result.get_history_content()
    return replace(result, error_message=FAILURE + (reason or "原因未知"))


def clip_result(result: ToolExecutionResult) -> ToolExecutionResult:
    """``result`` with at most ``TEXT_LIMIT`` bytes of text for the model; its metadata keeps the
    full text.

    The text is also made valid UTF-8 without NUL: NUL and half surrogate pairs are not accepted by
    every endpoint and database.
    """
    text = result.get_history_content()
    encoded = text.replace("\0", "?").encode("utf-8", "replace")
    if (
        text.endswith(CUT_MARK) and "full_content" in result.metadata
    ):  # a hook passed on what was cut before
        return result
    if len(encoded) > TEXT_LIMIT:
        told = encoded[:TEXT_LIMIT].decode("utf-8", "ignore") + CUT_MARK
        return _retold(
            replace(result, metadata={**result.metadata, "full_content": text}), text, told
        )
    told = encoded.decode()
    return result if told == text else _retold(result, text, told)


def _retold(result: ToolExecutionResult, text: str, told: str) -> ToolExecutionResult:
    if not result.success and text == result.error_message.strip():
        return replace(result, error_message=told)
    return replace(result, content=told)


DEFAULT_TIMEOUT = 60
LONG_TIMEOUT = 3600
"""The first time limit of a long-running tool, which is as much as a row can say."""
_DECLARED = ("provider_name", "parameter_names", "declaration", "fingerprint")
MOST_ROWS = 5_000
"""The most rows. Beyond it, a tool that needs a review gets no row: a server can invent names
without end."""
MOST_OF_SOURCE = 1_000
"""The same of one server or plugin, so that it leaves room for those of the others."""


@dataclass(frozen=True, slots=True)
class DefaultConfig:
    """First values of a tool's row, carried in ``spec.metadata["default_config"]``."""

    enabled: bool = True
    mock_enabled: bool = False
    mock_value: str = ""
    timeout_seconds: int = DEFAULT_TIMEOUT
    visibility: str = ToolVisibility.VISIBLE.value
    pinned: bool = False
    scope: str = ToolScope.ALL.value
    allowed: str = AllowedCallers.EVERYONE.value
    calls_per_minute_person: int = 0
    calls_per_minute_chat: int = 0
    calls_per_day_chat: int | None = None


def declared_settings(spec: ToolSpec) -> ToolSettings:
    """The settings of a tool that has no row (yet): what its declaration says.

    ``spec.metadata["timeout_seconds"]`` is for providers that know nothing of
    :class:`DefaultConfig`, and so are ``visibility`` and ``core_tool``, which are MaiBot's: a
    tool that declares itself visible, or of the core, is pinned.
    """
    first = _first_values(spec)
    first["timeout_seconds"] = spec.metadata.get("timeout_seconds", first["timeout_seconds"])
    return ToolSettings(name=spec.name, provider_name=spec.provider_name, **first)


def ensure_tool_rows(specs: Iterable[ToolSpec]) -> int:
    """Make a row for each tool that has none; returns how many were made.

    One query when nothing is new. What the operator set in a row stays. What comes from the
    declaration (provider, arguments, texts and schemas) follows it, and two processes that start
    together do not conflict. A new row of a tool that needs a review says so (see
    :mod:`tools.registry.catalogue`).
    """
    wanted = {spec.name: _new_row(spec) for spec in specs}
    known = {row.name: row for row in ToolConfig.objects.only("name", "looked_at", *_DECLARED)}
    missing = list(
        _with_room([row for name, row in wanted.items() if name not in known], known.values())
    )
    if missing:
        ToolConfig.objects.bulk_create(missing, ignore_conflicts=True)
    for name in wanted.keys() & known.keys():
        declared = {field: getattr(wanted[name], field) for field in _DECLARED}
        if any(getattr(known[name], field) != value for field, value in declared.items()):
            # A row older than the sources belongs to the source that lists it first.
            same = covers_fingerprint(known[name].looked_at, wanted[name].fingerprint)
            looked = {"looked_at": wanted[name].fingerprint} if same else {}
            ToolConfig.objects.filter(name=name).update(**declared, **looked)
    return len(missing)


def _with_room(new: Iterable[ToolConfig], known: Iterable[ToolConfig]) -> Iterator[ToolConfig]:
    """Those of ``new`` that may get a row besides ``known``: all, except tools to review when there
    are too many."""
    sources = Counter(source_mark(row.fingerprint) for row in known)
    room = MOST_ROWS - sources.total()
    for row in new:
        if not row.fingerprint:
            yield row
        elif room > 0 and sources[source := source_mark(row.fingerprint)] < MOST_OF_SOURCE:
            sources[source] += 1
            room -= 1
            yield row


def declaration_json(spec: ToolSpec) -> dict[str, object]:
    """The declaration of ``spec`` as JSON, for the pages that show the tool. Empty entries are left
    out."""
    said = {
        "title": spec.title,
        "description": spec.description,
        "provider_type": spec.provider_type,
        "parameters_schema": spec.parameters_schema,
        "output_schema": spec.output_schema,
        "icons": [asdict(icon) for icon in spec.icons],
        "annotation": asdict(spec.annotation) if spec.annotation else None,
        "is_long_running": spec.is_long_running,
        "requires_approval": "some"
        if callable(asks := spec.metadata.get("requires_approval"))
        or (not asks and "look_ahead" in spec.metadata)
        else "all"
        if asks
        else "",
    }
    text = json.dumps(
        make_storable({key: value for key, value in said.items() if value}),
        ensure_ascii=False,
        default=str,
    )
    return dict(json.loads(text))  # as the database will give it back: tuples are lists


def _first_values(spec: ToolSpec) -> dict[str, Any]:
    seconds = LONG_TIMEOUT if spec.is_long_running else DEFAULT_TIMEOUT
    first = asdict(spec.metadata.get("default_config") or DefaultConfig(timeout_seconds=seconds))
    said = spec.metadata.get("visibility")
    if said in ToolVisibility.values:
        first |= {"visibility": said, "pinned": said == ToolVisibility.VISIBLE}
    elif spec.metadata.get("core_tool") is True:
        first["pinned"] = True
    return first


def _new_row(spec: ToolSpec) -> ToolConfig:
    schema = spec.parameters_schema
    first = _first_values(spec)
    first["timeout_seconds"] = max(1, round(declared_settings(spec).timeout_seconds))
    return ToolConfig(
        name=spec.name,
        provider_name=spec.provider_name,
        parameter_names=None if schema is None else list(schema.get("properties", {})),
        declaration=(said := declaration_json(spec)),
        fingerprint=declaration_fingerprint(said, tool_source(spec))
        if needs_look(spec.provider_type)
        else "",
        **first,
    )

"""The provider of HTTP tools: rows of the admin, obeyed from the next message on. A dry run is a
call for the person who sets a tool up: the request as it goes out, and what comes of it."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.db import transaction

from tools.contract import (
    InvalidArguments,
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)
from tools.error_boundary import LogLimit, capture_error, log_errors
from tools.fetch.fetcher import Fetcher
from tools.fetch.request import FetchError, FetchRequest
from tools.http_tools.models import HttpTool
from tools.http_tools.tool import (
    ReadyHttpTool,
    build_ready_tool,
    mask_answer_text,
    mask_headers,
    request_digest,
)
from tools.http_tools.validation import (
    FIELDS,
    PROVIDER,
    HttpToolSettings,
    ValidationContext,
    check_http_tool,
)
from tools.registry import catalogue
from tools.registry.catalogue import ensure_tool_rows
from tools.schemas.arguments import check_arguments
from tools.secrets.masked import SecretMask, SecretRefused, SecretValues

SHOWN = 20_000
"""Characters of a body that are shown."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """What was sent and what came, as far as it got, with ``••••`` in the place of secrets.

    ``method`` is "" where nothing could be sent, ``status`` None where nothing came.
    ``result`` is what the model would get, and ``error`` what the operator should know
    as well. ``text`` is the beginning of the answer; "" of one that has no words.
    """

    result: ToolExecutionResult
    method: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    status: int | None = None
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    seconds: float = 0
    error: str = ""


async def dry_run_tool(
    row: "HttpTool", arguments: Mapping[str, object], secrets: SecretValues, fetcher: Fetcher
) -> DryRun:
    """Make the request of ``row`` once, whether it is saved and enabled or not. Errors are part of
    the result.

    ``secrets`` are what :func:`tools.secrets.models.load_secrets` reads; ``fetcher`` stays open.
    """
    settings, begin = row.to_settings(), time.monotonic()
    if problems := check_http_tool(settings, ValidationContext()):
        lines = "\n".join(f"{name}: {line}" for name, lines in problems.items() for line in lines)
        return DryRun(catalogue.failed_result(settings.name, "工具的设置有误"), error=lines)
    tool = build_ready_tool(settings)
    mask = secrets.mask(tool.request.secrets)
    with capture_error() as attempt:
        request = tool.request.request(
            check_arguments(tool.spec.parameters_schema, arguments), secrets
        )
        return replace(await _sent(tool, request, mask, fetcher), seconds=time.monotonic() - begin)
    operator_error = attempt.error.operator if isinstance(attempt.error, SecretRefused) else ""
    return DryRun(_failure(settings.name, attempt.error), error=operator_error)


async def _sent(
    tool: ReadyHttpTool, request: FetchRequest, mask: SecretMask, fetcher: Fetcher
) -> DryRun:
    shown = DryRun(
        catalogue.failed_result(tool.settings.name, ""),
        method=request.method,
        url=mask.text(request.url),
        headers=mask_headers(request.headers, mask),
        body=mask.text((request.body or b"").decode("utf-8", "replace"))[:SHOWN],
    )
    try:
        fetched, result = await tool.exchange(request, mask, fetcher)
    except FetchError as error:
        return replace(
            shown, result=_failure(tool.settings.name, error), error=mask.text(str(error))
        )
    return replace(
        shown,
        result=catalogue.clip_result(result),
        status=fetched.status,
        answer_headers=mask_headers(fetched.headers, mask),
        text=mask_answer_text(fetched, mask, SHOWN),
    )


def _failure(name: str, error: Exception | None) -> ToolExecutionResult:
    match error:
        case InvalidArguments():
            return catalogue.invalid_arguments_result(name, error)
        case FetchError():
            return catalogue.failed_result(name, error.text)
        case _:
            return catalogue.raised_result(name, error or RuntimeError("nothing came of it"))


logger = logging.getLogger(__name__)


# Answers that are kept for a while, and requests that several calls wait for.

ENTRIES = 1_000
BYTES = 64 * 2**20


Ask = Callable[[], Coroutine[Any, Any, ToolExecutionResult]]


@dataclass(slots=True, eq=False)
class _Flight:
    """One request under way, and how many calls wait for it."""

    task: asyncio.Task[ToolExecutionResult]
    waiting: int = 0


class AnswerCache:
    """Used from one event loop. ``clock`` counts monotonic seconds.

    Only successes are kept; of what is kept, the longest unused goes first.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[ToolExecutionResult, float]] = OrderedDict()
        self._bytes = 0
        self._flights: dict[bytes, _Flight] = {}

    async def result(self, key: bytes, seconds: float, ask: Ask) -> ToolExecutionResult:
        """The value cached under ``key``, or the result of ``ask``, which is then cached for
        ``seconds``.

        Concurrent calls with the same key share one request. When cancelled, the request continues
        if another call waits for it.
        """
        result, until = self._kept.get(key, (None, 0.0))
        if result is not None and until > self._clock():
            self._kept.move_to_end(key)
            return result
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(
                asyncio.get_running_loop().create_task(self._asked(key, seconds, ask))
            )
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if flight.task.done() or not flight.waiting:
                flight.task.cancel()
                if self._flights.get(key) is flight:
                    del self._flights[key]

    def close(self) -> None:
        """Give up every request under way; callers that wait for one are cancelled."""
        for flight in self._flights.values():
            flight.task.cancel()

    async def _asked(self, key: bytes, seconds: float, ask: Ask) -> ToolExecutionResult:
        result = await ask()
        self._drop(key)
        if result.success:
            self._kept[key] = result, self._clock() + seconds
            self._bytes += estimate_size(result)
            while len(self._kept) > ENTRIES or self._bytes > BYTES:
                self._drop(next(iter(self._kept)))
        return result

    def _drop(self, key: bytes) -> None:
        if kept := self._kept.pop(key, None):
            self._bytes -= estimate_size(kept[0])


def estimate_size(result: ToolExecutionResult) -> int:
    """About how many bytes ``result`` takes in memory; of JSON, at most."""
    text = len(result.content)
    values = 24 * text if isinstance(result.structured_content, dict | list) else 0
    return 2_000 + 2 * text + values + sum(len(item.data) for item in result.content_items)


LogLimit(logger, named=1)

SWITCHED_OFF = "该工具已被机器人主人停用，请改用其他方式。"
MISCONFIGURED = "该工具的设置有误，暂时不能使用，请告诉机器人主人在后台检查。"


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The rows as last read; replaced as a whole. ``absent`` is the reason why a tool is
    unavailable."""

    tools: Mapping[str, ReadyHttpTool] = field(default_factory=dict)
    secrets: SecretValues = field(default_factory=SecretValues)
    absent: Mapping[str, str] = field(default_factory=dict)
    misconfigured: tuple[HttpToolSettings, ...] = ()
    cache: AnswerCache = field(default_factory=AnswerCache)


class HttpToolProvider:
    """Every row that is switched on and has no fault is a tool. Closes ``fetcher`` with itself."""

    provider_name = PROVIDER
    provider_type = PROVIDER

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._rows = _Rows()
        self._is_started = False

    def obey(self, settings: Sequence[HttpToolSettings], secrets: SecretValues) -> None:
        """Offer what the rows say that are there now."""
        before, rows = self._rows, _read(self._rows, settings, secrets)
        if broken := rows.secrets.undecryptable - before.secrets.undecryptable:
            logger.error(
                "Secrets that have to be entered anew, since SECRET_KEY has changed: %s",
                ", ".join(sorted(broken)),
            )
        self._rows = rows
        if fresh := [
            tool.spec for name, tool in rows.tools.items() if before.tools.get(name) is not tool
        ]:
            with (
                log_errors(logger, "The settings of HTTP tools could not be made"),
                transaction.atomic(),
            ):
                ensure_tool_rows(fresh)

    def start(self) -> None:
        self._is_started = True

    def absence(self, tool_name: str) -> str:
        return self._rows.absent.get(tool_name, "")

    def listing_key(self, context: ToolAvailabilityContext | None) -> tuple[object, bool]:
        return self._rows, self._is_started

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        return [tool.spec for tool in self._rows.tools.values()] if self._is_started else []

    async def invoke(
        self, invocation: ToolInvocation, context: ToolExecutionContext | None = None
    ) -> ToolExecutionResult:
        """Make the request, or return the cached answer. The arguments are already checked.

        Raises :class:`tools.contract.InvalidArguments` for an argument that cannot stand where
        the row puts it, and :class:`tools.contract.ToolFailed` for a secret that is not to be had
        or may not be sent there.
        """
        rows, name = self._rows, invocation.tool_name
        tool = rows.tools.get(name)
        if tool is None:
            return (
                catalogue.failed_result(name, reason)
                if (reason := self.absence(name))
                else catalogue.not_found_result(name)
            )
        mask = rows.secrets.mask(tool.request.secrets)
        try:
            request = tool.request.request(invocation.arguments, rows.secrets)
        except FetchError as error:
            return catalogue.failed_result(name, error.text)
        except SecretRefused as error:
            logger.warning("HTTP tool %s: %s", name, error.operator)
            raise
        ask = partial(self._asked, tool, request, mask)
        seconds = tool.settings.cache_seconds
        key = name.encode() + request_digest(request)
        result = await rows.cache.result(key, seconds, ask) if seconds else await ask()
        return replace(result, metadata=dict(result.metadata))

    async def close(self) -> None:
        self._rows.cache.close()
        await self._fetcher.close()

    async def _asked(
        self, tool: ReadyHttpTool, request: FetchRequest, mask: SecretMask
    ) -> ToolExecutionResult:
        try:
            _, result = await tool.exchange(request, mask, self._fetcher)
        except FetchError as error:
            name = tool.settings.name
            logger.warning("HTTP tool %s: %s", name, " ".join(mask.text(str(error)).split()))
            return catalogue.failed_result(name, error.text)
        return result


def _read(before: _Rows, settings: Sequence[HttpToolSettings], secrets: SecretValues) -> _Rows:
    """The rows as they are now; a tool that is as it was stays the same object, and so does the
    cache when all do."""
    tools: dict[str, ReadyHttpTool] = {}
    absent: dict[str, str] = {}
    misconfigured = []
    for row in settings:
        known = before.tools.get(row.name)
        if not row.enabled:
            absent[row.name] = SWITCHED_OFF
        elif known is not None and known.settings == row:
            tools[row.name] = known
        elif row not in before.misconfigured and (ready := _ready(row)):
            tools[row.name] = ready
        else:
            absent[row.name] = MISCONFIGURED
            misconfigured.append(row)
    is_same = secrets == before.secrets and tools == before.tools
    return _Rows(
        tools, secrets, absent, tuple(misconfigured), before.cache if is_same else AnswerCache()
    )


def _ready(row: HttpToolSettings) -> ReadyHttpTool | None:
    """The tool; None, which is logged, for a row with faults: one that came into the table past the
    admin may have them."""
    with log_errors(logger, "HTTP tool %s cannot be used", row.name):
        lines = [
            f"{name}: {line!r}"
            for name, lines in check_http_tool(row, ValidationContext()).items()
            for line in lines
        ]
        if not lines:
            return build_ready_tool(row)
        logger.warning("HTTP tool %s is left out: %s", row.name, "; ".join(lines))
    return None


def load_http_tools() -> tuple[HttpToolSettings, ...]:
    """Every row, switched off ones as well, by name."""
    rows = HttpTool.objects.values(*FIELDS).order_by("name")
    return tuple(HttpToolSettings(**values) for values in rows)

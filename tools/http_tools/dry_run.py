"""A call of an HTTP tool for the person who sets it up: the request as it goes out, and what comes
of it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tools.contract import ToolExecutionResult
from tools.error_boundary import capture_error
from tools.errors import InvalidArguments
from tools.fetch.errors import FetchError
from tools.fetch.fetcher import Fetcher
from tools.fetch.request import FetchRequest
from tools.http_tools.answers import mask_answer_text, mask_headers
from tools.http_tools.tool import ReadyHttpTool, build_ready_tool
from tools.http_tools.validation import ValidationContext, check_http_tool
from tools.registry import outcomes
from tools.schemas.arguments import check_arguments
from tools.secrets.masked import SecretMask, SecretRefused, SecretValues

if TYPE_CHECKING:
    from tools.http_tools.models import HttpTool

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
    row: "HttpTool", arguments: Mapping[str, Any], secrets: SecretValues, fetcher: Fetcher
) -> DryRun:
    """Make the request of ``row`` once, whether it is saved and enabled or not. Errors are part of
    the result.

    ``secrets`` are what :func:`tools.secrets.store.load_secrets` reads; ``fetcher`` stays open.
    """
    settings, begin = row.to_settings(), time.monotonic()
    if problems := check_http_tool(settings, ValidationContext()):
        lines = "\n".join(f"{name}: {line}" for name, lines in problems.items() for line in lines)
        return DryRun(outcomes.failed_result(settings.name, "工具的设置有误"), error=lines)
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
        outcomes.failed_result(tool.settings.name, ""),
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
        result=outcomes.clip_result(result),
        status=fetched.status,
        answer_headers=mask_headers(fetched.headers, mask),
        text=mask_answer_text(fetched, mask, SHOWN),
    )


def _failure(name: str, error: Exception | None) -> ToolExecutionResult:
    match error:
        case InvalidArguments():
            return outcomes.invalid_arguments_result(name, error)
        case FetchError():
            return outcomes.failed_result(name, error.text)
        case _:
            return outcomes.raised_result(name, error or RuntimeError("nothing came of it"))

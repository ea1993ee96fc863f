"""An HTTP tool that is ready to be called: what it declares and sends, and how answers become
results. Pure except ``exchange``."""

import hashlib
import json
from dataclasses import dataclass

from tools.contract import ToolAnnotation, ToolExecutionResult, ToolSpec
from tools.fetch.fetcher import Fetcher
from tools.fetch.request import FetchRequest, FetchResponse
from tools.http_tools.answers import AnswerTemplate, answer_template
from tools.http_tools.request_template import RequestTemplate, request_template
from tools.http_tools.settings import GRACE_SECONDS, PROVIDER, HttpToolSettings
from tools.processes.threads import run_in_thread
from tools.secrets.masked import SecretMask

NO_PARAMETERS = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, eq=False)
class ReadyHttpTool:
    """A row without faults, read once. Made by :func:`build_ready_tool`."""

    settings: HttpToolSettings
    spec: ToolSpec
    request: RequestTemplate
    answer: AnswerTemplate

    async def exchange(
        self, request: FetchRequest, mask: SecretMask, fetcher: Fetcher
    ) -> tuple[FetchResponse, ToolExecutionResult]:
        """Make ``request`` once: what came, and what the model gets of it. Raises
        :class:`tools.fetch.errors.FetchError`."""
        fetched = await fetcher.fetch(request)
        if self.answer.is_quick(fetched):
            return fetched, self.answer.result(fetched, mask)
        return fetched, await run_in_thread(lambda: self.answer.result(fetched, mask))


def build_ready_tool(settings: HttpToolSettings) -> ReadyHttpTool:
    """What ``settings`` describe. Raises ValueError where they have faults (see
    :mod:`tools.http_tools.validation`)."""
    method = settings.method
    spec = ToolSpec(
        name=settings.name,
        description=settings.description,
        parameters_schema=settings.parameters_schema or NO_PARAMETERS,
        provider_name=PROVIDER,
        provider_type=PROVIDER,
        annotation=ToolAnnotation(
            read_only=method == "GET",
            destructive=method == "DELETE",
            idempotent=method in ("GET", "PUT", "DELETE"),
            open_world=True,
        ),
        metadata={"timeout_seconds": settings.timeout_seconds + GRACE_SECONDS},
    )
    return ReadyHttpTool(settings, spec, request_template(settings), answer_template(settings))


def request_digest(request: FetchRequest) -> bytes:
    """A key that two requests share only when they are equal. It does not reveal the secrets in
    them."""
    text = json.dumps(
        [request.method, request.url, sorted(request.headers.items()), request.body is None]
    )
    return hashlib.sha256(text.encode() + b"\0" + (request.body or b"")).digest()

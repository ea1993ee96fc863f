"""An HTTP tool that is ready to be called: what it declares and sends, and how answers become
results. Pure except ``exchange``."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tools.contract import ToolAnnotation, ToolExecutionResult, ToolSpec
from tools.errors import InvalidArguments
from tools.fetch.fetcher import Fetcher
from tools.fetch.request import FetchRequest, FetchResponse
from tools.http_tools.answers import AnswerTemplate, answer_template
from tools.http_tools.body_template import BodyTemplate, body_template
from tools.http_tools.settings import GRACE_SECONDS, PROVIDER, HttpToolSettings, secret_names
from tools.http_tools.substitution import Encode, TemplateValues
from tools.http_tools.templates import Template, parse_template
from tools.http_tools.url_template import (
    Entries,
    UrlTemplate,
    parse_query_entries,
    percent_encode,
    url_template,
)
from tools.processes.threads import run_in_thread
from tools.secrets.masked import SecretMask, SecretValues

# The whole request of a tool, from its row and the arguments of a call. Pure.

HEADER_LIMIT = 8_000
"""Characters of a header's value; most servers take no more."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """A row, read once. Made by :func:`request_template`."""

    method: str
    url: UrlTemplate
    query: Entries
    headers: tuple[tuple[str, Template], ...]
    body: BodyTemplate
    seconds: float
    max_bytes: int
    secrets: frozenset[str]
    """The names of all secrets that the row names."""

    def request(self, arguments: Mapping[str, Any], secrets: SecretValues) -> FetchRequest:
        """The request of one call; ``arguments`` are checked already.

        Raises :class:`tools.errors.InvalidArguments` for a value that cannot stand where it
        is wanted, :class:`tools.errors.ToolFailed` for a secret that is not to be had or may not
        be sent there (:class:`tools.secrets.masked.SecretRefused`), and
        :class:`tools.fetch.errors.RequestRefused` for a URL that is too long.
        """
        values = TemplateValues(arguments, secrets)
        body = self.body.body(values)
        url = self.url.url(values, self.query)
        secrets.check_destination(self.secrets, url)
        headers = {
            name: values.render(template, _header_value(name))
            for name, template in self.headers
            if not values.is_omitted(template)
        }
        if (
            body is not None
            and self.body.content_type
            and "content-type" not in map(str.lower, headers)
        ):
            headers["Content-Type"] = self.body.content_type
        return FetchRequest(
            url=url,
            method=self.method,
            headers=headers,
            body=body,
            max_bytes=self.max_bytes,
            seconds=self.seconds,
            is_private=bool(self.secrets),
        )


def request_template(settings: HttpToolSettings) -> RequestTemplate:
    """What ``settings`` ask for. Raises ValueError where they have faults (see
    :mod:`tools.http_tools.validation`)."""
    url = url_template(settings.url)
    if url is None:
        raise ValueError("the URL cannot be read")
    return RequestTemplate(
        method=settings.method,
        url=url,
        query=parse_query_entries(settings.query),
        headers=tuple((name, parse_template(value)) for name, value in settings.headers.items()),
        body=body_template(settings.body_kind, settings.body, settings.headers),
        seconds=settings.timeout_seconds,
        max_bytes=settings.max_kib * 1024,
        secrets=secret_names(settings),
    )


def _header_value(header: str) -> Encode:
    """How values stand in ``header``. Those of cookies are encoded: a ``;`` would begin another
    cookie."""

    def encoded(text: str, name: str) -> str:
        if _CONTROL.search(text) or len(text) > HEADER_LIMIT:
            raise InvalidArguments([f"{name} 含有不能放进请求头的控制字符，或者过长"])
        return percent_encode(text) if header.lower() == "cookie" else text

    return encoded


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

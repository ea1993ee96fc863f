"""The whole request of a tool, from its row and the arguments of a call. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tools.errors import InvalidArguments
from tools.fetch.request import FetchRequest
from tools.http_tools.body_template import BodyTemplate, body_template
from tools.http_tools.settings import HttpToolSettings, secret_names
from tools.http_tools.substitution import Encode, TemplateValues
from tools.http_tools.templates import Template, parse_template
from tools.http_tools.url_template import (
    Entries,
    UrlTemplate,
    parse_query_entries,
    percent_encode,
    url_template,
)
from tools.secrets.masked import SecretValues

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

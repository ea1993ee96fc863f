"""Public web sources that tools read live. Synchronous: a sample tool runs in a thread of its
own."""

import contextlib
import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tools.contract import ToolFailed
from tools.version import USER_AGENT

if TYPE_CHECKING:
    import requests

SECONDS = 15
"""For one answer, from the first byte sent to the last one read."""
LIMIT = 4 * 2**20
"""Bytes of one answer."""
HEADERS = {"User-Agent": USER_AGENT, "Accept": "application/json"}


def fetch_json(url: str, **query: str | float) -> Any:
    """What the source at ``url`` answers. Raises :class:`ToolFailed` with the reason when there is
    no such answer."""
    import requests  # in the tool's own thread, when a tool first looks something up

    try:
        with requests.get(
            url, query, headers=HEADERS, timeout=SECONDS, stream=True, allow_redirects=False
        ) as response:
            if response.status_code != 200:
                raise ToolFailed(f"数据源返回了错误（HTTP {response.status_code}），请稍后再试")
            return json.loads(_body(response))
    except requests.Timeout as error:
        raise ToolFailed(f"数据源超过 {SECONDS:g} 秒没有回应，请稍后再试") from error
    except requests.RequestException as error:
        raise ToolFailed("无法连接数据源，请稍后再试") from error
    except ValueError as error:
        raise ToolFailed("数据源返回的内容无法识别，请稍后再试") from error


def _body(response: "requests.Response") -> bytes:
    """The whole answer; the time limit of ``requests`` alone is one of each read."""
    from requests import Timeout

    end = time.monotonic() + SECONDS
    body = b""
    for part in response.iter_content(64 * 1024):
        body += part
        if len(body) > LIMIT:
            raise ToolFailed("数据源返回的内容过大")
        if time.monotonic() > end:
            raise Timeout
    return body


@contextlib.contextmanager
def expect_fields() -> Iterator[None]:
    """Say so where an answer does not hold what it should."""
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ToolFailed("数据源返回的内容无法识别，请稍后再试") from error

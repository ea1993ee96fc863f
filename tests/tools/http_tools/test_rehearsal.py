"""A call by hand shows the request and the answer, and no secret."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.file_server import redirects, sends
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import Fetcher
from tools.http_tools.provider import DryRun, dry_run_tool
from tools.models import HttpTool
from tools.secrets.hosts import SecretHosts
from tools.secrets.masked import SecretValues

SECRET = "sk/12 34"
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["city"],
}


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(AllowList.parse(["127.0.0.1"]))
    yield fetcher
    await fetcher.close()


async def rehearsed(fetcher: Fetcher, url: str, arguments: dict[str, Any], **values: Any) -> DryRun:
    row = HttpTool(name="weather", url=url, parameters_schema=PARAMETERS, **values)
    return await dry_run_tool(
        row,
        arguments,
        SecretValues({"KEY": SECRET}, hosts={"KEY": SecretHosts.of_urls([url])}),
        fetcher,
    )


async def test_request_and_answer_are_shown_with_secrets_masked(fetcher, file_server):
    url = file_server.serve(
        "/a%2Fb",
        sends(b'{"you sent": "sk/12 34", "n": 3}', "application/json", x_echo="sk%2F12%2034"),
    )
    shown = await rehearsed(
        fetcher,
        url.replace("a%2Fb", "{city}") + "?k={secret:KEY}",
        {"city": "a/b", "n": "3"},
        method="POST",
        headers={"X-Key": "k {secret:KEY}"},
        body_kind="json",
        body='{"n": "{n}", "key": "{secret:KEY}"}',
        answer_kind="jsonpath",
        answer_path="$.n",
    )
    assert file_server.requests[0].body == b'{"n": 3, "key": "sk/12 34"}'
    assert (shown.method, shown.url) == ("POST", f"{file_server.url}/a%2Fb?k=••••")
    assert shown.headers == {"X-Key": "k ••••", "Content-Type": "application/json"}
    assert shown.body == '{"n": 3, "key": "••••"}'
    assert (shown.status, shown.answer_headers["x-echo"], shown.text) == (
        200,
        "••••",
        '{"you sent": "••••", "n": 3}',
    )
    assert (shown.result.content, shown.result.structured_content, shown.error) == ("3", 3, "")
    assert shown.seconds > 0


async def test_a_destination_that_is_refused_is_explained_to_the_operator(fetcher, file_server):
    url = file_server.serve("/", redirects("http://127.0.0.2:1/"))
    shown = await rehearsed(fetcher, url, {"city": "x"})
    assert "127.0.0.2 is not public; FETCH_ALLOW can list it" in shown.error
    assert "127.0.0.2" not in shown.result.error_message
    assert (shown.method, shown.status) == ("GET", None)


@pytest.mark.parametrize(
    ("arguments", "values", "told"),
    [
        ({}, {}, "city 不能为空"),
        ({"city": "x", "n": "many"}, {}, "n 应为整数"),
        ({"city": "x"}, {"headers": {"X": "{secret:OTHER}"}}, "工具执行失败: 密钥 OTHER 不存在"),
        ({"city": "x\n"}, {"headers": {"X": "{city}"}}, "city 含有不能放进请求头的控制字符"),
        ({"city": "x"}, {"query": []}, "工具执行失败: 工具的设置有误"),
        ({"city": "x" * 9_000}, {"query": {"city": "{city}"}}, "city 过长"),
    ],
)
async def test_what_cannot_be_sent_says_why(fetcher, arguments, values, told):
    shown = await rehearsed(fetcher, "https://api.example.com/", arguments, **values)
    assert shown.result.error_message.startswith(told)
    assert (shown.method, shown.status, shown.result.success) == ("", None, False)
    assert bool(shown.error) == (values == {"query": []})

"""HTTP tools as the registry calls them: real rows, a real server, and servers that mean ill."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from tests.file_server import FileServer, bombs, never_answers, redirects, sends, sends_endlessly
from tests.tools.http_tools.rows import enter_secrets
from tools.contract import ToolExecutionResult, ToolInvocation
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import Fetcher
from tools.http_tools.provider import HttpToolProvider, load_http_tools
from tools.models import HttpTool, Secret, ToolConfig
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings, load_tool_settings
from tools.secrets.masked import MASK
from tools.secrets.models import load_secrets

pytestmark = pytest.mark.django_db
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Bench:
    """A provider behind a registry, and what an operator does to its rows."""

    def __init__(self, server: FileServer, allow: str = "127.0.0.1") -> None:
        self.server = server
        self.provider = HttpToolProvider(Fetcher(AllowList.parse([allow] if allow else [])))
        self.provider.start()
        self._rows: Mapping[str, ToolSettings] = {}
        self.registry = ToolRegistry(lambda: self._rows)
        self.registry.register_provider(self.provider)

    async def obey(self, change: Callable[[], Any]) -> None:
        def obeyed() -> None:
            change()
            self.provider.obey(load_http_tools(), load_secrets())
            self._rows = load_tool_settings()

        await sync_to_async(obeyed)()

    async def has(self, **values: Any) -> None:
        values = {
            "name": "weather",
            "description": "查天气",
            "url": self.server.url + "/w",
            **values,
        }
        await self.obey(lambda: HttpTool(**values).save())

    async def change(self, **values: Any) -> None:
        await self.obey(lambda: HttpTool.objects.update(**values))

    async def knows(self, **secrets: str) -> None:
        await self.obey(lambda: enter_secrets(self.server.url, **secrets))

    async def call(self, **arguments: Any) -> ToolExecutionResult:
        return await self.registry.invoke(ToolInvocation("weather", arguments))

    async def failure(self, **arguments: Any) -> str:
        result = await self.call(**arguments)
        assert not result.success
        return result.error_message.removeprefix("工具执行失败: ")


@pytest.fixture
async def bench(file_server: FileServer) -> AsyncIterator[Bench]:
    bench = Bench(file_server)
    yield bench
    await bench.registry.close()


# --- Ordinary calls -------------------------------------------------------------


async def test_a_row_is_a_tool_with_a_row_of_its_own(bench):
    await bench.has(parameters_schema=CITY, timeout_seconds=7, method="DELETE")
    (spec,) = await bench.registry.list_tools()
    assert (spec.name, spec.description, spec.provider_type, spec.parameters_schema) == (
        "weather",
        "查天气",
        "http",
        CITY,
    )
    assert (spec.annotation.read_only, spec.annotation.destructive, spec.annotation.idempotent) == (
        False,
        True,
        True,
    )
    row = await ToolConfig.objects.aget(name="weather")
    assert (row.provider_name, row.timeout_seconds, row.parameter_names) == ("http", 12, ["city"])


async def test_a_call_sends_the_request_and_tells_the_wanted_part(bench):
    bench.server.serve(
        "/w/上海".replace("上海", "%E4%B8%8A%E6%B5%B7"),
        sends('{"now": {"text": "晴"}}'.encode(), "application/json"),
    )
    await bench.knows(KEY="s3cret-key")
    await bench.has(
        url=bench.server.url + "/w/{city}",
        query={"unit": "{unit}", "k": "{secret:KEY}"},
        headers={"X-Key": "{secret:KEY}"},
        parameters_schema={
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"type": "string"}},
        },
        answer_kind="jsonpath",
        answer_path="$.now.text",
    )
    result = await bench.call(city="上海")
    assert (result.success, result.content, result.structured_content) == (True, "晴", "晴")
    (request,) = bench.server.requests
    assert request.target == "/w/%E4%B8%8A%E6%B5%B7?k=s3cret-key"
    assert request.headers["x-key"] == "s3cret-key"


async def test_arguments_are_checked_before_anything_is_sent(bench):
    await bench.has(url=bench.server.url + "/w/{city}", parameters_schema=CITY)
    assert (await bench.call()).error_message.endswith("city 不能为空")
    assert "不能作为网址路径的一部分" in (await bench.call(city="../admin")).error_message
    assert bench.server.requests == []


async def test_a_declaration_stays_the_same_object_until_its_row_changes(bench):
    await bench.has()
    (first,) = await bench.provider.list_tools()
    await bench.knows(OTHER="x")
    assert (await bench.provider.list_tools())[0] is first
    await bench.change(description="别的")
    assert (await bench.provider.list_tools())[0] is not first


async def test_nothing_is_offered_before_the_provider_is_started(file_server):
    provider = HttpToolProvider(Fetcher())
    await HttpTool(name="weather", url="https://api.example.com/").asave()
    rows, secrets = await sync_to_async(load_http_tools)(), await sync_to_async(load_secrets)()
    provider.obey(rows, secrets)
    assert await provider.list_tools() == []
    provider.start()
    assert [spec.name for spec in await provider.list_tools()] == ["weather"]


# --- Switched off, faulty, gone -----------------------------------------------------


async def test_a_tool_that_is_switched_off_is_gone_at_once_and_says_why(bench):
    await bench.has()
    await bench.change(enabled=False)
    assert await bench.registry.list_tools() == []
    result = await bench.call()
    assert result.metadata["refusal"] == "server_down"
    assert "已被机器人主人停用" in result.error_message
    await bench.change(enabled=True)
    bench.server.serve("/w", sends(b"ok", "text/plain"))
    assert (await bench.call()).content == "ok"


async def test_an_invalid_row_costs_itself_only(bench, caplog):
    bench.server.serve("/w", sends(b"ok", "text/plain"))
    await bench.has()
    await bench.has(name="broken", url="https://{x}.example.com/", query=[1])
    assert [spec.name for spec in await bench.registry.list_tools()] == ["weather"]
    assert "设置有误" in bench.provider.absence("broken")
    assert "HTTP tool broken is left out" in caplog.text
    assert (await bench.call()).success


async def test_a_row_that_breaks_its_reading_costs_itself_only(bench, caplog, monkeypatch):
    bench.server.serve("/w", sends(b"ok", "text/plain"))
    await bench.has()
    monkeypatch.setattr("tools.http_tools.provider.build_ready_tool", lambda row: 1 / 0)
    await bench.has(name="broken")
    assert [spec.name for spec in await bench.registry.list_tools()] == ["weather"]
    assert "HTTP tool broken cannot be used" in caplog.text


async def test_a_tool_whose_settings_cannot_be_made_works_with_its_own(bench, caplog, monkeypatch):
    bench.server.serve("/w", sends(b"ok", "text/plain"))
    monkeypatch.setattr("tools.http_tools.provider.ensure_tool_rows", lambda specs: 1 / 0)
    await bench.has()
    assert (await bench.call()).content == "ok"
    assert "could not be made" in caplog.text


# --- Secrets --------------------------------------------------------------------


async def test_a_secret_never_comes_back(bench, caplog):
    caplog.set_level(logging.DEBUG)
    await bench.knows(KEY="sk-12345678")
    await bench.has(headers={"Authorization": "Bearer {secret:KEY}"}, query={"key": "{secret:KEY}"})
    for body, content_type, status in [
        (b'{"auth": "Bearer sk-12345678"}', "application/json", 200),
        (b"bad key sk-12345678", "text/plain", 403),
    ]:
        bench.server.serve("/w", sends(body, content_type, status=status))
        result = await bench.call()
        assert MASK in repr(result)
        assert "sk-12345678" not in repr(result) + caplog.text
    bench.server.serve("/w", redirects("https://sk-12345678.example.com:99999/"))
    assert "跳转" in await bench.failure()
    assert "sk-12345678" not in caplog.text


async def test_secrets_sealed_under_another_key_are_asked_for_anew(bench, settings, caplog):
    await bench.knows(KEY="sk-12345678")
    await bench.has(query={"key": "{secret:KEY}"})
    settings.SECRET_KEY = "another-key-" * 5
    await bench.obey(lambda: None)
    secret: Any = await Secret.objects.aget()
    assert not secret.is_readable
    assert "have to be entered anew, since SECRET_KEY has changed: KEY" in caplog.text
    assert await bench.failure() == (
        "密钥 KEY 已无法读取（服务器的主密钥变了），请告诉机器人主人在后台“密钥”页重新填写，"
        "现在不要重试。"
    )
    assert bench.server.requests == []

    await bench.knows(KEY="sk-new-1234")
    bench.server.serve("/w", sends(b"ok"))
    assert (await bench.call()).success
    assert bench.server.requests[0].target == "/w?key=sk-new-1234"


async def test_a_secret_that_was_deleted_fails_the_call_in_words(bench):
    await bench.has(query={"key": "{secret:KEY}"})
    assert "密钥 KEY 不存在" in await bench.failure()


async def test_a_secret_does_not_follow_a_redirect_to_another_host(bench):
    with FileServer() as other:
        bench.server.serve("/w", redirects(other.serve("/", sends(b"ok", "text/plain"))))
        await bench.knows(KEY="sk-12345678")
        await bench.has(headers={"X-Key": "{secret:KEY}"})
        assert (await bench.call()).content == "ok"
        assert "x-key" not in other.requests[0].headers


# --- Servers and addresses that mean ill --------------------------------------------


async def test_a_private_address_is_refused_unless_it_is_listed(file_server):
    bench = Bench(file_server, allow="")
    await bench.has()
    assert await bench.failure() == "该网址指向内部网络或保留地址，不允许访问，请不要重试。"
    assert file_server.requests == []
    await bench.registry.close()


async def test_a_redirect_to_a_private_address_is_refused(bench):
    bench.server.serve("/w", redirects("http://127.0.0.2:1/admin"))
    await bench.has()
    assert "内部网络" in await bench.failure()


@pytest.mark.parametrize(
    "make",
    [lambda: bombs("gzip", 64), sends_endlessly, lambda: sends(b"x", content_length="9999999999")],
    ids=["a bomb", "endless", "claims to be large"],
)
async def test_an_answer_beyond_the_limit_is_a_failure(bench, make):
    bench.server.serve("/w", make())
    await bench.has(max_kib=64)
    assert await bench.failure() == "该网址的内容超过 65536 字节，请不要重试。"
    await bench.server.wait_until_unused()


async def test_a_server_that_does_not_answer_is_given_up_after_the_time_of_the_row(bench):
    bench.server.serve("/w", never_answers())
    await bench.has(timeout_seconds=1)
    assert await bench.failure() == "访问该网址超过 1 秒仍未完成，可以稍后再试。"
    await bench.server.wait_until_unused()


async def test_a_call_that_is_cancelled_ends_its_request(bench):
    bench.server.serve("/w", never_answers())
    await bench.has(cache_seconds=60)
    call = asyncio.ensure_future(bench.call())
    await bench.server.wait_for_requests(1)
    call.cancel()
    await bench.server.wait_until_unused()


async def test_a_large_answer_is_read_beside_the_event_loop(bench):
    bench.server.serve(
        "/w", sends(b"[" + b'{"a": [1, 2, 3]},' * 50_000 + b"1]", "application/json")
    )
    await bench.has(answer_kind="jsonpath", answer_path="$..a[?@ > 2]", max_kib=2048)
    assert "数据过多" in await bench.failure()


# --- Kept answers -----------------------------------------------------------------


async def test_an_answer_is_kept_by_what_was_asked_until_something_changes(bench):
    bench.server.serve("/w", sends(b"ok", "text/plain"))
    await bench.knows(KEY="sk-12345678")
    await bench.has(
        query={"city": "{city}", "k": "{secret:KEY}"}, parameters_schema=CITY, cache_seconds=600
    )
    for city in ("上海", "北京", "上海"):
        assert (await bench.call(city=city)).content == "ok"
    assert len(bench.server.requests) == 2

    await bench.knows(KEY="sk-new-1234")
    await bench.call(city="上海")
    await bench.change(description="别的")
    await bench.call(city="上海")
    assert len(bench.server.requests) == 4


async def test_tools_that_ask_for_the_same_have_their_own_answers(bench):
    bench.server.serve("/w", sends(b'{"a": 1, "b": 2}', "application/json"))
    for name, path in [("weather", "$.a"), ("other", "$.b")]:
        await bench.has(name=name, answer_kind="jsonpath", answer_path=path, cache_seconds=600)
    told = [
        (await bench.registry.invoke(ToolInvocation(name, {}))).content
        for name in ("weather", "other", "weather")
    ]
    assert told == ["1", "2", "1"]
    assert len(bench.server.requests) == 2


async def test_a_failure_is_asked_for_again(bench):
    bench.server.serve("/w", sends(b"busy", "text/plain", status=503))
    await bench.has(cache_seconds=600)
    assert "HTTP 503" in await bench.failure()
    bench.server.serve("/w", sends(b"ok", "text/plain"))
    assert (await bench.call()).content == "ok"


async def test_equal_calls_at_the_same_time_make_one_request_only_where_answers_are_kept(bench):
    bench.server.serve("/w", sends(b"ok", "text/plain"))
    await bench.has(cache_seconds=600)
    results = await asyncio.gather(*(bench.call() for _ in range(5)))
    assert {result.content for result in results} == {"ok"}
    assert len(bench.server.requests) == 1
    await bench.change(cache_seconds=0)
    await asyncio.gather(*(bench.call() for _ in range(3)))
    assert len(bench.server.requests) == 4


async def test_closing_ends_what_is_under_way(bench):
    bench.server.serve("/w", never_answers())
    await bench.has(cache_seconds=60)
    call = asyncio.ensure_future(bench.call())
    await bench.server.wait_for_requests(1)
    await bench.registry.close()
    assert not (await call).success
    await bench.server.wait_until_unused()

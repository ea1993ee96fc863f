"""The samples with their mocks off, against a real HTTP server in place of the public ones."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tools.contract import ToolExecutionResult, ToolInvocation
from tools.functions.function_tool import FunctionProvider
from tools.functions.samples import game_version, source, weather
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

PLACE = {"name": "北京", "latitude": 39.9, "longitude": 116.4, "admin1": "北京", "country": "中国"}
NOW = {
    "temperature_2m": 25.1,
    "relative_humidity_2m": 40,
    "weather_code": 63,
    "wind_speed_10m": 9.5,
}
MANIFEST = {"latest": {"release": "1.21.11", "snapshot": "25w46a"}, "versions": []}


class Source(ThreadingHTTPServer):
    """Answers each path with what ``answers`` holds for it: bytes, JSON, or a status."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Any] = {
            "/search": {"results": [PLACE]},
            "/forecast": {"current": NOW},
            "/manifest": MANIFEST,
        }
        self.queries: dict[str, dict[str, list[str]]] = {}
        self.released = threading.Event()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class _Handler(BaseHTTPRequestHandler):
    server: Source

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.server.queries[parts.path] = parse_qs(parts.query)
        answer = self.server.answers[parts.path]
        if answer == "hang":
            self.server.released.wait(30)
        status = answer if isinstance(answer, int) else 200
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", self.server.url("/elsewhere"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    with Source() as server:
        monkeypatch.setattr(weather, "GEOCODING_URL", server.url("/search"))
        monkeypatch.setattr(weather, "FORECAST_URL", server.url("/forecast"))
        monkeypatch.setattr(game_version, "MINECRAFT_URL", server.url("/manifest"))
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.released.set()
        server.shutdown()


async def asked(name: str, *, seconds: float = 20, **arguments: str) -> ToolExecutionResult:
    registry = ToolRegistry(lambda: {name: ToolSettings(name, timeout_seconds=seconds)})
    tools = [weather.get_weather, game_version.get_game_version]
    registry.register_provider(FunctionProvider("samples", "builtin", tools))
    return await registry.invoke(ToolInvocation(name, dict(arguments)))


async def failure(name: str, city: str = "", game: str = "") -> str:
    result = await (asked(name, city=city) if city else asked(name, game=game))
    assert not result.success
    return result.error_message.removeprefix("工具执行失败: ")


async def test_the_weather_is_that_of_the_place_that_was_found(web):
    result = await asked("get_weather", city=" 北京 ")
    assert result.content == "北京，中国 的天气是中雨，温度 25.1°C，湿度 40%，风速 9.5 km/h"
    assert web.queries["/search"]["name"] == ["北京"]
    assert (web.queries["/forecast"]["latitude"], web.queries["/forecast"]["longitude"]) == (
        ["39.9"],
        ["116.4"],
    )


@pytest.mark.parametrize(
    ("code", "sky"),
    [(0, "晴朗"), (3, "阴"), (45, "有雾"), (75, "大雪"), (99, "雷暴"), (1000, "未知")],
)
async def test_the_sky_has_a_word_for_each_code(web, code, sky):
    web.answers["/forecast"] = {"current": NOW | {"weather_code": code}}
    assert f"的天气是{sky}，" in (await asked("get_weather", city="北京")).content


@pytest.mark.parametrize("answer", [{"results": []}, {"generationtime_ms": 1}])
async def test_a_city_that_is_nowhere_is_named(web, answer):
    web.answers["/search"] = answer
    assert await failure("get_weather", city="无此城") == "找不到城市: 无此城，请核对名称"
    assert "/forecast" not in web.queries


@pytest.mark.parametrize(
    "game", ["Minecraft", " MINECRAFT ", "我的世界", "minecraft  Java Edition"]
)
async def test_the_version_of_minecraft_is_the_publishers(web, game):
    text = (await asked("get_game_version", game=game)).content
    assert text == f"{game} 的最新版本是 1.21.11（Java 版），最新快照是 25w46a"


async def test_a_game_without_a_source_is_refused_with_the_known_one(web):
    text = await failure("get_game_version", game="原神")
    assert text.startswith("没有 原神 的实时数据源，目前只支持 Minecraft")
    assert web.queries == {}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (500, "数据源返回了错误（HTTP 500），请稍后再试"),
        (302, "数据源返回了错误（HTTP 302），请稍后再试"),
        (b"<html>", "数据源返回的内容无法识别，请稍后再试"),
        (b"\xff", "数据源返回的内容无法识别，请稍后再试"),
        ([], "数据源返回的内容无法识别，请稍后再试"),
        ({"latest": {}}, "数据源返回的内容无法识别，请稍后再试"),
        (None, "数据源返回的内容无法识别，请稍后再试"),
        (b"x" * (source.LIMIT + 1), "数据源返回的内容过大"),
    ],
    ids=lambda value: repr(value)[:20],
)
async def test_an_answer_that_cannot_be_used_is_a_clear_failure(web, answer, told):
    web.answers["/manifest"] = answer
    assert await failure("get_game_version", game="mc") == told
    assert "/elsewhere" not in web.queries


async def test_a_source_that_does_not_answer_is_given_up(web, monkeypatch):
    monkeypatch.setattr(source, "SECONDS", 0.05)
    web.answers["/manifest"] = "hang"
    assert await failure("get_game_version", game="mc") == "数据源超过 0.05 秒没有回应，请稍后再试"


async def test_the_time_limit_of_the_row_comes_first(web):
    web.answers["/manifest"] = "hang"
    result = await asked("get_game_version", game="mc", seconds=0.05)
    assert result.error_message == "工具执行失败: 超过 0.05 秒"


async def test_a_source_that_is_not_there_is_a_clear_failure(web, monkeypatch):
    monkeypatch.setattr(game_version, "MINECRAFT_URL", "http://127.0.0.1:1/")
    assert await failure("get_game_version", game="mc") == "无法连接数据源，请稍后再试"

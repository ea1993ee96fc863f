"""What Prometheus and a collector of traces are told of a conversation, and who may ask."""

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client, verdict
from tests.e2e.test_http_api import http
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, call
from tools.version import USER_AGENT

TOKEN = "metrics-token-1"
PRIVATE = "我的密码是 4715"


class Collector:
    """An OpenTelemetry collector that keeps the spans it was sent, and the headers beside them."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.keys: set[str | None] = set()
        self.agents: set[str | None] = set()
        self.came = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                sent = ExportTraceServiceRequest.FromString(body)
                for resource in sent.resource_spans:
                    for scope in resource.scope_spans:
                        collector.spans += scope.spans
                collector.keys.add(self.headers.get("x-key"))
                collector.agents.add(self.headers.get("User-Agent"))
                collector.came.set()
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_args: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


INVENTED = "tell_INVENTED_WORD"
"""A tool that a model makes up."""


async def talk(server: LiveServer, model: ScriptedModel) -> None:
    """One answer with one tool call, and one of a tool that there is not."""
    model.script([call("get_weather", city=PRIVATE), call(INVENTED, city=PRIVATE), PRIVATE])
    async with client(server) as bot:
        user = fresh_id()
        await bot.say_private(user, PRIVATE)
        await bot.next_action()
        await verdict(server, user)


async def test_metrics_count_what_happened_for_who_bears_the_token(model_server, model):
    with LiveServer(scripted_env(model_server) | {"METRICS_TOKEN": TOKEN}) as server:
        await talk(server, model)
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        answer = http(server, "GET", "/metrics", headers=bearer)
        refused = (
            http(server, "GET", "/metrics"),
            http(server, "GET", "/metrics", headers={"Authorization": "Bearer wrong"}),
        )
        posted = http(server, "POST", "/metrics", headers=bearer)
    lines = answer.text.splitlines()
    assert 'frostagent_messages_received_total{reason="private",state="waiting"} 1.0' in lines
    assert 'frostagent_messages_sent_total{outcome="delivered"} 1.0' in lines
    assert 'frostagent_run_seconds_count{outcome="finished"} 1.0' in lines
    tool = 'frostagent_tool_call_seconds_count{outcome="succeeded",tool="get_weather"} 1.0'
    assert tool in lines
    assert (
        "frostagent_accounts_connected 0.0" in lines or "frostagent_accounts_connected 1.0" in lines
    )
    assert PRIVATE not in answer.text
    assert [one.status_code for one in (*refused, posted)] == [401, 401, 405]


def test_without_a_token_there_are_no_metrics(live):
    assert http(live, "GET", "/metrics").status_code == 404


async def test_a_run_is_one_trace_in_the_words_of_the_conventions(model_server, model, collector):
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=k1"}
    with LiveServer(scripted_env(model_server) | env) as server:
        await talk(server, model)
        server.terminate()  # what waits is sent
    names = {span.name for span in collector.spans}
    assert {"chat scripted", "execute_tool get_weather"} < names
    run = next(span for span in collector.spans if span.name.startswith("invoke_agent"))
    inside = [span for span in collector.spans if span.parent_span_id == run.span_id]
    kinds = ["chat", "chat", "chat", "execute_tool", "execute_tool"]
    assert sorted(span.name.split()[0] for span in inside) == kinds
    assert not any(INVENTED.encode() in span.SerializeToString() for span in collector.spans)
    assert len({span.trace_id for span in collector.spans}) == 1
    told = {one.key for span in collector.spans for one in span.attributes}
    assert {"gen_ai.operation.name", "gen_ai.usage.input_tokens", "frostagent.run.id"} < told
    assert not any(PRIVATE.encode() in span.SerializeToString() for span in collector.spans)
    assert (collector.keys, collector.agents) == ({"k1"}, {USER_AGENT})


async def test_a_collector_that_is_away_costs_no_answer(model_server, model):
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    with LiveServer(scripted_env(model_server) | env) as server:
        await asyncio.wait_for(talk(server, model), 20)

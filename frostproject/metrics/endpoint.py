"""``GET /metrics``: what Prometheus scrapes.

Served only when ``METRICS_TOKEN`` is set. Plain ASGI, like :mod:`frostproject.web.http`. Each
server process counts for itself: with several, each is scraped.
"""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from frostproject.web.http import (
    HttpRefusal,
    Receive,
    Send,
    refuse_unknown_host,
    refuse_wrong_bearer,
    send_http_response,
    send_json,
)
from onebot.connections.handshake import Handshake
from onebot.gateway.gateway import Gateway
from tools.metrics import REGISTRY

# How things stand in this process at the moment that Prometheus asks.


class ProcessGauges(Collector):
    """Reads what the gateway of this process holds in memory; asks no database."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def collect(self) -> Iterator[Metric]:
        runtime = self._gateway.runtime
        connected = GaugeMetricFamily(
            "frostagent_accounts_connected", "Accounts that are connected to this process."
        )
        connected.add_metric((), len(self._gateway.connections.accounts))
        yield connected
        waiting = GaugeMetricFamily(
            "frostagent_messages_waiting", "Messages that wait in the queues of this process."
        )
        waiting.add_metric((), runtime.inbox.queues.total)
        yield waiting
        outage = GaugeMetricFamily(
            "frostagent_database_refuses", "1 while the database refuses to be written."
        )
        outage.add_metric((), 1 if runtime.record.outage else 0)
        yield outage


class MetricsEndpoint:
    """The counts of this process, in Prometheus's text form."""

    def __init__(self, gateway: Gateway) -> None:
        self._gauges = CollectorRegistry()
        self._gauges.register(ProcessGauges(gateway))

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        request = Handshake.from_scope(scope)
        try:
            if scope["method"] != "GET":
                raise HttpRefusal(405, "use GET")
            refuse_unknown_host(request)
            refuse_wrong_bearer(request, settings.METRICS_TOKEN)
        except HttpRefusal as refusal:
            await send_json(send, refusal.status, {"error": str(refusal)})
            return
        text = generate_latest(REGISTRY) + generate_latest(self._gauges)
        await send_http_response(send, 200, CONTENT_TYPE_PLAIN_0_0_4.encode(), text)

"""``GET /metrics``: what Prometheus scrapes.

Served only when ``METRICS_TOKEN`` is set. Plain ASGI, like :mod:`frostproject.web.http`. Each
server process counts for itself: with several, each is scraped.
"""

from typing import Any

from django.conf import settings
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from frostproject.metrics.gauges import ProcessGauges
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

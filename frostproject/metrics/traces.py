"""Sends the spans of runs to an OpenTelemetry collector, where one is set."""

import logging
from typing import TYPE_CHECKING

from django.conf import settings

from tools.tracing import switch_on
from tools.version import USER_AGENT

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

logger = logging.getLogger(__name__)

#: Spans that wait to be sent, at most; more are dropped, which the package logs.
MOST_WAITING = 2_048
#: How often a batch is sent, in seconds.
BATCH_SECONDS = 2.0
#: What one export may take, in seconds, and what the last one may when the server ends.
EXPORT_SECONDS, LAST_SECONDS = 10.0, 1.0


class TraceExport:
    """From :meth:`start` until :meth:`close`, spans are sent in batches from a thread of the
    package's own. A collector that is down costs spans, and no answer."""

    def __init__(self) -> None:
        self._provider: TracerProvider | None = None

    def start(self) -> None:
        """Begin, if ``OTEL_EXPORTER_OTLP_ENDPOINT`` is set and it has not begun."""
        if self._provider is not None or not settings.OTEL_EXPORTER_OTLP_ENDPOINT:
            return
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        exporter = OTLPSpanExporter(
            endpoint=f"{settings.OTEL_EXPORTER_OTLP_ENDPOINT.rstrip('/')}/v1/traces",
            headers={"user-agent": USER_AGENT} | parse_headers(settings.OTEL_EXPORTER_OTLP_HEADERS),
            timeout=EXPORT_SECONDS,
        )
        service = Resource.create({SERVICE_NAME: settings.OTEL_SERVICE_NAME})
        provider = TracerProvider(resource=service, shutdown_on_exit=False)
        batches = BatchSpanProcessor(
            exporter, max_queue_size=MOST_WAITING, schedule_delay_millis=BATCH_SECONDS * 1000
        )
        provider.add_span_processor(batches)
        self._provider = provider
        switch_on(provider.get_tracer("frostagent"))
        logger.info("Traces of runs go to an OpenTelemetry collector")

    def close(self) -> None:
        """Send what waits, within :data:`LAST_SECONDS`, and make no more spans. Blocks."""
        if self._provider is None:
            return
        switch_on(None)
        self._provider.force_flush(int(LAST_SECONDS * 1000))
        self._provider.shutdown()
        self._provider = None


def parse_headers(text: str) -> dict[str, str]:
    """``name=value,name=value`` as the OpenTelemetry specification writes headers; what is not of
    that form is left out."""
    pairs = (part.partition("=") for part in text.split(","))
    return {
        name.strip().lower(): value.strip() for name, sign, value in pairs if sign and name.strip()
    }

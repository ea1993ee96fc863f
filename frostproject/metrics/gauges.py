"""How things stand in this process at the moment that Prometheus asks."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from onebot.gateway.gateway import Gateway


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

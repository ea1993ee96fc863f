"""What this process has done since it started, counted for Prometheus.

Labels name kinds of things, tools and endpoints: never a chat or a person.
"""

from functools import cache
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

M = TypeVar("M", Counter, Histogram)

REGISTRY = CollectorRegistry()

#: Upper bounds of times, in seconds.
SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)

MESSAGES = Counter(
    "frostagent_messages_received",
    "Messages recorded, by the state they began in and why.",
    ("state", "reason"),
    registry=REGISTRY,
)
SENDS = Counter(
    "frostagent_messages_sent",
    "Messages handed to a client, by outcome.",
    ("outcome",),
    registry=REGISTRY,
)
RUNNING = Gauge("frostagent_runs", "Run loops that are under way.", registry=REGISTRY)
RUNS = Histogram(
    "frostagent_run_seconds",
    "Run loops, by how they ended.",
    ("outcome",),
    buckets=SECONDS,
    registry=REGISTRY,
)
MODEL_CALLS = Histogram(
    "frostagent_model_call_seconds",
    "Model calls of runs, by the endpoint that answered and the outcome.",
    ("endpoint", "model", "outcome"),
    buckets=SECONDS,
    registry=REGISTRY,
)
TOKENS = Counter(
    "frostagent_tokens",
    "Tokens that endpoints reported, or that were estimated where they did not.",
    ("endpoint", "kind"),
    registry=REGISTRY,
)
COST = Counter(
    "frostagent_cost",
    "What model calls cost, in units of the currency.",
    ("endpoint", "currency"),
    registry=REGISTRY,
)
TOOL_CALLS = Histogram(
    "frostagent_tool_call_seconds",
    "Tool calls, by outcome.",
    ("tool", "outcome"),
    buckets=SECONDS,
    registry=REGISTRY,
)


@cache
def labelled(metric: M, *labels: str) -> M:
    """``metric`` for these labels, looked up once: no metric forgets any."""
    return metric.labels(*labels)

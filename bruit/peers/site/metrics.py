"""The metrics of one peer, for Prometheus: what its status says in numbers, under `bruit_...`.

Every page has a registry of its own, read when it is asked for: peers of one process share nothing,
and nothing is counted twice. The client library is imported with this module, hence by peers that
serve metrics only. The one label that says something is the peer's number, or a kind of refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

GAUGES = {
    "peer": "The number of this peer in the address book.",
    "step": "Steps of the schedule made so far.",
    "steps": "Steps that were agreed on.",
    "done": "1 when this peer has nothing left to do.",
    "neighbors": "Neighbors this peer has a line to.",
    "connected": "Neighbors that are connected now.",
    "met": "Neighbors of whom at least one word was heard.",
    "waiting_for": "How many neighbors are waited for before anything is released.",
    "waiting": "1 while this peer waits for neighbors.",
    "sent": "Messages that arrived, by the word of their receivers.",
    "unconfirmed": "Messages whose receipt has not come.",
    "meetings": "Meetings in pairs.",
    "skipped": "Calls of its own clock that led to nothing.",
    "bytes_sent": "Bytes sent since the last start.",
    "bytes_received": "Bytes received since the last start.",
    "missed": "Exchanges this peer went on without somebody.",
    "missing": "How many neighbors it was without.",
    "left_out": "Contributions that the budget left out.",
    "epsilon": "Everything that was spent, at bruit_delta.",
    "epsilon_received": "What of it is in messages that arrived.",
    "delta": "The delta of all epsilons here.",
    "budget": "The epsilon that this peer keeps.",
    "budget_agreed": "The epsilon that was agreed on.",
    "releases": "Releases of this peer's data so far.",
    "releases_planned": "Releases that the noise is made for.",
    "releases_sure": "The probability that these are enough for everybody.",
    "rehearsal": "1 in a rehearsal, whose noise protects nothing.",
}


class PeerMetrics(Collector):
    """The status of one peer as metrics, read anew for every page."""

    def __init__(self, status: Callable[[], Mapping[str, Any]]) -> None:
        self.status = status

    def collect(self) -> Iterator[Metric]:
        now = self.status()
        peer = str(now["peer"])
        for name, about in GAUGES.items():
            value = now[name]
            if value is None:  # no budget
                continue
            gauge = GaugeMetricFamily(f"bruit_{name}", about, labels=["peer"])
            gauge.add_metric([peer], float(len(value) if isinstance(value, list) else value))
            yield gauge
        refused = CounterMetricFamily(
            "bruit_refused", "What was not accepted, by kind.", labels=["peer", "kind"]
        )
        for kind, count in now["refused"].items():
            refused.add_metric([peer, kind], count)
        yield refused


def page(status: Callable[[], Mapping[str, Any]]) -> str:
    """The text that Prometheus reads."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(PeerMetrics(status))
    return generate_latest(registry).decode()

"""What there is to say of a graph, as plain data."""

from __future__ import annotations

from typing import Any

from bruit.graphs import Graph, diameter, mixing_time, spectral_gap
from bruit.graphs import graph as named_graph
from bruit.graphs.names import weight_rule


def graph_facts(name: str) -> dict[str, Any]:
    """Peers, links, degrees, weights, diameter, spectral gap, mixing time, validity."""
    found = named_graph(name)
    if not isinstance(found, Graph):
        first = found.at(0)
        return {
            "name": found.name,
            "peers": found.n,
            "period": found.period,
            "links in round 0": first.edge_count,
            "messages per peer in round 0": float(first.degrees.mean()),
        }
    degrees, checks = found.degrees, found.validity()
    return {
        "name": found.name,
        "peers": found.n,
        "links": found.edge_count,
        "degrees": {
            "least": int(degrees.min()),
            "mean": float(degrees.mean()),
            "most": int(degrees.max()),
        },
        "weights": weight_rule(found),
        "connected": found.is_connected(),
        "diameter": diameter(found),
        "spectral_gap": spectral_gap(found),
        "mixing_time": mixing_time(found),
        "valid": checks.ok,
        "aperiodic": checks.aperiodic,
        "symmetric": checks.symmetric,
        "translations": list(found.group) if found.group else None,
    }

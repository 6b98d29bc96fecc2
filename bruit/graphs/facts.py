"""What there is to say of a graph, as plain data."""

from __future__ import annotations

import math
from typing import Any

from bruit.graphs import Graph, diameter, mixing_time, spectral_gap
from bruit.graphs import graph as named_graph
from bruit.graphs.names import weight_rule
from bruit.graphs.tolerance import ERROR, tolerated_liars, tolerated_weight


def graph_facts(name: str) -> dict[str, Any]:
    """Peers, links, degrees, weights, diameter, spectral gap, mixing time, validity; liars that rule
    "clip" tolerates at a peer (gossip:LIE-2)."""
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
        "tolerates": _tolerates(found) if checks.symmetric else None,
        "valid": checks.ok,
        "aperiodic": checks.aperiodic,
        "symmetric": checks.symmetric,
        "translations": list(found.group) if found.group else None,
    }


def _tolerates(found: Graph) -> dict[str, Any]:
    """How many liars, whoever they are, and what they may weigh at a peer, rounded down."""
    weight = tolerated_weight(found, ERROR["clip"])
    liars = tolerated_liars(found, weight)
    return {"liars": liars, "of weight below": math.floor(weight * 1e6) / 1e6}

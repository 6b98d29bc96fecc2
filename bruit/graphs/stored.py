"""A graph in a file: by its name, and its weights beside it, since the name of a graph of
the user's own says nothing to others."""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_array

from bruit.errors import ConfigError
from bruit.graphs.graph import Graph
from bruit.graphs.mixing import from_matrix
from bruit.graphs.names import graph as named
from bruit.graphs.sequence import GraphSequence


def describe_graph(graph: Graph | GraphSequence) -> dict[str, Any]:
    """Name, size and fingerprint, as plain data."""
    about: dict[str, Any] = {"name": graph.name, "peers": graph.n}
    if isinstance(graph, Graph):
        about["fingerprint"] = graph.fingerprint()
    return about


def graph_columns(graph: Graph | GraphSequence) -> dict[str, Any]:
    """The weights as arrays; none where the name says it all."""
    if not isinstance(graph, Graph) or graph.implicit:
        return {}
    matrix = graph.weights
    return {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}


def graph_of(about: dict[str, Any], columns: dict[str, Any]) -> Graph | GraphSequence:
    """The graph that was described, with these columns."""
    if "data" not in columns:
        return named(about["name"])
    try:
        found = named(about["name"])
        if isinstance(found, Graph) and found.fingerprint() == about["fingerprint"]:
            return found
    except ConfigError:
        pass  # a graph of the user's own: its weights are here
    parts = (columns["data"], columns["indices"], columns["indptr"])
    return from_matrix(csr_array(parts, shape=(about["peers"], about["peers"])), name=about["name"])

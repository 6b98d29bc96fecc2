"""What algorithms for personal models share: public facts by peer, and the mean of what neighbors
said.

    around_u = sum_{v near u} (w_uv / d_u) message_v,      d_u = sum_v w_uv        (perso:PERSO-1)

The mixing weights of the graph, off the diagonal, are the similarities w; only their ratios matter.
"""

from dataclasses import dataclass

import numpy as np

from bruit.algorithms.messages import Inbox, spans
from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence

PerPeer = float | tuple[float, ...] | None


@dataclass(frozen=True)
class Standing:
    """What is public about every peer: how much its own data counts, and how fast its gradient may
    change."""

    confidence: Array  # (n,) in [0, 1]
    smoothness: Array  # (n,)


def per_peer(name: str, given: PerPeer, peers: int, default: float) -> Array:
    """One number for each peer: the given ones, or the same for all."""
    values = np.asarray(default if given is None else given, np.float64)
    if values.ndim and values.shape != (peers,):
        raise ConfigError(
            f"{name} has {values.size} numbers for {peers} peers; give one for all, or one for each"
        )
    return np.array(np.broadcast_to(values, (peers,)))


def standing(confidences: PerPeer, smoothness: PerPeer, graph: Graph | GraphSequence) -> Standing:
    """The public facts of the peers of a graph; confidence 1 and smoothness 1 unless given."""
    trust, smooth = (
        per_peer("confidences", confidences, graph.n, 1.0),
        per_peer("smoothness", smoothness, graph.n, 1.0),
    )
    return Standing(trust, smooth)


def around(inbox: Inbox, rows: Array) -> Array:
    """The weighted mean of the rows each lane received, its own not counted; zero where nobody
    spoke  # (lanes, d)."""
    total = inbox.links.matrix(inbox.each, len(rows))
    degrees = np.asarray(total @ np.ones(len(rows)))
    mean: Array = (total @ rows) / np.where(degrees > 0, degrees, 1.0)[:, None]
    return mean


@dataclass(frozen=True)
class Ties:
    """The similarities of every peer to each of its neighbors, and what is public about the
    peers."""

    start: Ints  # (n + 1,)
    weights: Array  # (copies,) as in `Links.of_graph`
    peers: Standing

    @staticmethod
    def of(graph: Graph | GraphSequence, peers: Standing) -> "Ties":
        if not isinstance(graph, Graph):
            raise ConfigError(
                f"gossip-admm keeps duals for fixed neighbors, found the sequence {graph.name}"
            )
        off = graph.weights.indices != np.repeat(np.arange(graph.n), np.diff(graph.weights.indptr))
        return Ties(np.concatenate(([0], np.cumsum(graph.degrees))), graph.weights.data[off], peers)

    def near(self, ids: Ints) -> Array:
        """The similarities of these peers to their neighbors, one after the other  # (slots,)."""
        return self.weights[spans(self.start, ids)]

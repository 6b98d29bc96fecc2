"""Neighbors who are alike: do they lose more privacy, and how long do they stay alike?
(walk:RWE-13, Figs. D.5-D.6)

Peers of a geometric graph hold the sum of their coordinates, or the same values shuffled. A token
carries the running average; a peer knows the token as it last held it, and its own value before its
first visit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import bruit as br
from bruit.arrays import Array
from bruit.graphs import Graph, geometric
from bruit.privacy.theorems.walk_realized import visits, walk_matrix
from bruit.tasks import Mean

PEERS, RADIUS, EVERY, LAST, QUANTILES = 200, 0.2, 200, 1500, 10


@dataclass(frozen=True, eq=False)
class Snapshots:
    """Mean |difference| of two peers' values at every snapshot and quantile of distance; mean loss
    of a quantile.

    The loss is the path energy of each case's own walk, as if its step were constant (walk:RW-6).
    """

    alike: Array  # (snapshots, quantiles)
    shuffled: Array  # (snapshots, quantiles)
    losses: Array  # (2, quantiles) of the two cases

    @property
    def gaps(self) -> Array:
        """Mean distance of the two curves at every snapshot."""
        return np.asarray(np.abs(self.alike - self.shuffled).mean(axis=1))


def values_after(graph: Graph, values: Array, steps: int, seed: int) -> Array:
    """What every peer last knew  # (n,): steps of size 1 / t towards the values give the running
    average."""
    if steps == 0:
        return values
    run = _walk(graph, values, steps, seed)
    visited = np.isin(np.arange(graph.n), run.trace.meetings.b)
    return np.where(visited, run.estimates[:, 0], values)


def _walk(graph: Graph, values: Array, steps: int, seed: int) -> br.Run:
    average = br.WalkSGD(rate=1.0, decay=1.0)
    return br.run(average, graph, Mean(values[:, None]), steps=steps, seed=seed, evaluate_every=0)


def snapshots(seed: int = 0) -> Snapshots:
    """Both cases on one graph and one walk; a loss of 1 is order 2 with noise multiplier 1."""
    graph = geometric(PEERS, RADIUS, seed=seed)
    if graph.positions is None:
        raise ValueError("a geometric graph knows where its peers are")
    place = graph.positions
    values = place.sum(axis=1)
    cases = (values, np.random.default_rng(seed).permutation(values))
    a, b = np.triu_indices(PEERS, 1)
    parts = np.array_split(np.argsort(np.linalg.norm(place[a] - place[b], axis=1)), QUANTILES)

    def curve(of_pairs: Array) -> Array:
        return np.array([of_pairs[part].mean() for part in parts])

    times = [*range(0, LAST, EVERY), LAST]
    found = [
        np.array(
            [
                curve(np.abs(now[a] - now[b]))
                for now in (values_after(graph, case, t, seed) for t in times)
            ]
        )
        for case in cases
    ]
    walks = [visits(_walk(graph, case, LAST, seed).trace.meetings.b, PEERS) for case in cases]
    losses = [curve(matrix[a, b] + matrix[b, a]) for matrix in map(walk_matrix, walks)]
    return Snapshots(found[0], found[1], np.array(losses))

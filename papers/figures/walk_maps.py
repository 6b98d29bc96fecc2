"""Who learns what of whom on social graphs: printed losses of a walk beside communicability
(walk:RWE-8, 9, 11, 12).

The printed loss of Thm 7.7 with N = T / n contributions, alpha = 2; what holds instead, for a
capped walk with a cool-down, is beside it for graphs of a few hundred peers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.stats import spearmanr

from bruit.arrays import Array, Ints
from bruit.graphs import Graph, from_networkx
from bruit.graphs.centrality import communicability
from bruit.privacy.ahead.walk_pairs import pairwise_divergences
from papers.figures.walk_lengths import walk_steps
from papers.printed.walk import printed_sums, visit_sums

EGOS = (414, 0, 107, 348, 686, 698, 1684, 1912, 3437, 3980)
BLOCKS, CHANCES = (75, 75, 50), ((0.25, 0.05, 0.02), (0.05, 0.35, 0.07), (0.02, 0.07, 0.40))
ALPHA = 2.0


@dataclass(frozen=True, eq=False)
class Map:
    """The printed losses of all pairs, their rank correlation with exp(W), and how much larger they
    are inside the communities that Louvain's method finds."""

    graph: Graph
    steps: int
    printed: Array  # (n, n), nan on the diagonal
    communicability: Array  # (n, n)
    communities: Ints  # (n,)

    @property
    def spearman(self) -> float:
        return rank_correlation(off_diagonal(self.printed), off_diagonal(self.communicability))

    @property
    def inside_over_across(self) -> float:
        same = self.communities[:, None] == self.communities
        apart = ~np.eye(self.graph.n, dtype=bool)
        return float(self.printed[same & apart].mean() / self.printed[~same].mean())

    @property
    def mean(self) -> Array:
        """(1/n) sum over u != v in every view: a summary, NOT a guarantee  # (n,)."""
        return np.asarray(np.nansum(self.printed, axis=0) / self.graph.n)


def walk_map(graph: Graph, noise_multiplier: float = 10.0) -> Map:
    """The printed map of a graph, with the length of walk of the source."""
    steps = walk_steps(graph, noise_multiplier)
    printed = ALPHA / noise_multiplier**2 * steps / graph.n * printed_sums(graph, steps)
    np.fill_diagonal(printed, np.nan)
    return Map(graph, steps, printed, communicability(graph), louvain(graph))


def proven_map(graph: Graph, noise_multiplier: float = 10.0, rest: int = 20) -> Array:
    """Proven divergences of a walk capped at 1.25 T / n contributions, with a cool-down
    (walk:RW-14)  # (n, n)."""
    cap = math.ceil(1.25 * walk_steps(graph, noise_multiplier) / graph.n)
    return pairwise_divergences(graph, noise_multiplier, ALPHA, cap, rest)


def louvain(graph: Graph, seed: int = 0) -> Ints:
    """The community of every peer, found on the edges alone  # (n,)."""
    import networkx as nx

    label = np.zeros(graph.n, np.int64)
    for number, members in enumerate(
        nx.community.louvain_communities(graph.to_networkx(), weight=None, seed=seed)
    ):
        label[list(members)] = number
    return label


def off_diagonal(matrix: Array) -> Array:
    return np.asarray(matrix[~np.eye(len(matrix), dtype=bool)])


def rank_correlation(a: Array, b: Array) -> float:
    """Spearman's, values that agree to 12 digits counted as equal."""
    return float(spearmanr(np.round(a, 12), np.round(b, 12))[0])


def blocks_graph(seed: int = 0) -> Graph:
    """The stochastic block model of walk:RWE-11, drawn by networkx."""
    import networkx as nx

    return from_networkx(
        nx.Graph(nx.stochastic_block_model(list(BLOCKS), [list(row) for row in CHANCES], seed=seed))
    )


def block_means(
    graph: Graph, noise_multiplier: float = 1.0, sizes: Sequence[int] = BLOCKS
) -> Array:
    """Means of S_T between the blocks, own entries left out, in units of alpha / z^2  # (blocks,
    blocks)."""
    sums = visit_sums(graph, walk_steps(graph, noise_multiplier))
    np.fill_diagonal(sums, np.nan)
    ends = np.concatenate(([0], np.cumsum(sizes)))
    parts = [slice(a, b) for a, b in pairwise(ends.tolist())]
    return np.array([[np.nanmean(sums[one, other]) for other in parts] for one in parts])

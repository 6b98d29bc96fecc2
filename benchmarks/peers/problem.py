"""The one task that everybody runs: digits split among peers on a graph.

It is written to a file that scripts of other packages read with numpy alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from bruit.graphs import Graph, regular

DEGREE, SEED, HIDDEN, RATE = 4, 1, 32, 0.5


@dataclass(frozen=True)
class Problem:
    """So many peers, rounds of one full gradient step each, and a model."""

    peers: int
    rounds: int
    model: str  # "logistic" (64-10) or "mlp" (64-32-10)

    def write(self, file: Path) -> None:
        """Records dealt at random, three tenths of them kept for tests; who has whom as
        neighbor."""
        rows, labels = load_digits(return_X_y=True)
        order = np.random.default_rng(3).permutation(len(labels))
        held, test = np.split(order, [7 * len(order) // 10])
        graph = network(self.peers)
        adjacency = graph.weights.toarray() > 0
        np.fill_diagonal(adjacency, False)
        np.savez(
            file,
            rows=(rows[held] / 16).astype(np.float32),
            labels=labels[held],
            owner=np.arange(len(held)) % self.peers,
            test_rows=(rows[test] / 16).astype(np.float32),
            test_labels=labels[test],
            adjacency=adjacency,
            weights=graph.weights.toarray(),
            rounds=self.rounds,
            rate=RATE,
            hidden=HIDDEN if self.model == "mlp" else 0,
        )


def network(peers: int) -> Graph:
    """Everybody has as many neighbors."""
    return regular(peers, DEGREE, seed=SEED)

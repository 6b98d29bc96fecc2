"""Paired trials: the same protocol on two neighboring data sets, thousands of times, as one batch.

Neighbors are as far apart as the clip allows: what peer u puts into every release is -clip e in one and +clip e in the
other, e a unit vector; everybody else holds zeros. As a task these are linear losses f_i(x) = <v_i, x>, whose gradient
is v_i everywhere, whose proximal point is x - rho v_i, and whose value, for averaging, is v_i.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import TaskDoor
from bruit.arrays import Array, Ints
from bruit.audits.crowd import Crowd
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms import Mechanism
from bruit.privacy.ledger import Ledger
from bruit.randomness import PAIR_BITS, Replay
from bruit.tasks.task import Constants, Manifest, Task
from bruit.trace import Trace

NUMBERS = 1 << 19  # lanes and links held at once by a chunk of copies


@dataclass(frozen=True, eq=False)
class Neighbors(Task):
    """Two neighboring data sets; lane c n + i is peer i of copy c, and odd copies hold the second one."""

    left: Array  # (n, d)
    right: Array  # (n, d)

    def __post_init__(self) -> None:
        if self.left.shape != self.right.shape or self.left.ndim != 2:
            raise ConfigError(f"neighboring data sets need one shape (peers, dim), found {self.left.shape} and"
                              f" {self.right.shape}")  # fmt: skip

    @classmethod
    def opposite(cls, peers: int, of: int, clip: float, dim: int = 1) -> Neighbors:
        """Peer `of` moves from -clip to +clip along the first axis, everybody else stays at zero."""
        if not 0 <= of < peers:
            raise ConfigError(f"there is no peer {of} to audit: the peers are 0..{peers - 1}")
        right = np.zeros((peers, dim))
        right[of, 0] = clip
        return cls(-right, right)

    @property
    def peers(self) -> int:
        return len(self.left)

    @property
    def dim(self) -> int:
        return int(self.left.shape[1])

    @property
    def metric(self) -> str:
        return "loss"

    def value(self, ids: Ints) -> Array:
        copy, peer = np.divmod(ids, self.peers)
        return np.where((copy % 2 == 1)[:, None], self.right[peer], self.left[peer])

    def gradient(self, ids: Ints, x: Array) -> Array:
        return self.value(ids)

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        return self.value(ids)

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        return x - rho * self.value(ids)

    def evaluate(self, models: Array) -> dict[str, float]:
        return {"loss": float((models * self.left.mean(axis=0)).sum(axis=1).mean())}

    def constants(self) -> Constants:
        """Straight lines are smooth with any constant; a tiny one is declared, since theorems divide by it."""
        longest = float(np.linalg.norm(np.stack((self.left, self.right)), axis=2).max(initial=0.0))
        return Constants(longest, 1e-12, 0.0, "declared")

    def describe(self) -> Manifest:
        return {"task": "Neighbors", "peers": self.peers, "dim": self.dim, "data": {"name": "worst case"}}

    def references(self) -> dict[str, float]:
        return {}


class Views(NamedTuple):
    """What the observers saw, one row per trial, under both data sets."""

    left: Array  # (trials, features)
    right: Array  # (trials, features)


def paired_views(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence, mechanism: Mechanism | None, data: Neighbors,
    observers: tuple[int, ...], steps: int, trials: int, seed: int = 0, given: Trace | None = None,
) -> Iterator[Views]:  # fmt: skip
    """`trials` independent runs on each data set, in chunks; rows of features are flattened (rows, d)."""
    n = graph.n
    if 2 * trials * n >= 1 << PAIR_BITS:
        most = (1 << PAIR_BITS) // (2 * n) - 1
        raise ConfigError(f"{trials} paired runs of {n} peers need more lanes than noise has addresses; at most {most}")
    first = graph if isinstance(graph, Graph) else graph.at(0)
    size = max(1, NUMBERS // (int(first.weights.nnz) * data.dim))
    for start in range(0, trials, size):
        copies = 2 * min(size, trials - start)
        dice = Replay(seed)
        door = TaskDoor(data, mechanism, dice, Ledger(2 * trials * n))
        crowd = Crowd(algorithm, graph, door, steps, observers, copies, 2 * start, given)
        seen = crowd.views()  # (copies, rows, d)
        flat = seen.reshape(copies, -1)
        yield Views(flat[0::2], flat[1::2])

"""Weights of the links, and noise in the messages, for caps on pairs (gossip:MUF-X1).

Re-noised gossip on given links has a loss for every pair that is a smooth function of the weights W_e
and of tau. Looked for are those with the least

    n^2 (spread + z^2) (1 - gap)^(2 T) + z^2 ((1 + extra) / n + what is left of message noise),
    z = max over pairs of sqrt(m_uv) / mu_uv

by descent from the usual weights: the error (`renoised_most_variance`) at the noise that the caps then
ask for, but that what is left of disagreement counts n^2 times, so that peers do agree in the end. What
is found is a graph like any other: its losses are computed again, by the theorem, where it is planned
and where it runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from bruit.arrays import Array
from bruit.graphs import Graph
from bruit.graphs.written_out import of_links

MOST_PEERS, MOST_LINKS, MOST_ROUNDS, SWEEPS = 20, 48, 256, 20
DIGITS = 4  # of a weight, as it is written


@dataclass(frozen=True, eq=False)
class Wanted:
    """The links of a graph, `limits[u, v]`, the mu that every pair may reach, how many rounds, and a
    bound on the spread of the values."""

    graph: Graph
    limits: Array  # (n, n), infinite on the diagonal
    rounds: int
    spread: float

    def matrix(self, numbers: Array) -> Array:
        """Weights from free numbers: relative weights of the links, and of the heaviest row."""
        ends, n = self.graph.edges(), self.graph.n
        weights: Array = np.zeros((n, n))
        relative = np.exp(numbers[: len(ends)])
        weights[ends[:, 0], ends[:, 1]] = weights[ends[:, 1], ends[:, 0]] = relative
        heaviest = (1 + math.exp(-numbers[-2])) * float(weights.sum(axis=1).max())
        weights /= heaviest
        weights[np.diag_indices(n)] = 1 - weights.sum(axis=1)
        return np.asarray(weights, np.float64)

    def error(self, numbers: Array) -> float:
        """The root of what is made small."""
        weights, tau = self.matrix(numbers), math.exp(numbers[-1])
        sizes = np.sort(np.abs(np.linalg.eigvalsh(weights)))
        gap = 1 - float(sizes[-2])
        late = np.maximum(np.arange(self.rounds) - (self.rounds + 1) // 2 + 1, 0)
        levels = tau * (1 - min(gap, 0.9)) ** late
        squares = (weights**2).sum(axis=1) - np.diag(weights) ** 2
        extra = float(squares.mean() * (levels**2).sum())
        z2 = float(np.max(self.losses(weights, levels) / self.limits**2))
        left = self.graph.n**2 * (1 - gap) ** (2 * self.rounds)
        fading = (1 - gap) ** (2.0 * np.arange(self.rounds)[::-1])
        noise = (1 + extra) / self.graph.n + float(squares.mean() * (levels**2 * fading).sum())
        return math.sqrt((self.spread + z2) * left + z2 * noise)

    def losses(self, weights: Array, levels: Array) -> Array:
        """m[u, v] in real numbers, 0 on the diagonal: 1 - (I + K' R^-1 K)^-1, the sum over rounds from
        the last one on."""
        n = self.graph.n
        peers = np.arange(n)
        within = np.tile(weights.T, (n, 1, 1))
        within[peers, peers, :] = within[peers, :, peers] = 0.0
        heard = np.zeros((n, n, n))
        heard[:, peers, peers] = self.graph.weights.toarray() > 0
        heard[peers, peers, peers] = 0.0
        known, back = np.zeros((n, n, n)), within.transpose(0, 2, 1)
        for level in levels[::-1].tolist():
            known = within @ known @ back + heard / max(level, 1e-9) ** 2
        left = np.linalg.inv(known + np.eye(n))
        found = 1 - left[:, peers, peers].T
        return np.asarray(np.maximum(found, 0.0))


def tuned(wanted: Wanted) -> tuple[Graph, float]:
    """The links with the weights that were found, and tau."""
    from scipy.optimize import minimize

    from bruit.privacy.exact import one_blas_thread

    links = wanted.graph.edges()
    usual = wanted.graph.weights.toarray()[links[:, 0], links[:, 1]]
    heaviest = min(1 - float(wanted.graph.self_weights().min()), 0.9)
    begin = np.concatenate([np.log(usual), [math.log(heaviest / (1 - heaviest)), math.log(0.2)]])
    bounds = [(-6.0, 6.0)] * len(usual) + [(-3.0, 4.0), (math.log(0.01), math.log(10.0))]
    with one_blas_thread():
        answer: Any = cast(Any, minimize)(
            wanted.error, begin, method="L-BFGS-B", bounds=bounds, options={"maxiter": SWEEPS}
        )
    found = np.asarray(answer.x, np.float64)
    weights = wanted.matrix(found)[links[:, 0], links[:, 1]]
    text = [max(1, math.floor(w * 10**DIGITS)) / 10**DIGITS for w in weights.tolist()]
    named = [(int(a), int(b), w) for (a, b), w in zip(links, text, strict=True)]
    return of_links(named, wanted.graph.n), float(f"{math.exp(found[-1]):.2g}")

"""Losses under noise that is correlated in time and over the graph, when all messages are published
(gossip:COR-1).

Round t of peer i shows its clipped answer plus z_i(t) + sum_k taps_k w_i(t-k), with z ~ N(0, 1) the
noise of the release and w = own * N(0, 1) + pair * (noise that cancels between neighbors). Among
the peers H that do not watch, with B the lower triangular Toeplitz matrix of the taps and L the
Laplacian of H,

    covariance      I + (B B^T) x (own^2 I + pair^2 L),                       T |H| numbers a side
    [inverse]_u     V diag(h_u) V^T,   h_u(b) = sum_k U_uk^2 / (1 + b (own^2 + pair^2 l_k))       T x T
    loss of u       max over j < cycle of the sum of |[inverse]_u|_st, s and t = j modulo cycle

L may be weighted: draws of edge ij enter by the part p_ij of `edge_parts` (gossip:COR-2), p_ij^2 in L.
b, V are the eigenpairs of B B^T, from the singular values of B (squares of errors would be told as
noise), and l, U those of L: nothing of size T |H| is ever made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import toeplitz

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.privacy.exact.gopa_spectrum import Laplacian, inverse_diagonal, laplacian_among

LONGEST, SLACK, ERRS = 4096, 1e-9, 4
"""Rounds of which a matrix is made; what rounding may take away; how many units of the last place,
times its size, a decomposition may err."""
FINENESS = 2.0**10
"""Parts are whole multiples of its inverse, so that what is multiplied by them lies on a grid too."""


@dataclass(frozen=True)
class CorrelatedNoise:
    """The noise beside that of a release, in its units: `own` and `pair` are deviations, `taps` how
    a draw comes back in later rounds, `cycle` after how many rounds a record is read again;
    `by_degree`: draws of an edge are smaller where its ends have many neighbors (`edge_parts`)."""

    own: float = 0.0
    pair: float = 0.0
    taps: tuple[float, ...] = (1.0,)
    cycle: int = 1
    by_degree: bool = False

    @property
    def fresh(self) -> bool:
        """Whether every draw is used in one round only."""
        return not any(self.taps[1:])


def tap_matrix(taps: tuple[float, ...], rounds: int) -> Array:
    """B: draw s enters round t with taps_(t - s)  # (rounds, rounds)."""
    column = np.zeros(rounds)
    column[: len(taps)] = taps[:rounds]
    return np.tril(toeplitz(column)) if rounds else np.zeros((0, 0))


def edge_parts(degrees: Ints, ends: Ints) -> Array:
    """p_ij = sqrt((1/d_i^2 + 1/d_j^2) / 2) times the least degree, rounded to a part: 1 on regular
    graphs. Both ends know it, and so does everybody  # ends (edges, 2) -> (edges,).

    >>> edge_parts(np.array([1, 2, 1]), np.array([[0, 1], [1, 2]])).round(3).tolist()
    [0.791, 0.791]
    """
    least = degrees[degrees > 0].min(initial=1 << 30)
    shares = least / np.maximum(degrees, 1)[ends]
    parts = np.sqrt((shares**2).sum(axis=1) / 2)
    return np.asarray(np.maximum(np.rint(FINENESS * parts), 1.0) / FINENESS)


def correlated_losses(
    graph: Graph, noise: CorrelatedNoise, rounds: int, observers: tuple[int, ...]
) -> Array:
    """Losses of all peers in the joint view of the observers, who know their own noise and the noise
    they share; one per round at the observers  # (n,).

    >>> from bruit.graphs import complete
    >>> correlated_losses(complete(4), CorrelatedNoise(pair=100.0), 3, (0,))[1:].round(3).tolist()
    [1.0, 1.0, 1.0]
    """
    hidden = np.setdiff1d(np.arange(graph.n), observers)
    found = np.full(graph.n, float(rounds))
    if rounds and len(hidden):
        parts = edge_parts(graph.degrees, graph.edges()) if noise.by_degree else None
        among = laplacian_among(graph, hidden, parts)
        found[hidden] = np.minimum(_hidden(among, noise, rounds), rounds)
    return found


def _hidden(among: Laplacian, noise: CorrelatedNoise, rounds: int) -> Array:
    """The losses of the peers that do not watch  # (hidden,)."""
    level = noise.taps[0] if noise.taps else 0.0
    if noise.fresh:
        most = -(-rounds // noise.cycle)
        return most * inverse_diagonal(
            among, float(np.hypot(1.0, level * noise.own)), abs(level) * noise.pair
        )
    if rounds > LONGEST:
        raise PrivacyError(
            f"noise that comes back over {rounds} rounds is accounted for by a matrix of as many"
            f" rows, above {LONGEST}; plan fewer rounds, or taps of one number"
        )
    basis, gains = _spectrum(noise.taps, rounds)
    sizes, parts = _sizes(among, noise)
    losses = np.array([_largest(basis, row, noise.cycle) for row in parts @ _weights(gains, sizes)])
    return np.broadcast_to(losses, (len(among.peers),)).copy()


@lru_cache(maxsize=1)
def _spectrum(taps: tuple[float, ...], rounds: int) -> tuple[Array, Array]:
    """V and the singular values of B: the same for all observers  # (rounds, rounds), (rounds,)."""
    basis, gains, _ = np.linalg.svd(tap_matrix(taps, rounds))
    return basis, gains


def _sizes(among: Laplacian, noise: CorrelatedNoise) -> tuple[Array, Array]:
    """own^2 + pair^2 l_k, and U_uk^2. One 0 for every component is exact: what rounding leaves of
    it would be noise that nobody drew  # (modes,), (hidden or 1, modes)."""
    if not noise.pair:
        return np.array([noise.own**2]), np.ones((1, 1))
    spread, modes = np.linalg.eigh(among.matrix.toarray())
    spread[: int(among.component.max()) + 1] = 0.0
    return noise.own**2 + noise.pair**2 * np.maximum(spread, 0.0), modes**2


def _weights(gains: Array, sizes: Array) -> Array:
    """1 / (1 + g^2 s), rounded up for what the decomposition may err (COR-1); 1 where that is not
    small  # (sizes, rounds)."""
    doubt = ERRS * len(gains) * np.finfo(float).eps * gains.max() * np.sqrt(sizes)
    safe = 1 / (1 - np.where(doubt < 0.5, doubt, 0.0))
    weights = safe[:, None] / (1 + np.outer(sizes, gains**2))
    return np.where(doubt[:, None] < 0.5, weights, 1.0)


def _largest(basis: Array, weights: Array, cycle: int) -> float:
    """The largest sum of sizes of V diag(weights) V^T within the rounds that read one record."""
    blocks = (basis[j::cycle] for j in range(min(cycle, len(basis))))
    return (1 + SLACK) * max(float(np.abs((rows * weights) @ rows.T).sum()) for rows in blocks)

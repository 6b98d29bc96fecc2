"""Ranks of what an observer sees, in exact arithmetic modulo primes.

Mixing weights are rational, so the rows (W^t)_{w,.} exist modulo any prime that divides no denominator, and

    rank modulo p  <=  rank  <=  min(number of rows, number of reached peers).

A modular rank is therefore a proven lower bound, and a proof of equality when it meets the upper one. Otherwise two
primes near 2^24 are asked, and the larger answer is taken for the rank at each step: both would have to divide the
same minor for it to be too small (about 1e-10 per observer for a rank of 300, since a minor vanishes modulo p about
once in p times). This decides how many directions a numerical orthogonalization may keep (gossip:REC-2, section 11):
floating point alone invents directions on symmetric graphs, and loses them in stacked powers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array, Ints, Words
from bruit.privacy.network.span import KrylovSpan

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

PRIMES = (16777213, 16777199)
"""The two largest primes below 2^24: products of 64 residue pairs add up exactly in float64."""

SLACK = 8
"""Extra columns of a random projection: losing rank then needs an accident modulo p, not bad luck in shape."""


@dataclass(frozen=True)
class Ranks:
    """Ranks of the space spanned by the first t + 1 powers, t = 0, 1, ...; and the last one under each prime."""

    profile: Ints  # (powers,)
    modular: tuple[int, ...]
    proven: bool
    starts: int

    @property
    def total(self) -> int:
        """Rank of the whole space."""
        return int(self.profile[-1])

    @property
    def consistent(self) -> bool:
        """Whether the gains start with all starts and never grow from one power to the next, as in any Krylov space."""
        gains = np.diff(self.profile, prepend=0)
        return bool(gains[0] == self.starts and (np.diff(gains) <= 0).all())


def mixed_words(count: int) -> Words:
    """A fixed sequence of well mixed 64-bit words (splitmix64): public coefficients for projections and probes."""
    words = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def centered(values: Array, prime: int) -> Array:
    """The same residues in [-prime/2, prime/2]."""
    return np.asarray(values - prime * np.floor(values / prime + 0.5))


def matrix_profile(residues: Ints, prime: int, group: int) -> Ints:
    """Ranks modulo a prime below 2^24 of the first rows of a matrix, after every so many (at most 32) of them."""
    from bruit.kernels.modular import GROUP, insert

    rows = np.ascontiguousarray(centered(np.asarray(residues, dtype=np.float64), prime))
    most = min(rows.shape)
    echelon = np.zeros((most + GROUP, rows.shape[1]))
    columns, groups = np.zeros(most + GROUP, dtype=np.int64), np.zeros((most + GROUP, 3), dtype=np.int64)
    state = np.zeros(2, dtype=np.int64)
    ranks = []
    for first in range(0, rows.shape[0], group):
        if state[0] < most:
            block = rows[first : first + group].copy()
            insert(block, echelon, columns, groups, state, np.ones(block.shape[0], dtype=bool), float(prime))
        ranks.append(int(state[0]))
    return np.array(ranks, dtype=np.int64)


def joint_ranks(profile_of: Callable[[int], Ints], most: int, starts: int) -> Ranks:
    """Ask one prime, and the second unless the first already proves the rank to be the largest possible."""
    first = profile_of(PRIMES[0])
    if first[-1] == most:
        return Ranks(first, (int(first[-1]),), True, starts)
    second = profile_of(PRIMES[1])
    both = (int(first[-1]), int(second[-1]))
    return Ranks(np.maximum(first, second), both, both[1] == most, starts)


def krylov_ranks(graph: "Graph", span: KrylovSpan) -> Ranks:
    """Ranks of one observer's Krylov space, certified as joint_ranks says."""
    rows = span.powers * span.starts.size
    # Few rows among many peers: eliminate the rows x rows Gram matrix rather than the rows themselves.
    profile = _gram_profile if span.peers.size > 4 * rows else _row_profile
    return joint_ranks(lambda prime: profile(graph, span, prime), span.most, span.starts.size)


def _starts(span: KrylovSpan) -> Array:
    block = np.zeros((span.peers.size, span.starts.size))
    block[span.starts, np.arange(span.starts.size)] = 1.0
    return block


def _next(span: KrylovSpan, residues: Array, block: Array, prime: int) -> Array:
    from bruit.kernels.modular import multiply

    out = np.empty_like(block)
    multiply(span.matrix.indptr, span.matrix.indices, residues, block, out, float(prime))
    out[span.silent] = 0.0
    return out


def _row_profile(graph: "Graph", span: KrylovSpan, prime: int) -> Ints:
    """Eliminate the rows power by power; a start whose row became dependent stays so and is dropped."""
    from bruit.kernels.modular import GROUP, insert

    residues = span.residues(graph, prime)
    capacity = span.most + GROUP
    echelon = np.zeros((capacity, span.peers.size))
    columns, groups = np.zeros(capacity, dtype=np.int64), np.zeros((capacity, 3), dtype=np.int64)
    state = np.zeros(2, dtype=np.int64)
    profile = np.zeros(span.powers, dtype=np.int64)
    block = _starts(span)
    for t in range(span.powers):
        alive = np.ones(block.shape[1], dtype=bool)
        for first in range(0, block.shape[1], GROUP):
            rows = np.ascontiguousarray(block[:, first : first + GROUP].T)
            insert(rows, echelon, columns, groups, state, alive[first : first + GROUP], float(prime))
            if state[0] == span.most:
                break
        profile[t:] = state[0]
        if state[0] == span.most or not alive.any():
            break
        block = _next(span, residues, np.ascontiguousarray(block[:, alive]), prime)
    return profile


def _gram_profile(graph: "Graph", span: KrylovSpan, prime: int) -> Ints:
    """Eliminate K K^T, whose blocks are E^T M^(s+t) E: the rows of M^k E at the starts.

    Dependencies among rows of K K^T and of K are the same over the rationals; modulo p the rank is again a lower bound.
    """
    from bruit.kernels.modular import profile

    residues = span.residues(graph, prime)
    count, powers = span.starts.size, span.powers
    moments = np.empty((2 * powers - 1, count, count))
    block = _starts(span)
    for k in range(2 * powers - 1):
        moments[k] = block[span.starts]
        if k < 2 * powers - 2:
            block = _next(span, residues, block, prime)
    # Row (t, w), column (s, x): entry (M^(t+s))_{x, w}, symmetric in w and x.
    stack = np.stack([moments[t : t + powers].transpose(1, 0, 2).reshape(count, -1) for t in range(powers)])
    lead = np.zeros((0, powers * count), dtype=np.float32)
    ranks: Ints = profile(lead, stack.astype(np.float32), np.arange(count), powers * count, span.most, float(prime))
    return ranks


@dataclass(frozen=True)
class SharedRows:
    """The rows of all powers modulo a prime, projected once for every observer: stack[t] = W^t R, R fixed and random.

    The rank after the projection is a lower bound too, so equality still certifies; a spurious miss costs a second
    prime.
    """

    prime: int
    projection: Array  # (n, s)
    stack: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]"  # (T, n, s)

    def profile(self, observer: int, starts: Ints, most: int) -> Ints:
        """Ranks of the observer's rows beyond its own row, power by power; `most` as in KrylovSpan."""
        from bruit.kernels.modular import profile

        n, width = self.projection.shape
        if width < n:
            width = min(width, 1 + self.stack.shape[0] * starts.size + SLACK)
        lead = self.projection[observer : observer + 1].astype(np.float32)
        ranks: Ints = profile(lead, self.stack, starts, width, most + 1, float(self.prime)) - 1
        return ranks


def shared_width(graph: "Graph", steps: int) -> int:
    """Columns of the shared projection; n (no projection at all) when the rows could fill the space."""
    degrees = np.diff(graph.weights.indptr) - 1
    return int(min(graph.n, 1 + steps * int(degrees.max(initial=0)) + SLACK))


def shared_rows(graph: "Graph", steps: int, prime: int) -> SharedRows:
    """Project all rows of I, W, ..., W^(steps-1) modulo a prime; residues below 2^23 fit float32 exactly."""
    from bruit.kernels.modular import multiply

    n, width = graph.n, shared_width(graph, steps)
    if width == n:
        projection = np.eye(n)
    else:
        projection = centered((mixed_words(n * width) % np.uint64(prime)).astype(np.float64), prime).reshape(n, width)
    residues = centered(graph.residues(prime).astype(np.float64), prime)
    stack = np.empty((steps, n, width), dtype=np.float32)
    block, out = projection, np.empty_like(projection)
    for t in range(steps):
        stack[t] = block
        if t + 1 < steps:
            multiply(graph.weights.indptr, graph.weights.indices, residues, block, out, float(prime))
            block, out = out, np.empty_like(projection) if block is projection else block
    return SharedRows(prime, projection, stack)

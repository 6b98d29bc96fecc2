"""Ranks of what an observer sees, in exact arithmetic modulo primes.

Mixing weights are rational, so the rows (W^t)_{w,.} exist modulo any prime that divides no
denominator, and

    rank modulo p  <=  rank  <=  min(number of rows, number of reached peers).

A modular rank is therefore a proven lower bound, and a proof of equality when it meets the upper
one. Otherwise two primes near 2^24 are asked, and the larger answer is taken for the rank at each
step. It is too small only if both divide the same minor. That happens about 1e-10 times per
observer for a rank of 300, since a minor vanishes modulo p about once in p times. This decides how
many directions a numerical orthogonalization may keep (gossip:REC-2): floating point alone invents
directions on symmetric graphs, and loses them in stacked powers.

The same elimination says who is exposed: e_u is in the space iff every null vector is zero at u.
Two random null vectors name the exposed peers; when the rank modulo p is the true one, an exposed
peer is never missed, and a hidden one passes for exposed with probability p^-2
(bruit.privacy.exact.echelon).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array, Bools, Ints, Words
from bruit.privacy.exact.span import KrylovSpan

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

PRIMES = (16777213, 16777199)
"""The two largest primes below 2^24: products of 64 residue pairs add up exactly in float64."""

THREE = (*PRIMES, 16777183)
"""Three primes below 2^24: enough to recover fractions of 20 bits with a wide margin."""

SLACK = 8
"""Extra columns of a random projection: losing rank then needs an accident modulo p, not bad luck
in shape."""


NULLS = 2
"""Random null vectors that name the exposed peers."""


@dataclass(frozen=True)
class Eliminated:
    """What one prime says: ranks power by power, and where random null vectors vanish (None: not
    asked)."""

    profile: Ints  # (powers,)
    exposed: Bools | None = None  # (peers of the span,)


@dataclass(frozen=True)
class Ranks:
    """Ranks of the space spanned by the first t + 1 powers, t = 0, 1, ...; and the last one under
    each prime.

    `exposed` are the peers of the span whose unit vectors lie in the space; None when that was not
    asked.
    """

    profile: Ints  # (powers,)
    modular: tuple[int, ...]
    proven: bool
    starts: int
    exposed: Bools | None = None  # (peers of the span,)

    @property
    def total(self) -> int:
        """Rank of the whole space."""
        return int(self.profile[-1])

    @property
    def consistent(self) -> bool:
        """Whether the gains start with all starts and never grow from one power to the next, as in
        any Krylov space."""
        gains = np.diff(self.profile, prepend=0)
        return bool(gains[0] == self.starts and (np.diff(gains) <= 0).all())


def mixed_words(count: int) -> Words:
    """A fixed sequence of well mixed 64-bit words (splitmix64): public coefficients for projections
    and probes."""
    words = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def centered(values: Array, prime: int) -> Array:
    """The same residues in [-prime/2, prime/2]."""
    return np.asarray(values - prime * np.floor(values / prime + 0.5))


def stacked(residues: Ints, prime: int, group: int) -> Eliminated:
    """Eliminate the rows of a matrix modulo a prime below 2^24; ranks after every so many of
    them."""
    from bruit.privacy.exact.echelon import Echelon

    rows = np.ascontiguousarray(centered(np.asarray(residues, dtype=np.float64), prime))
    most = min(rows.shape)
    form = Echelon.empty(prime, rows.shape[1], most)
    ranks = []
    for first in range(0, rows.shape[0], group):
        form.insert(rows[first : first + group], most)
        ranks.append(form.rank)
    return Eliminated(np.array(ranks, dtype=np.int64), form.exposed())


def joint_ranks(word_of: Callable[[int], Eliminated], most: int, starts: int) -> Ranks:
    """Ask one prime, and the second unless the first already proves the rank to be the largest
    possible."""
    first = word_of(PRIMES[0])
    total = int(first.profile[-1])
    if total == most:
        return Ranks(first.profile, (total,), True, starts, first.exposed)
    second = word_of(PRIMES[1])
    both = (total, int(second.profile[-1]))
    exposed = agreed_exposure((first, second))
    return Ranks(np.maximum(first.profile, second.profile), both, both[1] == most, starts, exposed)


def agreed_exposure(words: Sequence[Eliminated]) -> Bools | None:
    """The peers that all primes with the largest rank find exposed; None when some was not
    asked."""
    ranks = [int(word.profile.max(initial=0)) for word in words]
    named = [word.exposed for word, rank in zip(words, ranks, strict=True) if rank == max(ranks)]
    asked = [names for names in named if names is not None]
    return np.asarray(np.logical_and.reduce(asked)) if asked and len(asked) == len(named) else None


def krylov_ranks(graph: "Graph", span: KrylovSpan) -> Ranks:
    """Ranks of one observer's Krylov space, certified as joint_ranks says."""
    rows = span.powers * span.starts.size
    # Few rows among many peers: eliminate the rows x rows Gram matrix rather than the rows
    # themselves.
    eliminated = by_products if span.peers.size > 4 * rows else by_rows
    return joint_ranks(lambda prime: eliminated(graph, span, prime), span.most, span.starts.size)


def random_residues(prime: int, *shape: int) -> Array:
    """Fixed residues in [-prime/2, prime/2], none of them zero."""
    words = mixed_words(int(np.prod(shape))) % np.uint64(prime - 1)
    return centered(1.0 + words.astype(np.float64), prime).reshape(shape)


def _starts(span: KrylovSpan) -> Array:
    block = np.zeros((span.peers.size, span.starts.size))
    block[span.starts, np.arange(span.starts.size)] = 1.0
    return block


def _next(span: KrylovSpan, residues: Array, block: Array, prime: int) -> Array:
    from bruit.privacy.exact.compiled.modular import multiply

    out = np.empty_like(block)
    multiply(span.matrix.indptr, span.matrix.indices, residues, block, out, float(prime))
    out[span.silent] = 0.0
    return out


def by_rows(graph: "Graph", span: KrylovSpan, prime: int) -> Eliminated:
    """Eliminate the rows power by power; a start whose row became dependent stays so and is
    dropped."""
    from bruit.privacy.exact.echelon import krylov_echelon

    profile = np.zeros(span.powers, dtype=np.int64)
    form = krylov_echelon(graph, span, prime, profile)
    return Eliminated(profile, form.exposed())


def by_products(graph: "Graph", span: KrylovSpan, prime: int) -> Eliminated:
    """Eliminate K [K^T, y]: the blocks of K K^T are E^T M^(s+t) E, the rows of M^k E at the starts;
    y is random.

    Dependencies among rows of K K^T and of K are the same over the rationals; modulo p the rank is
    again a lower bound. If K K^T c = K y, then y - K^T c is a random null vector of K.
    """
    from bruit.privacy.exact.compiled.modular import profile
    from bruit.privacy.exact.compiled.reduction import complete_null_vector

    residues = span.residues(graph, prime)
    count, powers = span.starts.size, span.powers
    moments = np.empty((2 * powers - 1, count, count))
    told = np.empty((powers, count, NULLS))
    drawn = random_residues(prime, span.peers.size, NULLS)
    drawn[span.silent] = 0.0
    block = np.concatenate((_starts(span), drawn), axis=1)
    for k in range(2 * powers - 1):
        moments[k] = block[span.starts, :count]
        if k < powers:
            told[k] = block[span.starts, count:]
        if k == powers - 1:
            block = np.ascontiguousarray(block[:, :count])
        if k < 2 * powers - 2:
            block = _next(span, residues, block, prime)
    # Row (t, w), column (s, x): entry (M^(t+s))_{x, w}, symmetric in w and x.
    products = np.stack(
        [moments[t : t + powers].transpose(1, 0, 2).reshape(count, -1) for t in range(powers)]
    )
    stack = np.concatenate((products, told), axis=2).astype(np.float32)
    width = powers * count
    lead = np.zeros((0, width + NULLS), dtype=np.float32)
    ranks, echelon, columns, groups, state = profile(
        lead, stack, np.arange(count), width + NULLS, span.most, float(prime)
    )
    if state[0] == span.size:
        return Eliminated(ranks, _all_exposed(span))
    if columns[: state[0]].max() >= width:
        return Eliminated(
            ranks
        )  # an accident modulo p: some row of K K^T vanished though the row of K did not
    nulls = np.concatenate((np.zeros((NULLS, width)), -np.eye(NULLS)), axis=1)
    for x in nulls:
        complete_null_vector(echelon, columns, groups, int(state[1]), x, float(prime))
    combined = np.zeros((span.peers.size, NULLS))
    for power in range(powers - 1, -1, -1):
        combined = _next(span, residues, combined, prime)
        combined[span.starts] += nulls[:, power * count : (power + 1) * count].T
    exposed = (centered(drawn - combined, prime) == 0.0).all(axis=1)
    exposed[span.silent] = False
    return Eliminated(ranks, exposed)


def _all_exposed(span: KrylovSpan) -> Bools:
    exposed = np.ones(span.peers.size, dtype=bool)
    exposed[span.silent] = False
    return exposed


@dataclass(frozen=True)
class SharedRows:
    """The rows of all powers modulo a prime, projected once for every observer: stack[t] = W^t R, R
    fixed and random.

    The rank after the projection is a lower bound too, so equality still certifies; a spurious miss
    costs a second prime.
    """

    prime: int
    projection: Array  # (n, s)
    stack: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]"  # (T, n, s)

    def eliminated(self, observer: int, span: KrylovSpan) -> Eliminated:
        """Ranks of the observer's rows beyond its own row, power by power, and who is exposed.

        K R z = 0 makes R z a null vector of K.
        """
        from bruit.privacy.exact.compiled.modular import profile, rows_times
        from bruit.privacy.exact.compiled.reduction import complete_null_vector

        n, width = self.projection.shape
        if width < n:
            width = min(width, 1 + self.stack.shape[0] * int(span.starts.size) + SLACK)
        lead = self.projection[observer : observer + 1].astype(np.float32)
        ranks, echelon, columns, groups, state = profile(
            lead, self.stack, span.peers[span.starts], width, span.most + 1, float(self.prime)
        )
        ranks = ranks[: span.powers] - 1
        if state[0] == span.size + 1:
            return Eliminated(ranks, _all_exposed(span))
        nulls = random_residues(self.prime, NULLS, width)
        for z in nulls:
            complete_null_vector(echelon, columns, groups, int(state[1]), z, float(self.prime))
        exposed = (rows_times(self.projection, span.peers, nulls, float(self.prime)) == 0.0).all(
            axis=1
        )
        exposed[span.silent] = False
        return Eliminated(ranks, exposed)


def shared_width(graph: "Graph", steps: int) -> int:
    """Columns of the shared projection; n (no projection at all) when the rows could fill the
    space."""
    degrees = np.diff(graph.weights.indptr) - 1
    return int(min(graph.n, 1 + steps * int(degrees.max(initial=0)) + SLACK))


def shared_rows(graph: "Graph", steps: int, prime: int) -> SharedRows:
    """Project all rows of I, W, ..., W^(steps-1) modulo a prime; residues below 2^23 fit float32
    exactly."""
    from bruit.privacy.exact.compiled.modular import multiply

    n, width = graph.n, shared_width(graph, steps)
    if width == n:
        projection = np.eye(n)
    else:
        projection = centered(
            (mixed_words(n * width) % np.uint64(prime)).astype(np.float64), prime
        ).reshape(n, width)
    residues = centered(graph.residues(prime).astype(np.float64), prime)
    stack = np.empty((steps, n, width), dtype=np.float32)
    block, out = projection, np.empty_like(projection)
    for t in range(steps):
        stack[t] = block
        if t + 1 < steps:
            multiply(
                graph.weights.indptr, graph.weights.indices, residues, block, out, float(prime)
            )
            block, out = out, np.empty_like(projection) if block is projection else block
    return SharedRows(prime, projection, stack)

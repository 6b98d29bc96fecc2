"""The exact privacy loss of linear gossip in the view of one observer, or of several who collude.

    m(u -> V) = || projection of e_u on row(K_V) ||^2,    K_V = rows e_v (v in V) and (W^t)_{w,.}, t < T, w in N(V) - V

in local-DP units: the Renyi loss of u is m alpha Delta^2 / (2 sigma^2), exactly, so 1 means "as if u had sent its
noisy value to V" (gossip:LG-1, MUF-2, MUF-10). It is unchanged by Chebyshev acceleration, grows with T and with V,
sums to rank(K_V), and is 1 iff u is reconstructible. Hypotheses: symmetric public W and T that do not depend on the
data, Gaussian noise added once per peer.

Stacking the powers and using an SVD, a QR or a Gram matrix under-reports it badly, since powers collapse onto few
eigenvectors. Here: block Lanczos, which multiplies the last *orthonormal* block; exact ranks modulo primes say how
many directions each step may keep; dependent directions are dropped by pivoted QR. A value is called exact when two
computations in different order agree to 1e-8, both bases are orthonormal, and no dropped direction was large; ten
times the disagreement is then added to the value (the true error has been seen to exceed the disagreement tenfold).
Else the same is done in about 30 digits. If even that fails, or would take too long, the value is a safe upper bound,
1 for every reached peer, and is called so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.linalg import qr

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.privacy.network.blas import one_blas_thread
from bruit.privacy.network.largest_form import largest_form
from bruit.privacy.network.modular import Ranks, krylov_ranks, mixed_words
from bruit.privacy.network.refined import LARGEST, Basis, refined_basis
from bruit.privacy.network.span import KrylovSpan, checked_observers, checked_steps, checked_symmetry, krylov_span

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

Status = Literal["exact", "upper bound"]

AGREEMENT = 1e-8
"""Largest disagreement of two computations that may still be called exact."""

MARGIN = 10.0
"""What is added to a value, in units of the disagreement."""

ORTHOGONALITY = 1e-9
"""Largest orthogonality error of a basis made by the short recurrence; above it, everything is orthogonalized again."""


@dataclass(frozen=True)
class Certificate:
    """Why a loss may be called exact, or why it may not.

    `rank` is the rank of K_V used, `modular` its value under each prime asked (one prime suffices when it proves the
    largest possible rank, `proven`), `orthogonality` the error of the bases, `disagreement` the largest difference of
    two computations.
    """

    rank: int
    modular: tuple[int, ...]
    proven: bool
    orthogonality: float
    disagreement: float
    note: str

    def __str__(self) -> str:
        primes = "a prime, which proves it" if self.proven else f"{len(self.modular)} primes"
        return f"rank {self.rank} modulo {primes}; orthogonality {self.orthogonality:.0e}; {self.note}"


@dataclass(frozen=True)
class Leverage:
    """Losses m(u -> V) of all peers u in one view; 1 at the observers, who know their own noise."""

    loss: Array  # (n,)
    rank: int
    status: Status
    certificate: Certificate


def leverage(
    graph: "Graph",
    observers: Sequence[int] | Ints,
    steps: int,
    *,
    own_noise_known: bool = True,
    secure_aggregation: bool = False,
) -> Leverage:
    """Losses of all peers after so many steps of gossip, in the joint view of the observers (a set; one or more).

    own_noise_known=False drops the rows e_v: a weaker adversary, for comparison only. secure_aggregation: the
    observer learns only the weighted sum over its neighborhood, rows e_v and (W^t)_{v,.} for t = 1..T (gossip:MUF-X4,
    REC-3).
    """
    chosen = checked_observers(graph.n, observers)
    checked_symmetry(graph)
    span = krylov_span(
        graph, chosen, checked_steps(steps), own_noise_known=own_noise_known, secure_aggregation=secure_aggregation
    )
    known = chosen if own_noise_known and not secure_aggregation else np.zeros(0, dtype=np.int64)
    if span is None:
        return nothing_heard(graph.n, known)
    with one_blas_thread():
        return certified(graph, span, krylov_ranks(graph, span), known)


def group_loss(graph: "Graph", observers: Sequence[int] | Ints, steps: int, group: Sequence[int] | Ints) -> float:
    """Loss when all members of a group change together: max d^T Pi d over |d_u| <= 1, from above (gossip:MUF-12).

    At most the sum of |Pi_{uu'}| over the group, and equal to it when the entries are non-negative. Without a
    certificate every entry between reached members is charged 1.
    """
    chosen, members = checked_observers(graph.n, observers), checked_observers(graph.n, group)
    if np.intersect1d(chosen, members).size:
        raise PrivacyError("a member of the group is an observer; the loss of a peer in its own view is undefined")
    checked_symmetry(graph)
    span = krylov_span(graph, chosen, checked_steps(steps))
    if span is None:
        return 0.0
    places = np.searchsorted(span.peers, members[np.isin(members, span.peers)])
    bases, exposed = _trusted_bases(graph, span)
    if exposed:
        return float(places.size)
    if bases is None:
        return float(places.size**2)
    parts = [basis.rows(places) @ basis.rows(places).T for basis in bases]
    disagreement = float(np.abs(parts[0] - parts[1]).max(initial=0.0))
    if disagreement > AGREEMENT:
        return float(places.size**2)
    return largest_form(parts[0]) + MARGIN * disagreement * places.size**2


def row_space(graph: "Graph", observers: Sequence[int] | Ints, steps: int) -> Array:
    """Orthonormal columns that span row(K_V), the linear forms the observers know  # (n, rank).

    Without a certificate, unit columns of all reached peers: a larger space, so that no loss is under-reported.
    """
    chosen = checked_observers(graph.n, observers)
    checked_symmetry(graph)
    own = np.zeros((graph.n, chosen.size))
    own[chosen, np.arange(chosen.size)] = 1.0
    span = krylov_span(graph, chosen, checked_steps(steps))
    if span is None:
        return own
    bases, _ = _trusted_bases(graph, span)
    if bases is None:
        reached = np.delete(span.peers, span.silent)
        heard = np.zeros((graph.n, reached.size))
        heard[reached, np.arange(reached.size)] = 1.0
    else:
        found = bases[0].rows(np.arange(span.peers.size))
        heard = np.zeros((graph.n, found.shape[1]))
        heard[span.peers] = found
    return np.concatenate((own, heard), axis=1)


def _trusted_bases(graph: "Graph", span: KrylovSpan) -> tuple[tuple[Basis, Basis] | None, bool]:
    """Two bases of the space that deserve trust, None without; and whether every reached peer is exposed anyway."""
    ranks = krylov_ranks(graph, span)
    if ranks.total == span.size or not ranks.consistent:
        return None, ranks.total == span.size
    with one_blas_thread():
        bases = two_bases(span, ranks)
        if _judged(ranks, *bases, 0)[0] is None and span.size * ranks.total**2 <= LARGEST:
            bases = _two_refined(graph, span, ranks)
    return (bases if _judged(ranks, *bases, 0)[0] is not None else None), False


def nothing_heard(n: int, known: Ints) -> Leverage:
    """No step, or nobody to hear: the observers know themselves and nothing else."""
    loss = np.zeros(n)
    loss[known] = 1.0
    rank = int(known.size)
    return Leverage(loss, rank, "exact", Certificate(rank, (rank,), True, 0.0, 0.0, "nothing is heard"))


def certified(
    graph: "Graph", span: KrylovSpan, ranks: Ranks, known: Ints, room: Array | None = None, refine: bool = True
) -> Leverage:
    """Losses from a described space and its ranks; `known` are the observers whose own rows lie outside the span.

    room is memory to work in, at least n x rank numbers, for callers who ask again and again; without `refine` nothing
    is done again in 30 digits.
    """
    extra = int(known.size)
    values: Array | None
    if ranks.total == span.size:
        values = np.ones(span.peers.size)
        modular = tuple(rank + extra for rank in ranks.modular)
        note = "the rank equals the number of reached peers: everything is exposed"
        certificate = Certificate(ranks.total + extra, modular, True, 0.0, 0.0, note)
    elif not ranks.consistent:
        values, certificate = None, Certificate(
            ranks.total + extra, ranks.modular, False, 0.0, 0.0,
            "the ranks modulo the primes contradict each other: 1 is charged to every reached peer",
        )
    else:
        values, certificate = _judged(ranks, *two_bases(span, ranks, room), extra)
        if refine and values is None and span.size * ranks.total**2 <= LARGEST:
            values, certificate = _judged(ranks, *_two_refined(graph, span, ranks), extra)
    loss = np.zeros(graph.n)
    loss[span.peers] = 1.0 if values is None else values
    loss[known] = 1.0
    return Leverage(loss, certificate.rank, "upper bound" if values is None else "exact", certificate)


def two_bases(span: KrylovSpan, ranks: Ranks, room: Array | None = None) -> tuple[Basis, Basis]:
    """The same space twice: starts in both orders, coefficients of the recurrence computed or remembered."""
    first, second = (_recurred(span, ranks.profile, reverse, room) for reverse in (False, True))
    if max(first.error, second.error) > ORTHOGONALITY:
        first, second = (_orthonormal(span, ranks.profile, reverse) for reverse in (False, True))
    return first, second


def _judged(
    ranks: Ranks, first: Basis, second: Basis, extra: int
) -> tuple[Array | None, Certificate]:
    """The losses if they deserve to be called exact (else None), and the certificate."""
    disagreement = float(np.abs(first.values - second.values).max())
    orthogonality = max(first.error, second.error)
    dropped = max(first.dropped, second.dropped)
    faults = []
    if dropped > AGREEMENT:
        faults.append(f"a direction of size {dropped:.0e} exceeds the exact rank")
    if orthogonality > AGREEMENT:
        faults.append(f"the basis is orthonormal to {orthogonality:.0e} only")
    if disagreement > AGREEMENT:
        faults.append(f"two computations differ by {disagreement:.0e}")
    agreed = f"two computations agree to {disagreement:.0e}"
    note = f"{'; '.join(faults)}: 1 is charged to every reached peer" if faults else agreed
    modular = tuple(rank + extra for rank in ranks.modular)
    certificate = Certificate(ranks.total + extra, modular, ranks.proven, orthogonality, disagreement, note)
    if faults:
        return None, certificate
    larger = np.maximum(first.values, second.values)
    # Unreached entries are exact zeros of both bases and stay so.
    return np.where(larger > 0.0, np.minimum(larger + MARGIN * disagreement, 1.0), 0.0), certificate


def _two_refined(graph: "Graph", span: KrylovSpan, ranks: Ranks) -> tuple[Basis, Basis]:
    """Both computations in about 30 digits, the second a little coarser."""
    first, second = (refined_basis(graph, span, ranks.profile, coarse) for coarse in (False, True))
    return first, second


def _recurred(span: KrylovSpan, profile: Ints, reverse: bool, room: Array | None) -> Basis:
    """Block Lanczos by the short recurrence, which orthogonalizes W Q_t against Q_t and Q_{t-1} only.

    That is enough in exact arithmetic. From the first step that must drop directions, or whose remainder is nearly
    dependent, every step is orthogonalized against everything, by pivoted QR.
    """
    from bruit.kernels.krylov import recurrence, row_norms

    matrix, count = span.matrix, span.starts.size
    whole = int(np.count_nonzero(np.diff(profile, prepend=0) == count))
    shape = (whole, span.peers.size, count)
    blocks = np.empty(shape) if room is None else room[: math.prod(shape)].reshape(shape)
    blocks[0] = _unit_block(span, reverse)
    good = recurrence(matrix.indptr, matrix.indices, matrix.data, span.silent, blocks, whole, reverse)
    if good * count < profile[-1]:
        return _finished(*_completed(span, blocks[:good], profile, twice=not reverse))
    values, error = row_norms(blocks, _signs(whole * count).reshape(-1, count, 2))
    return Basis(tuple(blocks) if room is None else (), values, 0.0, error)


def _orthonormal(span: KrylovSpan, profile: Ints, reverse: bool) -> Basis:
    """Block Lanczos with every step orthogonalized against everything."""
    return _finished(*_completed(span, _unit_block(span, reverse)[None], profile, twice=not reverse))


def _unit_block(span: KrylovSpan, reverse: bool) -> Array:
    block = np.zeros((span.peers.size, span.starts.size))
    block[span.starts[::-1] if reverse else span.starts, np.arange(span.starts.size)] = 1.0
    return block


def _finished(columns: Array, dropped: float) -> Basis:
    signs = _signs(columns.shape[1])
    error = np.linalg.norm(columns.T @ (columns @ signs) - signs, axis=0).max() / np.sqrt(columns.shape[1])
    return Basis((columns,), np.einsum("ij,ij->i", columns, columns), dropped, float(error))


def _completed(span: KrylovSpan, blocks: Array, profile: Ints, twice: bool) -> tuple[Array, float]:
    """Continue orthonormal blocks to the full profile, each step against all columns; also the largest drop.

    twice=False removes the parts along the last two blocks first and all others then: another order of the same
    operations.
    """
    good, n, d = blocks.shape
    columns = np.zeros((n, int(profile[-1])))
    rank = good * d
    columns[:, :rank] = blocks.transpose(1, 0, 2).reshape(n, rank)
    block, recent, dropped = np.ascontiguousarray(blocks[-1]), max(0, rank - 2 * d), 0.0
    for t in range(good, profile.size):
        kept = int(profile[t] - profile[t - 1])
        if kept == 0:
            break
        rest = span.matrix @ block
        rest[span.silent] = 0.0
        for known in (columns[:, (0 if twice else recent) : rank], columns[:, :rank]):
            rest -= known @ (known.T @ rest)
        recent = rank - block.shape[1]
        block, left = _pivoted(rest, columns[:, :rank], kept)
        columns[:, rank : rank + kept] = block
        rank, dropped = rank + kept, max(dropped, left)
    return columns, dropped


def _pivoted(rest: Array, columns: Array, kept: int) -> tuple[Array, float]:
    """The given number of orthonormal directions of the remainder, and the size of the largest one dropped."""
    q, r, _ = qr(rest, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diagonal(r))
    left = float(sizes[kept]) if kept < sizes.size else 0.0
    q = np.ascontiguousarray(q[:, :kept])
    if sizes[kept - 1] < 1e-3:
        # What is left of a nearly dependent block is mostly round-off along the earlier columns.
        q -= columns @ (columns.T @ q)
        q = qr(q, mode="economic", check_finite=False)[0]
    return np.ascontiguousarray(q, dtype=np.float64), left


def _signs(count: int) -> Array:
    """Two fixed probes of signs: (Q^T Q - I) g costs O(n r), where Q^T Q would cost n r^2."""
    return np.where(mixed_words(2 * count) >> np.uint64(63), 1.0, -1.0).reshape(-1, 2)

"""The exact loss of any known linear forms: time-varying graphs, meetings, butterflies, and general Gaussian views.

    same noise:            m(u) = || projection of e_u on row(K) ||^2
    with message noise:    m(u) = e_u^T K^T (K K^T + R)^-1 K e_u,  R = diag(tau^2)
    any Gaussian view      Y = A s + B xi:  m(u) = a_u^T (B B^T)^+ a_u, infinite when a_u is outside range(B)

in local-DP units (gossip:LG-1, MUF-2, MUF-7, MUF-X1). Hypotheses: the rows are public and do not depend on the data.
Where a rank must be decided, floating point alone is not believed: the rank must be certified modulo primes, or be
the number of rows with a well-conditioned margin; otherwise every reached peer is charged 1, and the result says so.
Under-counting a rank would under-report the loss.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from scipy.linalg import cho_factor, qr, solve_triangular, svd

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.network.blas import one_blas_thread
from bruit.privacy.network.krylov import AGREEMENT, MARGIN, Certificate, Leverage
from bruit.privacy.network.largest_form import largest_form
from bruit.privacy.network.modular import PRIMES, centered, matrix_profile
from bruit.privacy.network.refined import LARGEST, refined_row_basis
from bruit.privacy.network.span import checked_observers, checked_steps, neighborhood
from bruit.privacy.network.wide import Wide, exact_weights, product_of, sparse_slices

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

Modulo = Callable[[int], Ints]
"""The same rows, exactly, modulo a prime: prime -> (k, n) residues in 0..prime-1."""

GraphAt = Callable[[int], "Graph"]
"""The public graph of each step."""

Number = TypeVar("Number", Array, Ints)

BLOCK = 8
"""Rows orthogonalized together in high precision: few, since nearly parallel ones must be told apart in double."""

SURE = 1e-6
"""A smallest pivot of unit rows above this is no accident of rounding."""


@dataclass(frozen=True)
class KnownRows:
    """Linear forms an observer knows: in floats, modulo primes, in 30 digits; the observers' unit rows come first."""

    values: Array  # (k, n)
    modulo: Modulo
    wide: Callable[[], Wide]
    observers: Ints

    @property
    def messages(self) -> Array:
        """The rows received from others."""
        return self.values[self.observers.size :]


def stacked_loss(rows: Array, modulo: Modulo | None = None, wide: Callable[[], Wide] | None = None) -> Leverage:
    """Losses m(u) of all peers when the rows are known exactly (all noise is the peers' own).

    A row with a single entry reveals its peer; that column is then removed from the others (exact, and it helps
    conditioning). The rest is orthogonalized twice, keeping as many directions as the certified rank: by pivoted QR and
    by SVD, or, when these cannot decide and `wide` gives the rows in about 30 digits, in that precision.
    """
    rows = np.asarray(rows, dtype=np.float64)
    residues = [] if modulo is None else [np.asarray(modulo(prime), dtype=np.int64) for prime in PRIMES]
    _check_rows(rows, residues)
    touched = rows != 0.0
    for residue in residues:
        touched |= residue != 0
    reached = touched.any(axis=0)
    bare, open_rows = _bare(touched)
    columns = reached & ~bare
    cells = np.ix_(open_rows, columns)
    profiles = [matrix_profile(residue[cells], prime, BLOCK) for residue, prime in zip(residues, PRIMES, strict=False)]
    revealed = int(bare.sum())
    with one_blas_thread():
        values, certificate = _projected(rows[cells], tuple(int(p.max(initial=0)) for p in profiles), revealed)
        if values is None and profiles and wide is not None and columns.sum() * certificate.rank**2 <= LARGEST:
            exact = wide()
            part = Wide(exact.high[cells], exact.low[cells])
            values, certificate = _refined(part, np.maximum(*profiles), certificate, revealed)
    loss = np.zeros(rows.shape[1])
    loss[bare] = 1.0
    loss[columns] = 1.0 if values is None else values
    return Leverage(loss, certificate.rank, "upper bound" if values is None else "exact", certificate)


def _refined(rows: Wide, profile: Ints, tried: Certificate, revealed: int) -> tuple[Array | None, Certificate]:
    """Losses from two bases in about 30 digits, the second a little coarser."""
    first, second = (refined_row_basis(rows, profile, BLOCK, coarse) for coarse in (False, True))
    disagreement = float(np.abs(first.values - second.values).max())
    error, rank = max(first.error, second.error), int(profile[-1])
    if not max(disagreement, error, first.dropped, second.dropped) <= AGREEMENT:
        return None, tried
    note = f"two computations in 30 digits agree to {disagreement:.0e}"
    certificate = Certificate(rank + revealed, tried.modular, rank == min(rows.high.shape), error, disagreement, note)
    return np.minimum(np.maximum(first.values, second.values) + MARGIN * disagreement, 1.0), certificate


def _check_rows(rows: Array, residues: list[Ints]) -> None:
    if rows.ndim != 2:
        raise ConfigError(f"the known rows have shape {rows.shape}; give one row per message and one column per peer")
    if not np.isfinite(rows).all():
        raise ConfigError("the known rows contain nan or infinite entries; check the matrices they come from")
    for residue in residues:
        if residue.shape != rows.shape:
            raise ConfigError(f"the rows modulo a prime have shape {residue.shape}, the rows themselves {rows.shape}")


def _bare(touched: Bools) -> tuple[Bools, Bools]:
    """The peers revealed by a row with nobody else left in it, and the rows that still mix several peers."""
    touched = touched.copy()
    bare = np.zeros(touched.shape[1], dtype=bool)
    while True:
        single = touched.sum(axis=1) == 1
        if not single.any():
            return bare, np.asarray(touched.any(axis=1))
        bare |= touched[single].any(axis=0)
        touched[:, bare] = False


def _projected(rows: Array, ranks: tuple[int, ...], revealed: int) -> tuple[Array | None, Certificate]:
    """Losses within the remaining rows and columns, or None when they cannot be certified; and the certificate."""
    count, width = rows.shape
    modular = tuple(rank + revealed for rank in ranks)
    rank = max(ranks, default=0)
    if min(count, width) == 0 or rank == width:
        note = "every reached peer is exposed"
        return np.ones(width), Certificate(revealed + min(count, width), modular, True, 0.0, 0.0, note)
    # A row whose entries all underflowed has norm zero: it stays zero, and its direction is then missed and charged.
    norms = np.linalg.norm(rows, axis=1)
    unit = rows / np.where(norms > 0.0, norms, 1.0)[:, None]
    q, r, _ = qr(unit.T, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diagonal(r))
    if not ranks:
        rank = count if count <= width and sizes[-1] > SURE else 0
    proven = rank == min(count, width)
    kept = float(sizes[rank - 1]) if rank else 0.0
    left = float(sizes[rank]) if rank < sizes.size else 0.0
    if kept < 1e-10 or left > 1e-10:
        reason = f"exact rank {rank}, but pivots {kept:.0e} and {left:.0e} around it" if ranks else "no certified rank"
        note = f"{reason}: reached peers are charged 1"
        return None, Certificate(revealed + min(count, width), modular, False, 0.0, 1.0, note)
    v = svd(unit, full_matrices=False, check_finite=False)[2][:rank]
    first, second = (q[:, :rank] ** 2).sum(axis=1), (v**2).sum(axis=0)
    disagreement = float(np.abs(first - second).max())
    exact = disagreement <= AGREEMENT
    differ = f"two computations differ by {disagreement:.0e}: reached peers are charged 1"
    note = "two computations agree" if exact else differ
    certificate = Certificate(rank + revealed, modular, proven, float(abs(first.sum() - rank)), disagreement, note)
    larger = np.maximum(first, second)
    return (np.minimum(larger + MARGIN * disagreement, 1.0) if exact else None), certificate


def sequence_loss(graphs: GraphAt, n: int, steps: int, observers: Sequence[int] | Ints) -> Leverage:
    """Losses of all n peers on a public sequence of graphs, in the joint view of the observers."""
    rows = sequence_rows(graphs, n, steps, observers)
    return stacked_loss(rows.values, rows.modulo, rows.wide)


def meeting_loss(n: int, a: Ints, b: Ints, observers: Sequence[int] | Ints) -> Leverage:
    """Losses of all n peers given the meetings (a_t, b_t) that happened, in the joint view of the observers."""
    rows = meeting_rows(n, a, b, observers)
    return stacked_loss(rows.values, rows.modulo, rows.wide)


def sequence_rows(graphs: GraphAt, n: int, steps: int, observers: Sequence[int] | Ints) -> KnownRows:
    """K_V for a public sequence of graphs: rows e_v and (M_t)_{w,.}, w in N_t(V), M_t = W_{t-1} ... W_0.

    Each W_t is symmetric, so row w of M_t is W_0 ... W_{t-1} e_w, pulled back from its own step (gossip:MUF-2, REC-3).
    """
    used = [graphs(t) for t in range(checked_steps(steps))]
    chosen = checked_observers(n, observers)
    for t, graph in enumerate(used):
        if graph.n != n:
            raise ConfigError(f"the graph of step {t} has {graph.n} peers, not {n}; a sequence keeps its peers")
    heard = [neighborhood(graph, chosen) for graph in used]
    own = np.eye(n)[chosen]

    def pulled_back(t: int) -> Array:
        block = _unit_columns(n, heard[t])
        for graph in reversed(used[:t]):
            block = np.asarray(graph.weights @ block)
        return block.T

    def modulo(prime: int) -> Ints:
        from bruit.kernels.modular import multiply

        # A sequence often repeats its graphs: each one's residues are made once.
        residues = {id(graph): centered(graph.residues(prime).astype(np.float64), prime) for graph in used}
        parts = [own.astype(np.int64)]
        for t in range(steps):
            block = _unit_columns(n, heard[t])
            for graph in reversed(used[:t]):
                source, block = block, np.empty_like(block)
                weights = graph.weights
                multiply(weights.indptr, weights.indices, residues[id(graph)], source, block, float(prime))
            parts.append(block.T.astype(np.int64) % prime)
        return np.concatenate(parts)

    def wide() -> Wide:
        weights = {id(graph): sparse_slices(exact_weights(graph), graph.weights, n) for graph in used}
        blocks = [Wide(own, np.zeros_like(own))]
        for t in range(steps):
            block = Wide(_unit_columns(n, heard[t]), np.zeros((n, heard[t].size)))
            for graph in reversed(used[:t]):
                block = product_of(weights[id(graph)], block.slices(n))
            blocks.append(Wide(block.high.T, block.low.T))
        return Wide(np.concatenate([b.high for b in blocks]), np.concatenate([b.low for b in blocks]))

    values = np.concatenate([own, *(pulled_back(t) for t in range(steps))])
    return KnownRows(values, modulo, wide, chosen)


def _unit_columns(n: int, peers: Ints) -> Array:
    columns = np.zeros((n, peers.size))
    columns[peers, np.arange(peers.size)] = 1.0
    return columns


def meeting_rows(n: int, a: Ints, b: Ints, observers: Sequence[int] | Ints) -> KnownRows:
    """K_V for meetings (a_t, b_t), in order: both tell their value, then both keep the average (gossip:MUF-7, GO-3)."""
    chosen = checked_observers(n, observers)
    first, second = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
    if first.shape != second.shape or first.ndim != 1:
        raise ConfigError(f"meetings need two lists of the same length, found shapes {first.shape} and {second.shape}")
    if first.size and (min(first.min(), second.min()) < 0 or max(first.max(), second.max()) >= n):
        raise ConfigError(f"a meeting names a peer outside 0..{n - 1}; check the trace")
    if (first == second).any():
        raise ConfigError(f"meeting {int(np.argmax(first == second))} is of a peer with itself; remove it")
    watching = np.isin(np.arange(n), chosen)

    def modulo(prime: int) -> Ints:
        half = (prime + 1) // 2
        forms = np.eye(n, dtype=np.int64)
        return _heard_in_meetings(forms, first, second, watching, lambda x, y: (x + y) * half % prime)

    def wide() -> Wide:
        state = Wide(np.eye(n), np.zeros((n, n)))
        heard = [(state.high[watching], state.low[watching])]
        for x, y in zip(first, second, strict=True):
            if watching[x] != watching[y]:
                teller = y if watching[x] else x
                heard.append((state.high[[teller]], state.low[[teller]]))
            mean = Wide(state.high[x] / 2, state.low[x] / 2).plus(state.high[y] / 2, state.low[y] / 2)
            state.high[[x, y]], state.low[[x, y]] = mean.high, mean.low
        return Wide(np.concatenate([high for high, _ in heard]), np.concatenate([low for _, low in heard]))

    values = _heard_in_meetings(np.eye(n), first, second, watching, lambda x, y: (x + y) / 2)
    return KnownRows(values, modulo, wide, chosen)


def _heard_in_meetings(
    state: Number, a: Ints, b: Ints, watching: Bools, average: Callable[[Number, Number], Number]
) -> Number:
    """Run the meetings on linear forms; the rows heard by watching peers from others, after their own."""
    heard = [state[watching]]
    for x, y in zip(a, b, strict=True):
        if watching[x] != watching[y]:
            heard.append(state[y if watching[x] else x][None].copy())
        state[x] = state[y] = average(state[x], state[y])
    return np.concatenate(heard)


def linear_gaussian(mixing: Array, noise: Array) -> Array:
    """diag A^T (B B^T)^+ A for a view Y = A s + B xi, one private scalar per column of A (gossip:LG-1).

    Infinite where a column of A is outside range(B).

    Rank decisions: rows are scaled by the noise they carry (the result does not change); singular values of B below
    max(k, s) 2^-52 of the largest count as zero, and a column with more than 1e-12 of its length outside the
    remaining range counts as seen without noise. In doubt the answer is infinite, never too small. For views where
    all noise is the peers' own, stacked_loss decides ranks exactly.
    """
    whitened, outside = _whitened(mixing, noise)
    return np.where(outside, np.inf, (whitened**2).sum(axis=0))


def user_loss(mixing: Array, noise: Array, columns: Sequence[int] | Ints) -> float:
    """Loss of a user who owns several scalars, each moving by at most 1: max d^T Q d, Q = A_u^T (B B^T)^+ A_u.

    (gossip:LG-1, MUF-12.)

    An upper bound, at most sum |Q| and equal to it when Q >= 0; covers adaptive choices in causal views.
    """
    whitened, outside = _whitened(mixing, noise)
    chosen = np.asarray(columns, dtype=np.int64)
    if outside[chosen].any():
        return float("inf")
    return largest_form(whitened[:, chosen].T @ whitened[:, chosen])


def _whitened(mixing: Array, noise: Array) -> tuple[Array, Bools]:
    """A in coordinates where the noise is standard, and which columns stick out of the range of the noise."""
    a, b = np.asarray(mixing, dtype=np.float64), np.asarray(noise, dtype=np.float64)
    if a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[0]:
        raise ConfigError(f"A has shape {a.shape} and B {b.shape}; both need one row per observation")
    norms = np.linalg.norm(b, axis=1)
    scale = 1.0 / np.where(norms > 0.0, norms, 1.0)
    a, b = a * scale[:, None], b * scale[:, None]
    u, s, _ = svd(b, full_matrices=False)
    rank = int((s > max(b.shape) * np.finfo(float).eps * s.max(initial=0.0)).sum())
    u, s = u[:, :rank], s[:rank]
    inside = u.T @ a
    outside = np.linalg.norm(a - u @ inside, axis=0) > 1e-12 * np.linalg.norm(a, axis=0)
    return inside / s[:, None], outside


def noisy_rows_loss(rows: Array, tau: Array | float) -> Array:
    """diag K^T (K K^T + R)^-1 K, R = diag(tau^2): rows heard through fresh noise of tau times sigma (gossip:MUF-X1).

    No rank decision is needed. This form has no cancellation, so small losses keep their digits; a reached peer never
    gets 0.
    """
    k = np.asarray(rows, dtype=np.float64)
    spread = np.broadcast_to(np.asarray(tau, dtype=np.float64), k.shape[:1])
    if not (spread > 0.0).all():
        raise PrivacyError(
            "message noise tau must be positive on every row; use linear_gaussian(A, B) for rows heard without noise"
        )
    scaled = k / spread[:, None]
    reached = (k != 0.0).any(axis=0)
    if scaled.shape[0] > scaled.shape[1]:
        # More rows than peers: the triangular factor carries the same information in n rows of unit noise.
        scaled = np.asarray(qr(scaled, mode="r", check_finite=False)[0][: scaled.shape[1]], dtype=np.float64)
    factor, lower = cho_factor(scaled @ scaled.T + np.eye(scaled.shape[0]), lower=True)
    loss = (solve_triangular(factor, scaled, lower=lower) ** 2).sum(axis=0)
    return np.where(reached, np.clip(loss, np.finfo(float).tiny, 1.0), 0.0)

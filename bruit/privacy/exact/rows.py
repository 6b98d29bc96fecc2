"""The exact loss of any known linear forms: time-varying graphs, meetings, butterflies, and general
Gaussian views.

    same noise:            m(u) = || projection of e_u on row(K) ||^2
    with message noise:    m(u) = e_u^T K^T (K K^T + R)^-1 K e_u,  R = diag(tau^2)
    any Gaussian view      Y = A s + B xi:  m(u) = a_u^T (B B^T)^+ a_u, infinite when a_u is outside range(B)

in local-DP units (gossip:LG-1, MUF-2, MUF-7, MUF-X1). Hypotheses: the rows are public and do not
depend on the data. Where a rank must be decided, floating point alone is not believed: the rank
must be certified modulo primes, or be the number of rows with a well-conditioned margin; otherwise
every reached peer is charged 1, and the result says so. Under-counting a rank would under-report
the loss.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from scipy.linalg import cho_factor, qr, solve_triangular, svd

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.exact.blas import one_blas_thread
from bruit.privacy.exact.drift import UNIT, lengths, noise, raised
from bruit.privacy.exact.krylov import (
    TOLERANCE,
    Certificate,
    Leverage,
    Status,
    everybody_heard,
    pivoted,
)
from bruit.privacy.exact.largest_forms import largest_form
from bruit.privacy.exact.modular import (
    NULLS,
    PRIMES,
    agreed_exposure,
    centered,
    random_residues,
    stacked,
)
from bruit.privacy.exact.refined import LARGEST, Basis, given_up, refined_row_basis
from bruit.privacy.exact.span import checked_observers, checked_steps, neighborhood
from bruit.privacy.exact.twins import Cells
from bruit.privacy.exact.wide import Wide, exact_weights, product_of, sparse_slices

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

Modulo = Callable[[int], Ints]
"""The same rows, exactly, modulo a prime: prime -> (k, n) residues in 0..prime-1."""

GraphAt = Callable[[int], "Graph"]
"""The public graph of each step."""

Number = TypeVar("Number", Array, Ints)

BLOCK = 8
"""Rows orthogonalized together in high precision: few, since nearly parallel ones must be told
apart in double."""

SURE = 1e-6
"""A smallest pivot of unit rows above this is no accident of rounding."""


@dataclass(frozen=True)
class KnownRows:
    """Linear forms an observer knows: in floats, modulo primes, in 30 digits; the observers' unit
    rows come first."""

    values: Array  # (k, n)
    modulo: Modulo
    wide: Callable[[], Wide]
    observers: Ints

    @property
    def messages(self) -> Array:
        """The rows received from others."""
        return self.values[self.observers.size :]


@dataclass(frozen=True)
class Decided:
    """Losses of known rows, and orthonormal columns of their space; None without a certificate.

    `length` is the most that the rows of the columns can be long.
    """

    found: Leverage
    columns: Array | None  # (n, rank)
    length: Array  # (n,)


def stacked_loss(
    rows: Array, modulo: Modulo | None = None, wide: Callable[[], Wide] | None = None
) -> Leverage:
    """Losses m(u) of all peers when the rows are known exactly (all noise is the peers' own)."""
    return decided(rows, modulo, wide).found


def decided(
    rows: Array, modulo: Modulo | None = None, wide: Callable[[], Wide] | None = None
) -> Decided:
    """The same with the space itself.

    A row with a single entry reveals its peer; that column is then removed from the others (exact,
    and it helps conditioning). Peers with equal columns modulo both primes are twins, and 1 is
    shared by them; that is the loss when there are as many directions as different columns. The
    rest is orthogonalized by pivoted QR, K^T = Q R, keeping as many directions as the certified
    rank. Then X = K_exact^T R^-1 lies in the true space, and spans it when it is close to Q. D = X
    - Q is what rounding of K becomes (bruit.privacy.exact.drift). When that cannot decide and
    `wide` gives the rows in about 30 digits, in that precision. Losses must be 1 where null vectors
    modulo primes say exposed.
    """
    rows = np.asarray(rows, dtype=np.float64)
    residues = (
        [] if modulo is None else [np.asarray(modulo(prime), dtype=np.int64) for prime in PRIMES]
    )
    _check_rows(rows, residues)
    touched = rows != 0.0
    for residue in residues:
        touched |= residue != 0
    reached = touched.any(axis=0)
    bare, open_rows = _bare(touched)
    mixed = reached & ~bare
    inner = np.ix_(open_rows, mixed)
    rest = _Rest(rows[inner], [residue[inner] for residue in residues], int(bare.sum()))

    def digits() -> Wide | None:
        return None if wide is None else Wide((made := wide()).high[inner], made.low[inner])

    with one_blas_thread():
        basis, certificate = rest.certified(digits)
    most = rest.shared if basis is None else np.minimum(raised(basis), rest.shared)
    if basis is not None:
        most[rest.exposed] = 1.0
    loss = np.zeros(rows.shape[1])
    loss[bare] = 1.0
    loss[mixed] = most
    status: Status = "upper bound" if basis is None else "exact"
    found = Leverage(loss, certificate.rank, status, certificate)
    if basis is None:
        return Decided(found, None, np.sqrt(loss))
    count = rest.revealed
    columns = np.zeros((rows.shape[1], count + basis.rank))
    columns[np.flatnonzero(bare), np.arange(count)] = 1.0
    columns[mixed, count:] = np.concatenate(basis.blocks, axis=1)
    return Decided(found, columns, np.sqrt(loss))


class _Rest:
    """The rows and columns that remain when bare rows are gone."""

    def __init__(self, rows: Array, residues: list[Ints], revealed: int) -> None:
        self.rows, self.revealed = rows, revealed
        words = [stacked(part, prime, BLOCK) for part, prime in zip(residues, PRIMES, strict=False)]
        self.ranks = tuple(int(word.profile.max(initial=0)) for word in words)
        self.profile = (
            np.maximum.reduce([word.profile for word in words])
            if words
            else np.zeros(0, dtype=np.int64)
        )
        exposed = agreed_exposure(words)
        self.exposed = np.zeros(rows.shape[1], dtype=bool) if exposed is None else exposed
        self.cells = _equal_columns(residues, rows.shape[1])
        self.shared = self.cells.spread(np.ones(self.cells.count))

    def certified(self, wide: Callable[[], Wide | None]) -> tuple[Basis | None, Certificate]:
        """A basis that may be believed, or None; and why."""
        count, width = self.rows.shape
        rank = max(self.ranks, default=0)
        if min(count, width) == 0 or (self.ranks and rank == self.cells.count):
            twins = "" if self.cells.count == width else ", up to twins who share it"
            columns = self.cells.rows(np.eye(self.cells.count), np.arange(width))
            whole = Basis((columns,), self.shared.copy(), np.zeros(width), 0.0, self.cells.count)
            return whole, self._certificate(
                rank, True, 0.0, 0.0, f"every reached peer is exposed{twins}"
            )
        basis = self._projected(rank)
        fault = self._fault(basis)
        if fault and self.ranks and width * rank**2 <= LARGEST and (exact := wide()) is not None:
            basis = refined_row_basis(exact, self.profile, BLOCK)
            fault = self._fault(basis)
        if fault:
            rank = rank or min(count, width)
            charged = f"1 is charged to every reached peer, {self.revealed + width} of them"
            return None, self._certificate(rank, False, 0.0, 1.0, f"{fault}: {charged}")
        error = float((raised(basis) - basis.values).max())
        note = f"rounding moves no loss by more than {error:.0e}"
        return basis, self._certificate(
            basis.rank, basis.rank == min(count, width), basis.error, error, note
        )

    def _certificate(
        self, rank: int, proven: bool, orthogonality: float, error: float, note: str
    ) -> Certificate:
        modular = tuple(found + self.revealed for found in self.ranks)
        return Certificate(
            rank=rank + self.revealed,
            modular=modular,
            proven=proven,
            orthogonality=orthogonality,
            error=error,
            note=note,
        )

    def _fault(self, basis: Basis) -> str:
        """Why a basis is not believed; empty when it is."""
        if not np.isfinite(basis.drift).all():
            known = (
                f"exact rank {max(self.ranks)}, but rounding decides the directions"
                if self.ranks
                else ""
            )
            return known or "no certified rank"
        values = raised(basis)
        error = float((values - basis.values).max())
        if not error <= TOLERANCE:  # nan is no answer
            return f"rounding may move a loss by {error:.0e}"
        if float(values[self.exposed].min(initial=1.0)) < 1.0 - TOLERANCE:
            return "a peer that exact arithmetic finds exposed has a loss below 1"
        return ""

    def _projected(self, rank: int) -> Basis:
        """An orthonormal basis by pivoted QR in doubles."""
        count, width = self.rows.shape
        # A row whose entries all underflowed has norm zero: it stays zero; its direction is then
        # missed and charged.
        norms = lengths(self.rows)
        unit = self.rows / np.where(norms > 0.0, norms, 1.0)[:, None]
        if not self.ranks:
            sizes = np.abs(np.diagonal(qr(unit.T, mode="r", pivoting=True, check_finite=False)[0]))
            rank = count if count <= width and sizes[-1] > SURE else 0
        found = pivoted(unit.T, np.zeros((width, 0)), rank) if rank else None
        if found is None:
            return given_up(width, rank)
        columns, order, inverse = found
        # Rows are products of as many factors as there were steps; entries that cancelled keep the
        # error of the row.
        size = UNIT * np.sqrt(count) * (np.abs(unit[order].T) + 1.0 / np.sqrt(width))
        moved = size * noise(np.ones(width), rank, 0) @ inverse
        moved -= columns @ (columns.T @ moved)
        error = float(np.abs(columns.T @ columns - np.eye(rank)).max())
        return Basis((columns,), (columns**2).sum(axis=1), lengths(moved), error, rank)


def _equal_columns(residues: list[Ints], width: int) -> Cells:
    """The peers in cells of equal columns, by random combinations of the rows; each alone without
    residues."""
    from bruit.privacy.exact.compiled.modular import rows_times

    if not residues or residues[0].size == 0:
        return Cells(np.arange(width), np.ones(width, dtype=np.int64))
    keys = []
    for part, prime in zip(residues, PRIMES, strict=True):
        columns = np.ascontiguousarray(centered(part.T.astype(np.float64), prime))
        drawn = random_residues(prime, NULLS, columns.shape[1])
        keys.append(rows_times(columns, np.arange(width), drawn, float(prime)))
    _, cell, sizes = np.unique(
        np.concatenate(keys, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    return Cells(cell.reshape(-1), sizes)


def _check_rows(rows: Array, residues: list[Ints]) -> None:
    if rows.ndim != 2:
        raise ConfigError(
            f"the known rows have shape {rows.shape}; give one row per message and one column per "
            f"peer"
        )
    if not np.isfinite(rows).all():
        raise ConfigError(
            "the known rows contain nan or infinite entries; check the matrices they come from"
        )
    for residue in residues:
        if residue.shape != rows.shape:
            raise ConfigError(
                f"the rows modulo a prime have shape {residue.shape}, the rows themselves "
                f"{rows.shape}"
            )


def _bare(touched: Bools) -> tuple[Bools, Bools]:
    """The peers revealed by a row with nobody else left in it, and the rows that still mix several
    peers."""
    touched = touched.copy()
    bare = np.zeros(touched.shape[1], dtype=bool)
    while True:
        single = touched.sum(axis=1) == 1
        if not single.any():
            return bare, np.asarray(touched.any(axis=1))
        bare |= touched[single].any(axis=0)
        touched[:, bare] = False


def sequence_loss(graphs: GraphAt, n: int, steps: int, observers: Sequence[int] | Ints) -> Leverage:
    """Losses of all n peers on a public sequence of graphs, in the joint view of the observers."""
    if (
        checked_steps(steps) and graphs(0).implicit
    ):  # too many weights to list, and the first round tells all
        checked_observers(n, observers)
        return everybody_heard(n)
    rows = sequence_rows(graphs, n, steps, observers)
    return stacked_loss(rows.values, rows.modulo, rows.wide)


def meeting_loss(n: int, a: Ints, b: Ints, observers: Sequence[int] | Ints) -> Leverage:
    """Losses of all n peers given the meetings (a_t, b_t) that happened, in the joint view of the
    observers."""
    rows = meeting_rows(n, a, b, observers)
    return stacked_loss(rows.values, rows.modulo, rows.wide)


def sequence_rows(
    graphs: GraphAt, n: int, steps: int, observers: Sequence[int] | Ints
) -> KnownRows:
    """K_V for a public sequence of graphs: rows e_v and (M_t)_{w,.}, w in N_t(V), M_t = W_{t-1} ...
    W_0.

    Each W_t is symmetric, so row w of M_t is W_0 ... W_{t-1} e_w, pulled back from its own step
    (gossip:MUF-2, REC-3).
    """
    used = _graphs_of_equal_size(graphs, n, steps)
    chosen = checked_observers(n, observers)
    heard = [neighborhood(graph, chosen) for graph in used]
    own = np.eye(n)[chosen]

    def pulled_back(t: int) -> Array:
        block = _unit_columns(n, heard[t])
        for graph in reversed(used[:t]):
            block = np.asarray(graph.weights @ block)
        return block.T

    def modulo(prime: int) -> Ints:
        from bruit.privacy.exact.compiled.modular import multiply

        # A sequence often repeats its graphs: each one's residues are made once.
        residues = {
            id(graph): centered(graph.residues(prime).astype(np.float64), prime) for graph in used
        }
        parts = [own.astype(np.int64)]
        for t in range(steps):
            block = _unit_columns(n, heard[t])
            for graph in reversed(used[:t]):
                source, block = block, np.empty_like(block)
                weights = graph.weights
                multiply(
                    weights.indptr,
                    weights.indices,
                    residues[id(graph)],
                    source,
                    block,
                    float(prime),
                )
            parts.append(block.T.astype(np.int64) % prime)
        return np.concatenate(parts)

    def wide() -> Wide:
        weights = {
            id(graph): sparse_slices(exact_weights(graph), graph.weights, n) for graph in used
        }
        blocks = [Wide(own, np.zeros_like(own))]
        for t in range(steps):
            block = Wide(_unit_columns(n, heard[t]), np.zeros((n, heard[t].size)))
            for graph in reversed(used[:t]):
                block = product_of(weights[id(graph)], block.slices(n))
            blocks.append(Wide(block.high.T, block.low.T))
        high, low = zip(*((block.high, block.low) for block in blocks), strict=True)
        return Wide(np.concatenate(high), np.concatenate(low))

    values = np.concatenate([own, *(pulled_back(t) for t in range(steps))])
    return KnownRows(values, modulo, wide, chosen)


def _graphs_of_equal_size(graphs: GraphAt, n: int, steps: int) -> "list[Graph]":
    """The graph of each step, all of the same n peers."""
    used = [graphs(t) for t in range(checked_steps(steps))]
    for t, graph in enumerate(used):
        if graph.n != n:
            raise ConfigError(
                f"the graph of step {t} has {graph.n} peers, not {n}; a sequence keeps its peers"
            )
    return used


def _unit_columns(n: int, peers: Ints) -> Array:
    columns = np.zeros((n, peers.size))
    columns[peers, np.arange(peers.size)] = 1.0
    return columns


def meeting_rows(n: int, a: Ints, b: Ints, observers: Sequence[int] | Ints) -> KnownRows:
    """K_V for meetings (a_t, b_t), in order: both tell their value, then both keep the average
    (gossip:MUF-7, GO-3)."""
    chosen = checked_observers(n, observers)
    first, second = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
    if first.shape != second.shape or first.ndim != 1:
        raise ConfigError(
            f"meetings need two lists of the same length, found shapes {first.shape} and "
            f"{second.shape}"
        )
    if first.size and (min(first.min(), second.min()) < 0 or max(first.max(), second.max()) >= n):
        raise ConfigError(f"a meeting names a peer outside 0..{n - 1}; check the trace")
    if (first == second).any():
        raise ConfigError(
            f"meeting {int(np.argmax(first == second))} is of a peer with itself; remove it"
        )
    watching = np.isin(np.arange(n), chosen)

    def modulo(prime: int) -> Ints:
        half = (prime + 1) // 2
        forms = np.eye(n, dtype=np.int64)
        return _heard_in_meetings(
            forms, first, second, watching, lambda x, y: (x + y) * half % prime
        )

    def wide() -> Wide:
        state = Wide(np.eye(n), np.zeros((n, n)))
        heard = [(state.high[watching], state.low[watching])]
        for x, y in zip(first, second, strict=True):
            if watching[x] != watching[y]:
                teller = y if watching[x] else x
                heard.append((state.high[[teller]], state.low[[teller]]))
            mean = Wide(state.high[x] / 2, state.low[x] / 2).plus(
                state.high[y] / 2, state.low[y] / 2
            )
            state.high[[x, y]], state.low[[x, y]] = mean.high, mean.low
        return Wide(
            np.concatenate([high for high, _ in heard]), np.concatenate([low for _, low in heard])
        )

    values = _heard_in_meetings(np.eye(n), first, second, watching, lambda x, y: (x + y) / 2)
    return KnownRows(values, modulo, wide, chosen)


def _heard_in_meetings(
    state: Number, a: Ints, b: Ints, watching: Bools, average: Callable[[Number, Number], Number]
) -> Number:
    """Run the meetings on linear forms; the rows heard by watching peers from others, after their
    own."""
    heard = [state[watching]]
    for x, y in zip(a, b, strict=True):
        if watching[x] != watching[y]:
            heard.append(state[y if watching[x] else x][None].copy())
        state[x] = state[y] = average(state[x], state[y])
    return np.concatenate(heard)


def linear_gaussian(mixing: Array, noise: Array) -> Array:
    """diag A^T (B B^T)^+ A for a view Y = A s + B xi, one private scalar per column of A
    (gossip:LG-1).

    Infinite where a column of A is outside range(B).

    Rank decisions: rows are scaled by the noise they carry, which does not change the result.
    Singular values of B below max(k, s) 2^-52 of the largest count as zero. A column with more than
    1e-12 of its length outside the remaining range counts as seen without noise. In doubt the
    answer is infinite, never too small. For views where all noise is the peers' own, stacked_loss
    decides ranks exactly.
    """
    whitened, outside = _whitened(mixing, noise)
    return np.where(outside, np.inf, (whitened**2).sum(axis=0))


def user_loss(mixing: Array, noise: Array, columns: Sequence[int] | Ints) -> float:
    """Loss of a user who owns several scalars, each moving by at most 1: max d^T Q d, Q = A_u^T (B
    B^T)^+ A_u.

    (gossip:LG-1, MUF-12.)

    An upper bound, at most sum |Q| and equal to it when Q >= 0; covers adaptive choices in causal
    views.
    """
    whitened, outside = _whitened(mixing, noise)
    chosen = np.asarray(columns, dtype=np.int64)
    if outside[chosen].any():
        return float("inf")
    return largest_form(whitened[:, chosen].T @ whitened[:, chosen])


def _whitened(mixing: Array, noise: Array) -> tuple[Array, Bools]:
    """A in coordinates where the noise is standard, and which columns stick out of the range of the
    noise."""
    a, b = np.asarray(mixing, dtype=np.float64), np.asarray(noise, dtype=np.float64)
    if a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[0]:
        raise ConfigError(
            f"A has shape {a.shape} and B {b.shape}; both need one row per observation"
        )
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
    """diag K^T (K K^T + R)^-1 K, R = diag(tau^2): rows heard through fresh noise of tau times sigma
    (gossip:MUF-X1).

    No rank decision is needed. This form has no cancellation, so small losses keep their digits; a
    reached peer never gets 0.
    """
    k = np.asarray(rows, dtype=np.float64)
    spread = np.broadcast_to(np.asarray(tau, dtype=np.float64), k.shape[:1])
    if not (spread > 0.0).all():
        raise PrivacyError(
            "message noise tau must be positive on every row; use linear_gaussian(A, B) for rows "
            "heard without noise"
        )
    scaled = k / spread[:, None]
    reached = (k != 0.0).any(axis=0)
    if scaled.shape[0] > scaled.shape[1]:
        # More rows than peers: the triangular factor carries the same information in n rows of unit
        # noise.
        scaled = np.asarray(
            qr(scaled, mode="r", check_finite=False)[0][: scaled.shape[1]], dtype=np.float64
        )
    factor, lower = cho_factor(scaled @ scaled.T + np.eye(scaled.shape[0]), lower=True)
    loss = (solve_triangular(factor, scaled, lower=lower) ** 2).sum(axis=0)
    return np.where(reached, np.clip(loss, np.finfo(float).tiny, 1.0), 0.0)

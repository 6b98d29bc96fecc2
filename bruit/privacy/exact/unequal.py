"""The exact loss of linear forms whose noises have different sizes (silo:SILO-8).

    view K (x + S^(1/2) xi), S = diag(s^2):      mu(u)^2 = (Delta / s_u)^2 l_u,
    l_u = || projection of e_u on row(K S^(1/2)) ||^2

K (x + S^(1/2) xi) = (K S^(1/2)) (S^(-1/2) x + xi), so in units of everybody's own noise it is the
view of equal noise with the columns of K times s_u. All that is known of known rows holds of these
rows, which are exact too: s_u are floats, that is dyadic rationals, so the rows are known modulo
primes and in 30 digits (`with_sizes`). Null vectors and ranks are those of K: 0 <= l_u <= 1, l_u =
1 iff e_u is in row(K), and they sum to the rank.

On one graph the certified basis Q of row(K) is used instead (`unequal_loss`). Its true twin is X =
Q + E with |E_u| <= e_u. With M = Q^T S Q and t = || S^(1/2) E M^(-1/2) || < 1 the columns of X keep
x^T X^T S X x >= (1 - t)^2 x^T M x, hence

    sqrt(l_u) <= ( |M^(-1/2) s_u Q_u| + s_u e_u / sqrt(least eigenvalue of M) ) / (1 - t).

What this adds is in the loss; above 1e-6 the rows themselves are decided, in 30 digits if need be.
Without a certificate every reached peer is charged 1, which cells of twins share in proportion to
s_u^2 (known sums hide behind the noise of all of a cell).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import qr, solve_triangular, svdvals

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.privacy.exact.blas import one_blas_thread
from bruit.privacy.exact.drift import UNIT, lengths
from bruit.privacy.exact.krylov import (
    TOLERANCE,
    Leverage,
    Trusted,
    everybody_heard,
    nothing_heard,
    trusted,
)
from bruit.privacy.exact.largest_forms import largest_form
from bruit.privacy.exact.rows import KnownRows, decided, sequence_rows, stacked_loss
from bruit.privacy.exact.span import (
    checked_observers,
    checked_steps,
    checked_symmetry,
    krylov_span,
)
from bruit.privacy.exact.wide import Wide, product_of

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

MOST_ROWS = 2**24
"""Entries of known rows that are made to decide what a basis could not."""


def checked_sizes(sizes: Sequence[float] | Array, n: int) -> Array:
    """The deviation of every peer's noise, refused unless all are positive and finite: what a peer
    without noise loses is not bounded by this theorem (silo:SILO-8)."""
    found = np.asarray(sizes, dtype=np.float64)
    if found.shape != (n,):
        raise PrivacyError(f"there are {n} peers and noises of shape {found.shape}; give one each")
    bad = np.flatnonzero(~((found > 0) & np.isfinite(found)))
    if bad.size:
        raise PrivacyError(
            f"peer {int(bad[0])} has noise of size {found[bad[0]]}; every peer needs some, or what"
            " it loses may be without bound"
        )
    return found


def with_sizes(known: KnownRows, sizes: Sequence[float] | Array) -> KnownRows:
    """The same rows in units of everybody's own noise: column u times s_u, exactly."""
    deviations = checked_sizes(sizes, known.values.shape[1])
    whole = _whole(deviations)

    def modulo(prime: int) -> Ints:
        scale = np.array([number % prime for number in whole], dtype=np.int64)
        return known.modulo(prime) % prime * scale % prime

    def wide() -> Wide:
        n = len(deviations)
        scale = Wide(np.diag(deviations), np.zeros((n, n)))
        return product_of(known.wide().slices(n), scale.slices(n))

    return KnownRows(known.values * deviations, modulo, wide, known.observers)


def _whole(deviations: Array) -> list[int]:
    """All deviations times one power of two: whole numbers, in the same proportion."""
    ratios = [float(size).as_integer_ratio() for size in deviations]
    common = max(below for _, below in ratios)
    return [above * (common // below) for above, below in ratios]


def unequal_rows_loss(known: KnownRows, sizes: Sequence[float] | Array) -> Leverage:
    """Losses of known rows in units of everybody's own noise."""
    scaled = with_sizes(known, sizes)
    return stacked_loss(scaled.values, scaled.modulo, scaled.wide)


def unequal_loss(
    graph: "Graph",
    observers: Sequence[int] | Ints,
    steps: int,
    sizes: Sequence[float] | Array,
) -> Leverage:
    """Losses of all peers after so many steps on one graph, each in units of its own noise; plain
    or accelerated gossip.

    >>> from bruit.graphs import star
    >>> unequal_loss(star(5), [1], 2, [1.0, 1.0, 2.0, 0.5, 1.0]).loss.round(8).tolist()
    [1.0, 1.0, 0.76190476, 0.04761905, 0.19047619]
    """
    deviations = checked_sizes(sizes, graph.n)
    chosen = checked_observers(graph.n, observers)
    if graph.implicit:
        return everybody_heard(graph.n) if checked_steps(steps) else nothing_heard(graph.n, chosen)
    checked_symmetry(graph)
    span = krylov_span(graph, chosen, checked_steps(steps))
    if span is None:
        return nothing_heard(graph.n, chosen)
    reached = np.setdiff1d(np.arange(span.peers.size), span.silent)
    found = trusted(graph, span, reached)
    peers = span.peers[reached]
    with one_blas_thread():
        values, error = _weighted(found, deviations[peers])
    exact = found.exact and error <= TOLERANCE
    if not exact and steps * len(span.starts) * graph.n <= MOST_ROWS:
        rows = sequence_rows(lambda _: graph, graph.n, steps, chosen)
        second = unequal_rows_loss(rows, deviations)
        if second.status == "exact":
            return second
    loss = np.zeros(graph.n)
    loss[peers], loss[chosen] = np.where(np.isfinite(values), values, 1.0), 1.0
    certificate = replace(
        found.certificate,
        rank=found.certificate.rank + chosen.size,
        modular=tuple(rank + chosen.size for rank in found.certificate.modular),
        error=error if exact else 1.0,
    )
    return Leverage(loss, certificate.rank, "exact" if exact else "upper bound", certificate)


def _weighted(found: Trusted, sizes: Array) -> tuple[Array, float]:
    """Losses in units of own noise from a basis for equal noise, and the most that was added to
    one."""
    scaled = sizes[:, None] * found.rows / sizes.max()
    drift = np.maximum(found.length - lengths(found.rows), 0.0) * sizes / sizes.max()
    used = scaled.any(axis=0)  # a larger space may hold cells that nobody asked about
    r = qr(scaled[:, used], mode="r", check_finite=False)[0][: int(used.sum())]
    least = float(svdvals(r).min(initial=1.0))
    plain = lengths(solve_triangular(r, scaled[:, used].T, trans="T", check_finite=False).T)
    rounding = 64.0 * UNIT * len(scaled) * float(svdvals(r).max(initial=1.0)) / least
    moved = float(np.sqrt((drift**2).sum())) / least
    if not moved < 0.5:
        return np.ones(len(sizes)), np.inf
    most = np.minimum((plain + drift / least + rounding * plain) / (1.0 - moved), 1.0) ** 2
    error = float((most - np.minimum(plain, 1.0) ** 2).max(initial=0.0))
    if found.exact:
        most[found.loss == 1.0] = 1.0
    return most, error


def unequal_joint(
    known: KnownRows, sizes: Sequence[float] | Array, members: Sequence[int] | Ints
) -> float:
    """Loss of several peers whose data all change at once, in units of the largest noise:
    max d^T P d over |d_u| <= max(s) / s_u, P the projector on the rows times s (gossip:MUF-12)."""
    deviations = checked_sizes(sizes, known.values.shape[1])
    scaled = with_sizes(known, deviations)
    found = decided(scaled.values, scaled.modulo, scaled.wide)
    chosen = np.asarray(members, dtype=np.int64)
    reach = deviations.max() / deviations[chosen]
    most = float((reach * np.sqrt(found.found.loss[chosen])).sum() ** 2)
    if found.columns is None:
        return most
    part = reach[:, None] * found.columns[chosen]
    margin = float((reach * found.length[chosen]).sum() ** 2 - lengths(part).sum() ** 2)
    return min(largest_form(part @ part.T) + max(0.0, margin), most)

"""The exact loss of every pair: m[u, v] = loss of u in the view of v, after some steps with a fixed matrix.

On graphs with a translation group one observer tells all. Otherwise every observer is computed and certified on its own
(bruit.privacy.network.krylov), in threads; the rows modulo primes are projected once for all observers (gossip:MUF-2,
MUF-3).
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.privacy.network.blas import one_blas_thread
from bruit.privacy.network.krylov import Leverage, certified, leverage, nothing_heard
from bruit.privacy.network.modular import (
    PRIMES,
    Ranks,
    SharedRows,
    joint_ranks,
    krylov_ranks,
    shared_rows,
    shared_width,
)
from bruit.privacy.network.span import KrylovSpan, checked_steps, checked_symmetry, krylov_span

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

LARGEST = 20_000
"""Most peers for which an n x n matrix of losses is made."""

SHARED_BYTES = 1 << 30
"""Most memory for the shared rows modulo one prime; beyond it each observer makes its own."""

Progress = Callable[[int, int], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Pairwise:
    """Losses of all pairs in local-DP units; nan on the diagonal. Columns not `exact` are upper bounds."""

    m: Array  # (n, n)
    exact: Bools  # (n,)
    rank: Ints  # (n,)
    orthogonality: float
    disagreement: float
    notes: tuple[str, ...]

    @property
    def worst(self) -> float:
        """The largest loss of any pair; 0 for a lone peer."""
        return float(np.nanmax(self.m)) if self.m.shape[0] > 1 else 0.0

    @property
    def mean(self) -> float:
        """A summary that protects no pair: the largest over v of (1/n) sum over u != v (gossip:MUF-3)."""
        return float((np.nansum(self.m, axis=0) / self.m.shape[0]).max())


def pairwise(graph: "Graph", steps: int, *, threads: int = 2, progress: Progress | None = None) -> Pairwise:
    """Losses of all pairs; progress(done, total) is called as observers finish."""
    checked_steps(steps)
    if graph.n > LARGEST:
        raise ConfigError(
            f"{graph.n} peers make {graph.n}^2 pairs, more than the {LARGEST}^2 kept in memory; "
            "ask for one observer at a time with leverage(graph, [v], steps)"
        )
    if threads < 1:
        raise ConfigError(f"threads is {threads}; at least 1 is needed")
    if graph.group is not None:
        return _translated(graph, leverage(graph, [0], steps), progress)
    checked_symmetry(graph)
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        spans = list(_in_order(pool, threads, lambda v: krylov_span(graph, np.array([v]), steps), range(graph.n)))
        ranks = _all_ranks(graph, steps, spans, pool, threads)
        return _collected(graph, spans, ranks, pool, threads, progress)


def _translated(graph: "Graph", one: Leverage, progress: Progress | None) -> Pairwise:
    """All observers from the view of peer 0 and the translations of the graph."""
    n = graph.n
    m = np.empty((n, n))
    for v in range(n):
        m[:, v] = one.loss[graph.translate(v)]
    np.fill_diagonal(m, np.nan)
    if progress is not None:
        progress(n, n)
    certificate = one.certificate
    exact, rank = np.full(n, one.status == "exact"), np.full(n, one.rank)
    return Pairwise(m, exact, rank, certificate.orthogonality, certificate.disagreement, (certificate.note,))


def _collected(
    graph: "Graph",
    spans: list[KrylovSpan | None],
    ranks: list[Ranks | None],
    pool: ThreadPoolExecutor,
    threads: int,
    progress: Progress | None,
) -> Pairwise:
    n = graph.n

    def view(v: int) -> Leverage:
        span, found = spans[v], ranks[v]
        known = np.array([v])
        return nothing_heard(n, known) if span is None or found is None else certified(graph, span, found, known)

    transposed = np.empty((n, n))
    exact, rank = np.ones(n, dtype=bool), np.zeros(n, dtype=np.int64)
    orthogonality = disagreement = 0.0
    notes: set[str] = set()
    for v, seen in enumerate(_in_order(pool, threads, view, range(n))):
        transposed[v] = seen.loss
        exact[v], rank[v] = seen.status == "exact", seen.rank
        if seen.status == "exact":
            orthogonality = max(orthogonality, seen.certificate.orthogonality)
            disagreement = max(disagreement, seen.certificate.disagreement)
        else:
            notes.add(f"observer {v}: {seen.certificate.note}")
        if progress is not None:
            progress(v + 1, n)
    np.fill_diagonal(transposed, np.nan)
    return Pairwise(np.ascontiguousarray(transposed.T), exact, rank, orthogonality, disagreement, tuple(sorted(notes)))


def _all_ranks(
    graph: "Graph", steps: int, spans: list[KrylovSpan | None], pool: ThreadPoolExecutor, threads: int
) -> list[Ranks | None]:
    """Ranks of every observer; the second prime only for those whom the first does not settle."""
    bytes_needed = 4 * steps * graph.n * shared_width(graph, steps)
    if bytes_needed > SHARED_BYTES:
        return list(_in_order(pool, threads, lambda v: _own_ranks(graph, spans[v]), range(graph.n)))
    profiles: list[dict[int, Ints]] = [{} for _ in spans]
    for prime in PRIMES:
        open_ones = [v for v, span in enumerate(spans) if span is not None and not _settled(span, profiles[v])]
        if open_ones:
            work = partial(_shared_profile, shared_rows(graph, steps, prime), spans)
            found = _in_order(pool, threads, work, open_ones)
            for v, profile in zip(open_ones, found, strict=True):
                profiles[v][prime] = profile
    return [
        None if span is None else joint_ranks(known.__getitem__, span.most)
        for span, known in zip(spans, profiles, strict=True)
    ]


def _own_ranks(graph: "Graph", span: KrylovSpan | None) -> Ranks | None:
    return None if span is None else krylov_ranks(graph, span)


def _settled(span: KrylovSpan, profiles: dict[int, Ints]) -> bool:
    return any(profile[-1] == span.most for profile in profiles.values())


def _shared_profile(rows: SharedRows, spans: list[KrylovSpan | None], observer: int) -> Ints:
    span = spans[observer]
    if span is None:
        return np.zeros(0, dtype=np.int64)
    return rows.profile(observer, span.peers[span.starts], span.most)[: span.powers]


def _in_order(
    pool: ThreadPoolExecutor, threads: int, work: Callable[[int], T], items: Iterable[int]
) -> Iterator[T]:
    """Results in the order of the items, with at most a few pieces of work ahead, so that memory stays flat."""
    remaining = iter(items)
    waiting: list[Future[T]] = [pool.submit(work, item) for item in islice(remaining, 4 * threads)]
    while waiting:
        first = waiting.pop(0)
        wait([first], return_when=FIRST_COMPLETED)
        yield first.result()
        for item in islice(remaining, 1):
            waiting.append(pool.submit(work, item))

"""The exact loss of every pair: m[u, v] = loss of u in the view of v, after some steps with a fixed
matrix.

On graphs with a translation group one observer tells all. Otherwise every observer is computed and
certified on its own (bruit.privacy.exact.krylov), in threads or where that was chosen
(`bruit.on`); the rows modulo primes are projected once for all observers (gossip:MUF-2, MUF-3).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.privacy.exact.blas import one_blas_thread
from bruit.privacy.exact.hands import Hands
from bruit.privacy.exact.krylov import (
    Certificate,
    Leverage,
    certified,
    charge_note,
    leverage,
    nothing_heard,
)
from bruit.privacy.exact.modular import (
    PRIMES,
    Eliminated,
    Ranks,
    SharedRows,
    joint_ranks,
    krylov_ranks,
    shared_rows,
    shared_width,
)
from bruit.privacy.exact.span import KrylovSpan, checked_steps, checked_symmetry, krylov_span
from bruit.privacy.exact.twins import (
    Cells,
    Residues,
    cells_of,
    graph_residues,
    has_twins,
    singletons,
)

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

LARGEST = 20_000
"""Most peers for which an n x n matrix of losses is made."""

SHARED_BYTES = 1 << 30
"""Most memory for the shared rows modulo one prime; beyond it each observer makes its own."""

REFINEMENT, PROBES = 2e10, 32
"""Most work (peers times squared rank, summed) in 30 digits for all pairs, some tens of seconds;
observers beyond it are charged 1 and flagged. When most of so many probes need it, the others are
not tried in doubles either. Ask for one observer alone and it is refined whatever it takes."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class PairLosses:
    """Losses of all pairs in local-DP units; nan on the diagonal. Columns not `exact` are upper
    bounds."""

    m: Array  # (n, n)
    exact: Bools  # (n,)
    rank: Ints  # (n,)
    orthogonality: float
    error: float
    notes: tuple[str, ...]

    @property
    def worst(self) -> float:
        """The largest loss of any pair; 0 for a lone peer."""
        return float(np.nanmax(self.m)) if self.m.shape[0] > 1 else 0.0

    @property
    def mean(self) -> float:
        """A summary that protects no pair: the largest over v of (1/n) sum over u != v
        (gossip:MUF-3)."""
        return float((np.nansum(self.m, axis=0) / self.m.shape[0]).max())


def pairwise(
    graph: "Graph", steps: int, *, threads: int = 2, progress: Progress | None = None
) -> PairLosses:
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
        residues = graph_residues(graph)
        work = Work(
            graph=graph,
            steps=steps,
            residues=residues,
            alike=has_twins(graph, residues),
        )
        hands = Hands(pool, threads)
        return _collected(work, hands, _all_ranks(work, hands), progress)


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is computed."""

    graph: "Graph"
    steps: int
    residues: Residues
    alike: bool  # whether the graph has twins for some observer who hears of everybody

    def span(self, v: int) -> KrylovSpan | None:
        """The space of one observer: cheap to describe, too large to keep for all."""
        return krylov_span(self.graph, np.array([v]), self.steps)

    def cells(self, span: KrylovSpan) -> Cells:
        """The twins in the view of one observer."""
        if span.entries is None and not self.alike:
            return singletons(span)
        return cells_of(span, self.residues)


@dataclass(frozen=True)
class _LossesSeenBy:
    """The losses of one observer. Fresh memory for every observer would cost a tenth of the
    time."""

    work: Work
    ranks: list[Ranks | None]
    refine: bool = False

    @cached_property
    def _rooms(self) -> SimpleQueue[Array]:
        return SimpleQueue()

    def __getstate__(self) -> dict[str, Any]:
        return {"work": self.work, "ranks": self.ranks, "refine": self.refine}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __call__(self, v: int) -> Leverage:
        work, found, known = self.work, self.ranks[v], np.array([v])
        span = work.span(v)
        if span is None or found is None:
            return nothing_heard(work.graph.n, known)
        room = self._room()
        try:
            return certified(work.graph, span, found, work.cells(span), known, room, self.refine)
        finally:
            self._rooms.put(room)

    def _room(self) -> Array:
        try:
            return self._rooms.get_nowait()
        except Empty:
            return np.empty(
                max((one.total * self.work.graph.n for one in self.ranks if one), default=0)
            )


def _translated(graph: "Graph", one: Leverage, progress: Progress | None) -> PairLosses:
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
    return PairLosses(
        m=m,
        exact=exact,
        rank=rank,
        orthogonality=certificate.orthogonality,
        error=certificate.error,
        notes=(certificate.note,),
    )


def _collected(
    work: Work, hands: Hands, ranks: list[Ranks | None], progress: Progress | None
) -> PairLosses:
    n, view = work.graph.n, _LossesSeenBy(work, ranks)
    m = np.empty((n, n), order="F")
    certificates: dict[int, Certificate] = {}
    exact = np.ones(n, dtype=bool)

    def note(v: int, seen: Leverage) -> None:
        m[:, v], exact[v] = seen.loss, seen.status == "exact"
        certificates[v] = seen.certificate

    order = sorted(range(n), key=lambda v: v % max(1, n // PROBES) != 0)  # the probes first
    probes, others = order[:PROBES], order[PROBES:]
    for v, seen in zip(probes, hands.in_order(view, probes), strict=True):
        note(v, seen)
        if progress is not None:
            progress(len(certificates), n)
    if others and _hopeless(work, ranks, exact[probes]):
        for v in others:
            note(v, _untried(work, ranks[v], v))
        others = []
    before = len(certificates)
    said = None if progress is None else lambda done, _: progress(before + done, n)
    for v, seen in zip(others, hands.in_order(view, others, said), strict=True):
        note(v, seen)
    again, refined = _affordable(work, ranks, exact), _LossesSeenBy(work, ranks, refine=True)
    for v, seen in zip(again, hands.in_order(refined, again), strict=True):
        note(v, seen)
    np.fill_diagonal(m, np.nan)
    return _with_certificates(m, exact, certificates)


def _with_certificates(m: Array, exact: Bools, certificates: dict[int, Certificate]) -> PairLosses:
    """The losses, with the worst of the certificates of observers whose losses are exact."""
    good = [certificate for v, certificate in certificates.items() if exact[v]]
    return PairLosses(
        m=m,
        exact=exact,
        rank=np.array([certificates[v].rank for v in range(len(exact))], np.int64),
        orthogonality=max((certificate.orthogonality for certificate in good), default=0.0),
        error=max((certificate.error for certificate in good), default=0.0),
        notes=tuple(
            f"observer {v}: {certificates[v].note}" for v in np.flatnonzero(~exact).tolist()
        ),
    )


def _hopeless(work: Work, ranks: list[Ranks | None], exact: Bools) -> bool:
    """Whether most probes failed in doubles and the rest, done in 30 digits, would pass the
    allowance."""
    cost = sum(work.graph.n * float(found.total) ** 2 for found in ranks if found is not None)
    return bool(np.mean(exact) < 0.5) and cost > REFINEMENT


def _untried(work: Work, ranks: Ranks | None, v: int) -> Leverage:
    """Everybody the observer hears of is charged 1."""
    known, span = np.array([v]), work.span(v)
    if span is None or ranks is None:
        return nothing_heard(work.graph.n, known)
    cells = work.cells(span)
    if ranks.total == cells.count:
        return certified(work.graph, span, ranks, cells, known)
    loss = np.zeros(work.graph.n)
    loss[span.peers] = cells.spread(np.ones(cells.count))
    loss[known] = 1.0
    rank = ranks.total + 1
    note = f"too ill-conditioned for doubles, as most probes were: {charge_note(span, cells)}"
    return Leverage(
        loss,
        rank,
        "upper bound",
        Certificate(
            rank=rank, modular=ranks.modular, proven=False, orthogonality=0.0, error=1.0, note=note
        ),
    )


def _affordable(work: Work, ranks: list[Ranks | None], exact: Bools) -> list[int]:
    """The observers to be done again in 30 digits, cheapest first, as many as the allowance pays
    for."""
    costs = {
        int(v): work.graph.n * float(found.total) ** 2
        for v in np.flatnonzero(~exact)
        if (found := ranks[int(v)]) is not None
    }
    chosen, total = [], 0.0
    for v, cost in sorted(costs.items(), key=lambda item: item[1]):
        total += cost
        if total > REFINEMENT:
            break
        chosen.append(v)
    return chosen


def _all_ranks(work: Work, hands: Hands) -> list[Ranks | None]:
    """Ranks of every observer; the second prime only for those whom the first does not settle."""
    graph, n = work.graph, work.graph.n
    if 4 * work.steps * n * shared_width(graph, work.steps) > SHARED_BYTES:
        return list(hands.in_order(partial(_own_ranks, work), range(n)))
    words: list[dict[int, Eliminated]] = [{} for _ in range(n)]
    most, starts = [-1] * n, np.diff(graph.weights.indptr) - 1
    unsettled = list(range(n))
    for prime in PRIMES:
        if not unsettled:
            break
        task = partial(_shared_word, work, shared_rows(graph, work.steps, prime))
        for v, (largest, word) in zip(unsettled, hands.in_order(task, unsettled), strict=True):
            most[v], words[v][prime] = largest, word
        unsettled = [v for v in unsettled if most[v] > words[v][prime].profile.max(initial=-1)]
    return [
        None if most[v] < 0 else joint_ranks(words[v].__getitem__, most[v], starts[v])
        for v in range(n)
    ]


def _own_ranks(work: Work, observer: int) -> Ranks | None:
    span = work.span(observer)
    return None if span is None else krylov_ranks(work.graph, span)


def _shared_word(work: Work, rows: SharedRows, observer: int) -> tuple[int, Eliminated]:
    """The largest possible rank (-1 when nothing is heard) and what one prime says."""
    span = work.span(observer)
    if span is None:
        return -1, Eliminated(np.zeros(0, dtype=np.int64))
    return span.most, rows.eliminated(observer, span)

"""Reconstruction from gossip: which values curious peers can compute, known beforehand, and their
values afterwards.

    U = reduced row echelon form of the knowledge matrix K = L^-1 U;   x_v is known   iff   some row of U is e_v

and then x_v = (L Y)_row; the other rows of U are relations among the hidden values, and leak too
(gossip:REC-2, arXiv: 2402.10001). `reconstructible` predicts from the graph alone, in exact
arithmetic: floating elimination fails after some ten steps, since the rows of W^t become parallel.
`reconstruct` solves for the values a run let its observers see.

Threat model (gossip:ATK-0): passive peers who pool what they received; graph, weights and schedule
are known to them. Exactly as many peers are exposed as have loss 1 in the account of
bruit.privacy.theorems. With noise added before the first message, what is reconstructed is the
noisy value; with dithers in the messages (fp:FP-1), the noisy value up to an error whose deviation
is known: that of the dithers, amplified by the elimination (bruit.adversary.attacks.dithers).

Certainty: exposure of all reached peers is proven. Otherwise two primes near 2^24 are asked, the
one with the larger rank is believed, and when the ranks agree a peer counts as exposed only if both
say so: wrong about once in 10^9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from bruit.adversary.attacks.dithers import Drawn
from bruit.adversary.attacks.knowledge import Aggregation, Knowledge, knowledge
from bruit.adversary.attacks.views import observed
from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.how_many import how_many
from bruit.privacy.exact import PRIMES, THREE, from_residues, one_blas_thread
from bruit.tasks.task import Task
from bruit.trace import View

RELIABLE = 1e-6
"""A recovered value is called reliable when rounding may have moved it by less than this, relative
to what was seen."""

MISSED = 1e-6
"""The chance that dithers move some number of an attack further than its tolerance."""


@dataclass(frozen=True)
class Relation:
    """A linear form of hidden values that the observers know; weights are None when their fractions
    are large."""

    peers: tuple[int, ...]
    weights: tuple[Fraction, ...] | None

    def __str__(self) -> str:
        if self.weights is None:
            return f"a combination of the values of {len(self.peers)} peers, {self.peers[0]} to {self.peers[-1]}"
        terms = [
            f"{'-' if w < 0 else '+'} {'' if abs(w) == 1 else f'{abs(w)} '}x{v}"
            for v, w in zip(self.peers, self.weights, strict=True)
        ]
        return " ".join(terms).removeprefix("+ ")


@dataclass(frozen=True, kw_only=True)
class Reconstruction:
    """Who can be reconstructed, the observers themselves included; `hidden` are reached by
    messages, yet safe."""

    observers: Ints
    peers: Ints
    hidden: Ints
    rank: int
    proven: bool
    known: Knowledge = field(repr=False)

    @property
    def fraction(self) -> float:
        """The part of all peers that is reconstructible."""
        return self.peers.size / self.known.n

    @property
    def taxonomy(self) -> dict[str, str]:
        """The four fields of gossip:ATK-0."""
        return {
            "goal": "data reconstruction",
            "behaviour": "passive (honest but curious)",
            "knowledge": "white box: graph, weights and schedule",
            "view": "single peer"
            if self.observers.size == 1
            else f"coalition of {self.observers.size} peers",
        }

    @property
    def relation_count(self) -> int:
        """How many independent relations among hidden values remain."""
        return self.rank - int(self.peers.size)

    def relations(self) -> tuple[Relation, ...]:
        """The other rows of the reduced form, peers in increasing order: what leaks about the
        hidden ones."""
        if self.relation_count == 0:
            return ()
        places = np.flatnonzero(np.isin(self.known.columns, self.hidden))
        forms = [self.known.echelon(prime).reduced(places) for prime in THREE]
        best = max(range(len(THREE)), key=lambda k: (forms[k][1].size, -k))
        rows, pivots = forms[best]
        agreed = all(np.array_equal(other, pivots) for _, other in forms)
        found = []
        for i, row in enumerate(rows):
            where = np.flatnonzero(row)
            peers = tuple(self.known.columns[places[where]].tolist())
            found.append(
                Relation(peers, _lifted([form[i, where] for form, _ in forms]) if agreed else None)
            )
        return tuple(found)


def _lifted(residues: list[Array]) -> tuple[Fraction, ...] | None:
    """The fractions with these residues modulo the three primes, if all of them are small."""
    weights = []
    for entry in np.stack(residues, axis=1).astype(np.int64).tolist():
        weight = from_residues(entry, THREE)
        if weight is None:
            return None
        weights.append(weight)
    return tuple(weights)


def reconstructible(
    graph: Graph | GraphSequence | str,
    observers: Sequence[int] | Ints,
    steps: int,
    aggregation: Aggregation = "messages",
) -> Reconstruction:
    """The peers whose values the observers (a set) can compute after so many steps; needs the graph
    only.

    aggregation="sums": neighborhoods use secure aggregation, so that an observer sees its weighted
    sum only. Peers of other components are never reached; without steps only the observers know
    themselves.

    >>> from bruit.graphs import path
    >>> reconstructible(path(4), [0], steps=2).peers.tolist()
    [0, 1, 2]
    """
    return decide(knowledge(graph, observers, steps, aggregation))


def defence(
    found: Reconstruction,
    sums: Reconstruction | None = None,
    epsilon: float = 1.0,
    delta: float = 1e-6,
) -> str:
    """What would have prevented it, in one sentence; `sums` is the same question under secure
    aggregation."""
    from bruit.privacy.toolbox.gaussian import mu_of

    if found.rank == found.observers.size:
        return "Nothing was learned about anybody, so nothing needs preventing."
    text = (
        f"Gaussian noise of {1 / mu_of(epsilon, delta):.3g} times the sensitivity, added by every"
        f" peer before its first message, would leave at most epsilon {epsilon:g} at delta"
        f" {delta:g}, user level, against these observers"
    )
    if sums is not None:
        text += (
            f"; secure aggregation in every neighborhood would by itself expose {sums.peers.size}"
            f" instead of {how_many(found.peers.size, 'peer')} (and"
            f" {how_many(sums.relation_count, 'relation')} among hidden ones)"
        )
    return f"{text}."


def decide(known: Knowledge) -> Reconstruction:
    """The reconstructible peers of any knowledge matrix."""
    first = known.echelon(PRIMES[0])
    rank, proven = first.rank, first.rank == known.size
    if proven:
        exposed: Bools = np.ones(known.columns.size, dtype=bool)
    else:
        second = known.echelon(PRIMES[1])
        rank = max(first.rank, second.rank)
        believed = [form.exposed() for form in (first, second) if form.rank == rank]
        exposed = np.logical_and.reduce(believed)
    everybody = np.zeros(known.n, dtype=bool)
    everybody[known.columns[exposed]] = True
    everybody[known.observers] = True
    hidden = np.setdiff1d(known.columns[~exposed], known.observers)
    return Reconstruction(
        observers=known.observers,
        peers=np.flatnonzero(everybody),
        hidden=hidden,
        rank=rank + known.known,
        proven=proven,
        known=known,
    )


@dataclass(frozen=True, kw_only=True)
class Recovered:
    """Values computed from a view: nan for peers that are not reconstructible.

    `error` is the standard error from the others' dithers and what rounding may have moved each
    value by, both amplified by the conditioning of K. `tolerance`: no number is further off, up to
    a chance of 1e-6 for all of them together (for rounding, relative to what was seen). `reliable`
    says where that tells something: where the tolerance is below the noise that hides the value
    anyway, or the rounding small. `residual` is the largest |K x
    - Y|, relative to the largest number seen.
    """

    prediction: Reconstruction
    values: Array  # (n, d)
    error: Array  # (n,)
    tolerance: Array  # (n,)
    reliable: Bools  # (n,)
    residual: float
    solution: Array = field(
        repr=False
    )  # (n, d) the least-norm solution: right on everything the observers know

    def relation_values(self) -> tuple[tuple[Relation, Array], ...]:
        """The relations with exact weights, and the value each was found to have."""
        return tuple(
            (
                relation,
                np.array([float(w) for w in relation.weights])
                @ self.solution[list(relation.peers)],
            )
            for relation in self.prediction.relations()
            if relation.weights is not None
        )

    def score(self, truth: Task | Array, tolerance: float = 1e-6) -> RecoveryScore:
        """Compare with the true values: a task's, or an array (n, d)."""
        true = (
            truth.value(np.arange(truth.peers))
            if isinstance(truth, Task)
            else np.asarray(truth, dtype=np.float64)
        )
        errors = self._errors(true)
        scale = max(1.0, float(np.abs(true).max()))
        return RecoveryScore(errors, np.flatnonzero(errors <= tolerance * scale), tolerance)

    def score_noisy(self, released: Array) -> RecoveryScore:
        """Compare with the noisy values that peers put in (`starting_values`): those are what
        dithers blur.

        A value is right if it is reliable and as close as its own tolerance says; without dithers
        as in `score`.
        """
        if self.prediction.known.sent is None:
            return self.score(released)
        errors = self._errors(np.asarray(released, dtype=np.float64))
        right = np.flatnonzero(self.reliable & (errors <= self.tolerance))
        return RecoveryScore(errors, right, float(np.nanmax(self.tolerance[right], initial=0.0)))

    def _errors(self, true: Array) -> Array:
        if true.shape != self.values.shape:
            raise ConfigError(
                f"the true values have shape {true.shape}, the recovered ones {self.values.shape}"
            )
        errors = np.abs(self.values - true).max(axis=1)
        errors[self.prediction.observers] = np.nan
        return np.asarray(errors)


@dataclass(frozen=True)
class RecoveryScore:
    """How good an attack was: the largest error in each peer's value (nan: no value, or an
    observer's own).

    `tolerance`: relative to the largest true value; of noisy values, the largest that a right one
    was allowed."""

    errors: Array  # (n,)
    recovered: Ints  # the peers, observers aside, whose values are right to the tolerance
    tolerance: float

    @property
    def fraction(self) -> float:
        """The part of the attempted values that is right; nan without any."""
        attempts = int(np.count_nonzero(~np.isnan(self.errors)))
        return self.recovered.size / attempts if attempts else float("nan")


def reconstruct(
    view: View, known: Knowledge, own: Array, dithers: Drawn | None = None
) -> Recovered:
    """Values of the reconstructible peers, by least squares on what the observers received.

    `known` is the observers' knowledge matrix (`run_knowledge(run, observers)`), `own` what they
    put in themselves, one row each in increasing order: their true values, or the noisy ones if
    noise was added (`starting_values`). `dithers` are those of their own messages (`own_dithers`),
    taken out; without them they blur the answer as all others do. Least squares with equal weights:
    on graphs tried, standard errors were within 15 % of the best weights'.
    """
    own, drawn = np.asarray(own, dtype=np.float64), dithers or {}
    right = observed(view, known, own)
    if known.sent is not None and drawn:
        right[known.observers.size :] -= known.sent.known(drawn, len(known.keys), right.shape[1])
    prediction = decide(known)
    others = np.setdiff1d(known.columns, known.observers)
    rows = known.rows()
    equations = (
        right[known.observers.size :] - rows[known.observers.size :][:, known.observers] @ own
    )
    solution, error, spread = (
        np.zeros((known.n, right.shape[1])),
        np.zeros(known.n),
        np.zeros(known.n),
    )
    solution[known.observers] = own
    most = prediction.rank - known.observers.size
    solution[others], error[others], inverse = _solved(
        rows[known.observers.size :][:, others], equations, most
    )
    if known.sent is not None:
        spread[others] = known.sent.spread(inverse, drawn)
    seen = max(1.0, float(np.abs(right).max(initial=0.0)))
    exposed = np.isin(np.arange(known.n), prediction.peers)
    residual = float(np.abs(rows @ solution - right).max(initial=0.0)) / seen
    values = np.where(exposed[:, None], solution, np.nan)
    error = np.where(exposed, error * seen, np.nan)
    tolerance = np.where(exposed, RELIABLE * seen, np.nan)
    reliable = exposed & (error <= RELIABLE * seen)
    if known.sent is not None:
        error = error + spread
        tolerance = _deviations(values.size) * error
        reliable = exposed & (tolerance <= known.sent.grid.noise)
    return Recovered(
        prediction=prediction,
        values=values,
        error=error,
        tolerance=tolerance,
        reliable=reliable,
        residual=residual,
        solution=solution,
    )


def _deviations(numbers: int) -> float:
    """How many deviations none of so many normal numbers leaves, up to MISSED."""
    from scipy.special import ndtri

    return -float(ndtri(MISSED / (2 * max(1, numbers))))


def _solved(rows: Array, right: Array, rank: int) -> tuple[Array, Array, Array]:
    """The least-norm least-squares solution, how far rounding may move each unknown per unit of
    what was seen, and how each depends on what was told  # (unknowns, rows).

    No more directions than the certified rank are believed, and none below the rounding of the
    largest: a value that needs a lost direction is off by the part of it that is missing.
    """
    if min(rows.shape) == 0:
        return (
            np.zeros((rows.shape[1], right.shape[1])),
            np.zeros(rows.shape[1]),
            np.zeros(rows.shape[::-1]),
        )
    with one_blas_thread():
        u, s, v = np.linalg.svd(rows, full_matrices=False)
        kept = min(rank, int(np.count_nonzero(s > max(rows.shape) * np.finfo(float).eps * s[0])))
        u, s, v = u[:, :kept], s[:kept], v[:kept]
        rounding = np.finfo(float).eps * np.sqrt(len(rows)) * np.linalg.norm(v / s[:, None], axis=0)
        missing = np.linalg.norm(np.eye(rows.shape[1]) - v.T @ v, axis=0)
        solution = v.T @ ((u.T @ right) / s[:, None])
        return solution, np.asarray(rounding + missing), v.T @ (u / s).T

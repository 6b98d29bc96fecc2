"""The impulse oracle: unit data and unit noises pushed through the code that runs, against what is
claimed of it.

Every answer of the door is a source of its own: a release is a unit of data and a unit of noise,
other noise a unit of noise, also what is shared by two peers or drawn for a message. The algorithm
runs on these symbols in the engine it is run in, with its faults, meetings, late messages and
public draws; what observers receive is then Y = A s + B xi, rows by rows, in ideal arithmetic. That
the code is linear is not believed but checked, by superposition on other numbers. The loss of u is
max d^T Q_u d over shifts |d_k| <= 1 of its releases, Q_u = A_u^T (B B^T)^+ A_u (gossip:LG-1), when
the answers do not react to the models. Data of that kind exist (linear losses), so a claim below
this is false: for adaptive algorithms the oracle refutes, it does not prove. Numbers are rounded
down: directions whose noise is within 1e-6 of none are left out, unless they have none at all.
Dense algebra: small graphs only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.door import Address
from bruit.arrays import Array, Bools
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.events import Exact, GaussianEvent, Mask
from bruit.privacy.ledger import Ledger
from bruit.randomness import Dice, Replay
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Engine, Job, Outcome
from bruit.runs.engines.forms import Forms, SourceDoor
from bruit.runs.result import Run
from bruit.trace import Trace

CLEAR, NOTHING = 1e-6, 1e-12
"""Noise of a direction, relative to the largest, that is believed; and what counts as no noise at
all."""

TRIED = 3  # numbers on which superposition is tried
LENGTH, SWEEPS = 8, 60


class ImpulseDoor(SourceDoor):
    """Symbols for every question: a linear loss has the same gradient wherever it is asked."""

    def prox(self, at: Address, x: Array, rho: Array) -> Array:
        return x + self._fresh(at.ids, True)

    def envelope_gradient(self, at: Address, x: Array, rho: Array, level: float = 1.0) -> Array:
        if level != 1.0:
            self.levels.update(
                dict.fromkeys(range(len(self.owners), len(self.owners) + len(at.ids)), level)
            )
        return self._fresh(at.ids, True)

    def descent(self, at: Address, x: Array, rate: float, count: int, batch: int | None) -> Array:
        return self._fresh(at.ids, True)


@dataclass(frozen=True, kw_only=True)
class OracleRun:
    """What is run: an algorithm on a graph in an engine, or again along the trace of a run."""

    algorithm: Algorithm[Any]
    graph: Graph | GraphSequence
    steps: int
    engine: Engine
    seed: int
    given: Trace | None

    def execute(
        self, observers: tuple[int, ...], width: int, answers: Array | None
    ) -> tuple[ImpulseDoor, Outcome]:
        dice: Dice = Replay(self.seed)
        door = ImpulseDoor(width=width, dice=dice, answers=answers)
        job = Job(
            algorithm=self.algorithm,
            graph=self.graph,
            door=door,
            dice=dice,
            steps=self.steps,
            ledger=Ledger(peers=self.graph.n),
            watch=frozenset(observers),
            given=self.given,
        )
        return door, self.engine.execute(job)


class ReceivedSymbols(NamedTuple):
    """Rows of symbols that observers received, and the numbers beside them, which must be
    public."""

    forms: Array  # (rows, width)
    public: Array  # (numbers,)


def _received_symbols(
    protocol: OracleRun, outcome: Outcome, observers: tuple[int, ...], width: int
) -> ReceivedSymbols:
    rows = [message.row for message in outcome.trace.received if message.sender not in observers]
    if getattr(protocol.algorithm, "published", False) and len(outcome.trace.meetings.b):
        last = int(outcome.trace.meetings.b[-1])
        rows.append(protocol.algorithm.estimate(outcome.state)[last : last + 1])
    forms, public = [np.zeros((0, width))], [np.zeros(0)]
    for row in rows:
        for part in (row,) if isinstance(row, np.ndarray) else row:
            found = np.asarray(part)
            symbols = found.ndim == 2 and found.shape[1] >= width and found.dtype.kind == "f"
            if symbols:
                forms.append(found[:, :width])
            public.append(np.ravel(found[:, width:] if symbols else found).astype(np.float64))
    return ReceivedSymbols(np.concatenate(forms), np.concatenate(public))


def impulse_forms(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    steps: int,
    observers: Iterable[int],
    *,
    engine: Engine | None = None,
    seed: int = 0,
    given: Trace | None = None,
    sizes: Sequence[float] = (),
) -> Forms:
    """What the observers see as Y = A s + B xi, their own releases and noises included; with
    `sizes`, in units of the largest noise.

    Refused with ConfigError when messages are not linear in what the door answers."""
    chosen = tuple(sorted({int(v) for v in observers}))
    protocol = OracleRun(
        algorithm=algorithm,
        graph=graph,
        steps=steps,
        engine=Bulk() if engine is None else engine,
        seed=seed,
        given=given,
    )
    count = len(protocol.execute(chosen, 1, None)[0].owners)
    door, outcome = protocol.execute(chosen, count, None)
    heard = _received_symbols(protocol, outcome, chosen, count)
    numbers = Replay(17).normal("superposition", np.arange(count), 0, 0, TRIED)
    again = _received_symbols(protocol, protocol.execute(chosen, TRIED, numbers)[1], chosen, TRIED)
    if not _superposed(heard, again, numbers):
        raise ConfigError(
            f"what {algorithm.name()} says is not linear in what the door answers, so impulses do"
            " not tell what it says otherwise"
        )
    stacked = np.concatenate([np.eye(count)[door.known_to(chosen)], heard.forms])
    data = np.array(door.releases, bool)
    noise = np.array([door.levels.get(source, 1.0) for source in range(count)])
    if len(sizes):
        noise[data] *= np.array(sizes)[np.array(door.owners, np.int64)[data]] / max(sizes)
    return Forms(stacked[:, data], stacked * noise, np.array(door.owners, np.int64)[data])


def _superposed(symbols: ReceivedSymbols, numbers: ReceivedSymbols, answers: Array) -> bool:
    """Whether other answers give what the symbols say, and public numbers stay what they are."""
    expected = symbols.forms @ answers
    if expected.shape != numbers.forms.shape or symbols.public.shape != numbers.public.shape:
        return False
    scale = 1.0 + float(np.abs(expected).max(initial=0.0))
    return bool(
        np.allclose(expected, numbers.forms, rtol=0, atol=1e-7 * scale)
        and np.array_equal(symbols.public, numbers.public)
    )


def impulse_losses(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    steps: int,
    observers: Iterable[int],
    *,
    engine: Engine | None = None,
    seed: int = 0,
    given: Trace | None = None,
    sizes: Sequence[float] = (),
) -> Array:
    """The loss that every peer really has in the joint view of the observers, in local-DP units,
    never above the truth.

    `engine` runs the symbols with the faults its seed draws (Bulk by default); `given` replays the
    trace of a run. The observers themselves are nan. The squared mu is loss / noise_multiplier**2,
    the multiplier that of the largest noise where peers have `sizes` of their own  # (n,).

    >>> from bruit.algorithms.gossip.averaging import Averaging
    >>> from bruit.graphs import path
    >>> impulse_losses(Averaging(), path(3), 2, [0]).round(6).tolist()
    [nan, 1.0, 1.0]
    """
    chosen = tuple(sorted({int(v) for v in observers}))
    forms = impulse_forms(
        algorithm, graph, steps, chosen, engine=engine, seed=seed, given=given, sizes=sizes
    )
    seen, bare = _whitened(forms)
    losses = np.full(graph.n, np.nan)
    for u in np.setdiff1d(np.arange(graph.n), chosen).tolist():
        own = np.flatnonzero(forms.owner == u)
        losses[u] = np.inf if bare[own].any() else _reached(seen[:, own].T @ seen[:, own])
    return losses


def _whitened(forms: Forms) -> tuple[Array, Bools]:
    """A in directions of the view that clearly have noise, this scaled to 1, and which columns show
    where none is."""
    norms = np.linalg.norm(forms.B, axis=1)
    scale = 1.0 / np.where(norms > 0.0, norms, 1.0)
    a, b = forms.A * scale[:, None], forms.B * scale[:, None]
    u, s, _ = np.linalg.svd(b, full_matrices=True)
    sizes = np.zeros(len(b))
    sizes[: len(s)] = s
    most = float(sizes.max(initial=0.0)) or 1.0
    noisy, silent = sizes > CLEAR * most, sizes <= NOTHING * most
    bare = np.linalg.norm(u[:, silent].T @ a, axis=0) > CLEAR * (1.0 + np.linalg.norm(a, axis=0))
    return (u[:, noisy].T @ a) / sizes[noisy][:, None], bare


def _reached(form: Array) -> float:
    """sum_kl Q_kl <v_k, v_l> of the best unit vectors that sweeps of v_k <- normalize(sum_{l != k}
    Q_kl v_l) find."""
    count = len(form)
    vectors = np.cos(np.outer(np.arange(1, count + 1), np.arange(1, LENGTH + 1)))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    off = form - np.diag(np.diagonal(form))
    for _ in range(SWEEPS):
        for k in range(count):
            pull = off[k] @ vectors
            length = float(np.linalg.norm(pull))
            if length > 0:
                vectors[k] = pull / length
    return max(float(form.sum()), float(np.sum(form * (vectors @ vectors.T))))


class TooLowClaim(NamedTuple):
    """A claim below what impulses reach: squared mu of one peer in one view."""

    peer: int
    observers: tuple[int, ...]
    claimed: float
    reached: float


def broken_claims(
    run: Run, views: Iterable[Iterable[int]], engine: Engine | None = None, tolerance: float = 1e-9
) -> list[TooLowClaim]:
    """Where the charge of a run is below what impulses reach along its trace (or in an engine), for
    some views.

    ConfigError when its messages are not linear, its noise is not Gaussian, or its releases are
    of secret samples: no mu is the cost of these. Runs that follow another are charged for both;
    the oracle pushes impulses through the last one."""
    if run.algorithm.schedule.masked:
        raise ConfigError(
            "words modulo 2^64 are no linear forms, so that impulses say nothing of them"
        )
    if run.facts().sampled:
        raise ConfigError("a coin decides which records are in a release, which no impulse follows")
    sizes = () if run.privacy is None else run.privacy.deviations()
    unit = getattr(run.privacy, "noise_multiplier", 0.0)
    if sizes and run.privacy is not None:
        unit = max(sizes) / run.privacy.sensitivity
    lines = run.ledger.events
    if not unit or any(not isinstance(one, GaussianEvent | Mask | Exact) for one in lines):
        raise ConfigError(
            "impulses are compared with claims about Gaussian noise, and this run has none, or other"
            " noise besides"
        )
    accountant, found = run.accountant(), []
    for view in views:
        observers = tuple(sorted({int(v) for v in view}))
        given = run.trace if engine is None else None
        losses = impulse_losses(
            run.algorithm,
            run.graph,
            run.steps,
            observers,
            engine=engine,
            seed=run.seed,
            given=given,
            sizes=sizes,
        )
        claimed, reached = accountant.charge(observers).energy, losses / unit**2
        low = np.flatnonzero(reached > claimed * (1 + tolerance) + tolerance / unit**2)
        found += [
            TooLowClaim(u, observers, float(claimed[u]), float(reached[u])) for u in low.tolist()
        ]
    return found

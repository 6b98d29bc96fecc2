"""An audit: many paired runs on neighboring data, the largest epsilon they prove, and what was claimed.

The claim is refuted when a lower bound lies above it, at the delta asked for or at any other one: a guarantee is a
whole curve of (epsilon, delta), and one false point refutes it. A true claim is refuted with probability at most
1 - confidence over the noise of the trials (the error is shared among all bounds tried). An audit that does not refute
proves nothing; bugs planted in it say what it would have seen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import TaskDoor
from bruit.arrays import Array
from bruit.audits.bounds import (
    Bound,
    check_confidence,
    count_against,
    gaussian_fit,
    needed_for_fit,
    needed_trials,
)
from bruit.audits.defence import defence, noise_for
from bruit.audits.planted import PLANTED, Bug
from bruit.audits.power import CONFIDENCE as POWER_CONFIDENCE
from bruit.audits.power import Planted, power
from bruit.audits.scores import FEATURES, Score, learned_score, likelihood_score, shape_of
from bruit.audits.trials import Views, paired_views
from bruit.audits.worlds import FAR, World, worlds
from bruit.engines.bulk import Bulk
from bruit.engines.engine import Job
from bruit.errors import ConfigError
from bruit.experiment import run
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.mechanisms import Mechanism, RandomizedResponse, RecordNoise
from bruit.privacy.guarantee import REAL, Guarantee, Hypothesis
from bruit.privacy.ledger import Ledger
from bruit.privacy.network.blas import one_blas_thread
from bruit.privacy.profile import EventsProfile, check_delta
from bruit.randomness import RUN_BITS, Replay
from bruit.result import Run
from bruit.tasks.task import Task
from bruit.trace import Trace

CONFIDENCE = 1 - 1e-6
DELTAS = (1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.3)
"""Where a claim is also asked what it says: counts see most at a large delta."""

WIDEST = 16  # numbers in the rows of synthetic worlds
WORK = 1 << 31  # numbers moved by the trials of one world, at most; a larger protocol gets fewer trials there
ATTACKER = "goal: tell neighboring data apart; passive; white box (graph, weights and algorithm known); view: {view}"


@dataclass(frozen=True)
class Evidence:
    """One lower bound: on which data, by which score, and what was claimed at its delta."""

    world: str
    score: str
    bound: Bound
    claimed: float

    @property
    def refutes(self) -> bool:
        return self.bound.epsilon > self.claimed * (1 + 1e-9)

    def __str__(self) -> str:
        return (f"epsilon >= {self.bound.epsilon:.4g} at delta = {self.bound.delta:g}, where {self.claimed:.4g} was"
                f" claimed ({self.bound.method}, {self.score} score, data: {self.world})")  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """What one check of an audit found: "refuted", "not refuted", or "not asked" with the reason."""

    check: str
    verdict: str
    sentence: str

    @property
    def refuted(self) -> bool:
        return self.verdict == "refuted"

    def __str__(self) -> str:
        return f"{self.check}: {self.verdict}; {self.sentence}"


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What was claimed, what was proven against it, and how hard it was tried. `gaussian_fit` is nan where scores need
    not be normal, and then the fit says nothing."""

    of: str
    seen_by: str
    theorem: str
    spec: str
    status: str
    level: str
    claimed: float
    clopper_pearson: float
    gaussian_fit: float
    delta: float
    confidence: float
    verdict: str
    evidence: tuple[Evidence, ...]
    planted: tuple[Planted, ...]
    trials: int
    seconds: float
    scores: tuple[str, ...]
    worlds: tuple[str, ...]
    attacker: str
    defence: str = ""
    engine: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def lower(self) -> float:
        """The largest epsilon proven by the trials at the delta asked for."""
        return max(self.clopper_pearson, 0.0 if math.isnan(self.gaussian_fit) else self.gaussian_fit)

    @property
    def refuted(self) -> bool:
        return self.verdict == "refuted"

    @property
    def power(self) -> float:
        """The power against noise half as large: at least this fraction of such audits would refute the claim; nan when
        nothing was planted."""
        return next((bug.power for bug in self.planted if bug.bug == HALF), math.nan)

    @property
    def reason(self) -> str:
        """What was refuted, on which pair, with what confidence; empty for a claim that stands."""
        parts = [str(found) for found in self.findings if found.refuted]
        worst = max((found for found in self.evidence if found.refutes), default=None,
                    key=lambda found: found.bound.epsilon - found.claimed)  # fmt: skip
        if worst is not None:
            parts.insert(0, f"about {self.of} against {self.seen_by} the trials prove {worst}, confidence"
                         f" {self.confidence:.7g}")  # fmt: skip
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        found = asdict(self)
        found["evidence"] = [{**asdict(one), "refutes": one.refutes} for one in self.evidence]
        return {**found, "lower": self.lower, "power": self.power, "reason": self.reason}

    def __str__(self) -> str:
        fit = "does not apply" if math.isnan(self.gaussian_fit) else f"epsilon >= {self.gaussian_fit:.4g}"
        lines = [
            f"{self.verdict}: epsilon = {self.claimed:.4g} at delta = {self.delta:g}, {self.level} level, was claimed"
            f" for {self.of} against {self.seen_by}",
            *([f"refuted because {self.reason}"] if self.refuted else []),
            f"  claimed by {self.theorem} ({self.spec}), {self.status}",
            *([f"  ran on {self.engine}"] if self.engine else []),
            f"  {self.trials} paired runs on each of: {', '.join(self.worlds)}; confidence {self.confidence:.7g},"
            f" {self.seconds:.1f} s, scores: {', '.join(self.scores)}",
            f"  Clopper-Pearson: epsilon >= {self.clopper_pearson:.4g}",
            f"  Gaussian fit: {fit}",
            *(f"  planted: {bug}" for bug in self.planted),
            *(f"  check: {found}" for found in self.findings),
            f"  {self.attacker}",
            *([self.defence] if self.defence else []),
        ]  # fmt: skip
        return "\n".join(lines)


HALF, CLIPLESS = PLANTED


def audit(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence | str, mechanism: Mechanism | None, of: int,
    seen_by: int | Iterable[int] | None, steps: int, trials: int = 10_000, delta: float = 1e-6,
    confidence: float = CONFIDENCE, claimed: Guarantee | None = None, seed: int = 0, given: Trace | None = None,
    dim: int = 1, target: float | None = None, progress: Callable[[int, int], None] | None = None,
    plant: Mapping[str, Bug] | None = None,
) -> Audit:  # fmt: skip
    """Try to refute what is claimed about peer `of` in the view of `seen_by` (a peer, a set, everybody else).

    `claimed` is by default the guarantee the library itself gives for this run; a guarantee of meetings or of a walk
    holds for those of the same seed, or of the trace `given`. `target` is the epsilon the defence aims at. `plant`:
    bugs whose detection is measured, by name; noise half as large by default.
    """
    graph = named_graph(graph)
    places = worlds(mechanism, graph.n, of, dim, _smoothness(algorithm, None))
    done = run(algorithm, graph, places[0].data, privacy=mechanism, steps=steps, seed=seed, evaluate_every=0,
               given=given)  # fmt: skip
    return _audited(done, places, places[0].data, of, seen_by, trials, delta, confidence, claimed,
                    HALVED if plant is None else plant, target, progress)  # fmt: skip


def audit_run(
    done: Run, task: Task, of: int, seen_by: int | Iterable[int] | None, trials: int = 10_000, delta: float = 1e-6,
    confidence: float = CONFIDENCE, claimed: Guarantee | None = None, plant: Mapping[str, Bug] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:  # fmt: skip
    """Try to refute what a run on this task claims: its graph, algorithm, noise, and whatever its engine made happen
    (faults, late messages, meetings) are repeated on neighboring data of its own shape, its records among them."""
    width = min(task.dim, WIDEST)
    places = worlds(done.privacy, done.n, of, width, _smoothness(done.algorithm, task), task)
    return _audited(done, places, task, of, seen_by, trials, delta, confidence, claimed,
                    PLANTED if plant is None else plant, None, progress)  # fmt: skip


def _audited(done: Run, places: Sequence[World], own: Task, of: int, seen_by: int | Iterable[int] | None, trials: int,
             delta: float, confidence: float, claimed: Guarantee | None, plant: Mapping[str, Bug],
             target: float | None, progress: Callable[[int, int], None] | None) -> Audit:  # fmt: skip
    begin = time.perf_counter()
    check_delta(delta)
    check_confidence(confidence)
    observers = observing(done.n, of, seen_by)
    ours = done.guarantee(of, None if seen_by is None else set(observers), delta)
    trying = Trials(done, observers, of, ours if claimed is None else claimed, delta, confidence, trials)
    return trying.audited(places, plant, begin, own, target, ours, progress)


HALVED: Mapping[str, Bug] = {HALF: PLANTED[HALF]}


@dataclass(frozen=True, eq=False)
class Trials:
    """The paired trials of one claim about one pair, on several worlds."""

    rehearsal: Run
    observers: tuple[int, ...]
    of: int
    claim: Guarantee
    delta: float
    confidence: float
    trials: int

    def audited(self, places: Sequence[World], plant: Mapping[str, Bug], begin: float, own: Task, target: float | None,
                ours: Guarantee, progress: Callable[[int, int], None] | None) -> Audit:  # fmt: skip
        """Run the trials of every world, plant the bugs, and say what came of it."""
        rehearsal, mechanism = self.rehearsal, self.rehearsal.privacy
        shape = shape_of(rehearsal.algorithm, rehearsal.graph, rehearsal.steps, self.observers, rehearsal.trace)
        if shape.pairs:
            places = places[-1:]  # only the experiment's own task answers about pairs of points
        noisy = mechanism is not None and mechanism.kind == "gaussian" and mechanism.sigma > 0
        normal = [noisy and shape.affine and (world.straight or not shape.reacts) for world in places]
        known = [self._likelihood(world) if fits else None for world, fits in zip(places, normal, strict=True)]
        scores = [1 + (score is not None) for score in known]
        each = 1 - (1 - self.confidence) / sum(count * (2 + fits) for count, fits in zip(scores, normal, strict=True))
        says = {place: float(self.claim.epsilon(place)) for place in dict.fromkeys((self.delta, *DELTAS))}
        enough(self.trials, says, self.delta, each, any(normal))
        self._same_protocol(places[-1])
        total, done = self.trials * (len(places) + len(plant)), 0

        def told(count: int) -> None:
            nonlocal done
            done += count
            if progress is not None:
                progress(min(done, total), total)

        def found_in(number: int, bug: Bug | None) -> tuple[list[Evidence], tuple[str, ...]]:
            world, score = places[number], known[number]
            views = self._views(world, bug, told)
            return evidence(world.name, [] if score is None else [score], views, says, self.delta, each, normal[number])

        proof, names = [], dict[str, None]()
        for number in range(len(places)):
            more, used = found_in(number, None)
            proof += more
            names |= dict.fromkeys(used)
        planted, sentence = list[Planted](), ""
        if not any(one.refutes for one in proof):
            planted = [self._planted(name, bug, places, found_in) for name, bug in plant.items()
                       if 0 < says[self.delta] < math.inf]  # fmt: skip
            aim = target if target is not None else _aim(says[self.delta])
            sentence = defence(rehearsal, own, self.of, self.observers, self.delta, aim, ours)
        return verdict(self.claim, says[self.delta], proof, planted, tuple(names), tuple(w.name for w in places),
                       self.delta, self.confidence, self.trials, begin, sentence)  # fmt: skip

    def _planted(self, name: str, bug: Bug, places: Sequence[World],
                 found_in: Callable[[int, Bug | None], tuple[list[Evidence], tuple[str, ...]]]) -> Planted:  # fmt: skip
        """A missing clip shows on canaries outside of it, less noise where the best score is known."""
        number = len(places) - 1 if name == CLIPLESS else 0
        proof = found_in(number, bug)[0]
        return Planted(name, places[number].name, any(one.refutes for one in proof),
                       power([(one.bound, one.claimed) for one in proof]), POWER_CONFIDENCE,
                       self._count(places[number]))  # fmt: skip

    def _likelihood(self, world: World) -> Score | None:
        done = self.rehearsal
        return likelihood_score(done.algorithm, done.graph, done.steps, self.observers, self.of, world.direction,
                                done.seed, done.trace)  # fmt: skip

    def _count(self, world: World) -> int:
        """How many trials this world gets: all of them unless its rows are very wide."""
        return max(min(self.trials, WORK // (2 * self._numbers(world))), min(self.trials, 200))

    def _numbers(self, world: World) -> int:
        graph = self.rehearsal.graph
        first = graph if isinstance(graph, Graph) else graph.at(0)
        return max(1, self.rehearsal.steps * int(first.weights.nnz) * max(world.data.width, 1))

    def _views(self, world: World, bug: Bug | None, told: Callable[[int], None]) -> Views:
        done, count = self.rehearsal, self._count(world)
        heard = int(np.isin(done.trace.meetings.b, self.observers).sum()) or done.steps * len(self.observers)
        along = world.direction if heard * world.data.dim > FEATURES else None
        chunks = paired_views(done.algorithm, done.graph, done.privacy, world.data, self.observers, done.steps, count,
                              done.seed, done.trace, bug, along)  # fmt: skip
        return _joined(_told(chunks, told))

    def _same_protocol(self, world: World) -> None:
        """The trials repeat the protocol that the claim is about: its ledger, line by line."""
        done, ledger = self.rehearsal, Ledger(self.rehearsal.n)
        door = TaskDoor(world.data, done.privacy, Replay(done.seed), ledger)
        Bulk().execute(Job(done.algorithm, done.graph, door, Replay(done.seed), done.steps, ledger, given=done.trace))
        if not np.array_equal(_reads(ledger), _reads(done.ledger)):
            raise ConfigError(f"{done.algorithm.name()} draws who takes part anew in every run, so that the claim of"
                              " one run is not that of another; audit it with everybody taking part")  # fmt: skip


def _reads(ledger: Ledger) -> Array:
    """How often each peer read its data."""
    return np.asarray(ledger.counts()[:, ledger.is_data()].sum(axis=1))


def _smoothness(algorithm: Algorithm[Any], task: Task | None) -> float:
    """How strongly losses may react: as the task declares; without one, as much as a step allows."""
    if task is not None and 0 < task.constants().smoothness < math.inf:
        return task.constants().smoothness
    rate = getattr(algorithm, "rate", 1.0)
    return 1.0 / rate if isinstance(rate, float) and rate > 0 else 1.0


def audit_mechanism(
    mechanism: Mechanism, trials: int = 10_000, delta: float = 1e-6, confidence: float = CONFIDENCE, dim: int = 8,
    claimed: Guarantee | None = None, seed: int = 0, of: int = 0,
) -> Audit:  # fmt: skip
    """Try to refute what one release claims, on rows that are far apart: along an axis, along the diagonal, at the ends
    of the ball and far outside of it. Where a release lies between the points of its lattice is looked at too."""
    begin = time.perf_counter()
    check_delta(delta)
    check_confidence(confidence)
    ideal = mechanism.arithmetic == "ideal"
    claim = claimed if claimed is not None else Guarantee(
        "the cost of one release", "gossip:DP-4", "ideal" if ideal else "proven", mechanism.level, "one row",
        "everybody", (Hypothesis("noise as declared, after clipping", checked=False), *((REAL,) if ideal else ())),
        EventsProfile(((mechanism.event_of(dim), 1),)), loss=1.0)
    pairs = _rows(mechanism, dim, of)
    says = {place: float(claim.epsilon(place)) for place in dict.fromkeys((delta, *DELTAS))}
    normal = mechanism.kind == "gaussian" and mechanism.sigma > 0
    each = 1 - (1 - confidence) / ((2 + normal) * (1 + normal) * len(pairs))
    enough(trials, says, delta, each, normal)
    proof, planted = list[Evidence](), list[Planted]()
    names = dict[str, None]()
    for number, (name, left, right) in enumerate(pairs):
        views = _releases(mechanism, left, right, trials, seed, number, of)
        more, used = evidence(name, _known(mechanism, left, right, views, normal), views, says, delta, each, normal)
        proof += more
        names |= dict.fromkeys(used)
    refuted, sentence = any(one.refutes for one in proof), ""
    if 0 < says[delta] < math.inf and not refuted:
        name, left, right = pairs[0]
        halved = Views(*(_halved(mechanism, views, row) for views, row in
                         zip(_releases(mechanism, left, right, trials, seed, 0, of), (left, right), strict=True)))
        wrong = evidence(name, _known(mechanism, left, right, halved, normal), halved, says, delta, each, normal)[0]
        planted.append(Planted(HALF, name, any(one.refutes for one in wrong),
                               power([(one.bound, one.claimed) for one in wrong]), POWER_CONFIDENCE, trials))
    if not refuted:
        aim = _aim(says[delta])
        sentence = f"Defence: epsilon = {aim:.3g} needs {noise_for(mechanism, aim, delta, 1.0, 1)}."
    return verdict(claim, says[delta], proof, planted, tuple(names), tuple(name for name, _, _ in pairs), delta,
                   confidence, trials, begin, sentence)  # fmt: skip


def _known(mechanism: Mechanism, left: Array, right: Array, views: Views, normal: bool) -> list[Score]:
    """The best score of equal normal noise on every coordinate: the component along what was moved."""
    if not normal:
        return []
    here = np.zeros(1, np.int64)
    moved = (mechanism.bare(right[None], here) - mechanism.bare(left[None], here))[0]
    return [Score("likelihood ratio", np.pad(moved, (0, views.left.shape[1] - len(moved))), fitted=False)]


def _halved(mechanism: Mechanism, views: Array, row: Array) -> Array:
    """The same releases with half of their noise; of randomized response, with half of the uniform answers."""
    bare = mechanism.bare(row[None], np.zeros(1, np.int64))
    d = bare.shape[1]
    wrong = views.copy()
    if isinstance(mechanism, RandomizedResponse):
        wrong[::2, :d] = bare
    else:
        wrong[:, :d] = bare + 0.5 * (views[:, :d] - bare)
    return wrong


def _rows(mechanism: Mechanism, dim: int, of: int) -> list[tuple[str, Array, Array]]:
    """Neighboring rows that a mistake would show on, by name."""
    if isinstance(mechanism, RandomizedResponse):
        values = np.eye(mechanism.values)
        return [("the first and the last value", values[0], values[-1])]
    if isinstance(mechanism, RecordNoise):
        half = np.eye(mechanism.dim)[0] * mechanism.sensitivities[of] / 2
        return [("as far apart as one record moves them", -half, half)]
    if dim < 1:
        raise ConfigError(f"a release has at least 1 number, found dim = {dim}")
    first, last, diagonal = np.eye(dim)[0], np.eye(dim)[-1], np.ones(dim)
    diagonal /= np.linalg.norm(diagonal, mechanism.norm)
    c = mechanism.clip
    rows = {"first axis": first * c, "last axis": last * c, "diagonal": diagonal * c,
            "first axis, outside": FAR * first * c, "diagonal, outside": FAR * diagonal * c}  # fmt: skip
    ends = [(name, -row, row) for name, row in rows.items()]
    return [*ends, ("zero and almost the end", 0 * first, 0.9999 * c * diagonal)]


def _releases(mechanism: Mechanism, left: Array, right: Array, trials: int, seed: int, number: int, of: int) -> Views:
    """Independent releases of both rows by peer `of`; beside each number, where it lies within its lattice cell."""
    sides, lanes = [], np.full(trials, of, np.int64)
    rounds, phase = np.divmod(np.arange(trials), 1 << RUN_BITS)
    for side, row in enumerate((left, right)):
        seen = mechanism.release(np.tile(row, (trials, 1)), Replay(seed), lanes, 2 * rounds + side, number, phase)
        if mechanism.spacing:
            inside = seen / mechanism.spacing
            seen = np.concatenate((seen, inside - np.rint(inside)), axis=1)
        sides.append(seen)
    return Views(*sides)


def _told(chunks: Iterable[Views], told: Callable[[int], None]) -> Iterator[Views]:
    """The chunks as they come, counted aloud."""
    for part in chunks:
        told(len(part.left))
        yield part


def _joined(chunks: Iterable[Views]) -> Views:
    parts = list(chunks)
    return Views(np.concatenate([part.left for part in parts]), np.concatenate([part.right for part in parts]))


def evidence(world: str, known: list[Score], views: Views, says: Mapping[float, float], delta: float, each: float,
             normal: bool) -> tuple[list[Evidence], tuple[str, ...]]:  # fmt: skip
    """All bounds of all scores; the learned one is fitted on the first half of the trials, which also chooses tests."""
    half = len(views.left) // 2
    with one_blas_thread():
        scores = [*known, learned_score(Views(views.left[:half], views.right[:half]))]
    found = []
    for score in scores:
        left, right = score.of(views)
        training, judged = (left[:half], right[:half]), (left[half:], right[half:])
        bounds = [count_against(training, judged, {delta: says[delta]}, each),
                  count_against(training, judged, says, each)]  # fmt: skip
        if normal:
            start = half if score.fitted else 0
            bounds.append(gaussian_fit(left[start:], right[start:], delta, each))
        found += [Evidence(world, score.name, bound, says[bound.delta]) for bound in bounds]
    return found, tuple(score.name for score in scores)


def verdict(claim: Guarantee, epsilon: float, proof: Sequence[Evidence], planted: Sequence[Planted],
            names: tuple[str, ...], places: tuple[str, ...], delta: float, confidence: float, trials: int, begin: float,
            sentence: str) -> Audit:  # fmt: skip
    """The record of an audit from its evidence."""
    here = [one.bound for one in proof if one.bound.delta == delta]
    counted = max(bound.epsilon for bound in here if bound.method == "Clopper-Pearson")
    fitted = max((bound.epsilon for bound in here if bound.method == "Gaussian fit"), default=math.nan)
    refuted = any(one.refutes for one in proof)
    return Audit(
        of=claim.of, seen_by=claim.against, theorem=claim.theorem, spec=claim.spec, status=claim.status,
        level=claim.level, claimed=epsilon, clopper_pearson=counted, gaussian_fit=fitted, delta=delta,
        confidence=confidence, verdict="refuted" if refuted else "not refuted", evidence=tuple(proof),
        planted=tuple(planted), trials=trials, seconds=time.perf_counter() - begin, scores=names, worlds=places,
        attacker=ATTACKER.format(view=claim.against), defence=sentence,
    )  # fmt: skip


def _aim(claimed: float) -> float:
    """The epsilon to defend: half of what holds now."""
    return 1.0 if claimed in (0.0, math.inf) else claimed / 2


def enough(trials: int, says: Mapping[float, float], delta: float, confidence: float, normal: bool) -> None:
    """Refuse an audit that could not refute anything."""
    claimed = says[delta] if says[delta] < math.inf else 0.0  # nothing to refute: the bounds alone are asked for
    needed = min(needed_trials(epsilon if epsilon < math.inf else 0.0, place, confidence)
                 for place, epsilon in says.items())  # fmt: skip
    if normal:
        needed = min(needed, max(needed_for_fit(claimed, delta, confidence), needed_trials(0.0, delta, confidence)))
    if trials < needed:
        raise ConfigError(f"{trials} trials are too few to refute epsilon = {claimed:.4g} at this confidence; at least"
                          f" {needed} are needed")  # fmt: skip


def observing(n: int, of: int, seen_by: int | Iterable[int] | None) -> tuple[int, ...]:
    """The observers as a sorted tuple: a peer, a set of peers, or everybody but `of`."""
    if seen_by is None:
        return tuple(v for v in range(n) if v != of)
    chosen = {int(seen_by)} if isinstance(seen_by, int | np.integer) else {int(v) for v in seen_by}
    for v in sorted(chosen):
        if not 0 <= v < n:
            raise ConfigError(f"there is no observer {v}: the peers are 0..{n - 1}")
    if not chosen:
        raise ConfigError("the set of observers is empty; name at least one peer")
    if of in chosen:
        raise ConfigError(f"peer {of} is among the observers {sorted(chosen)}: nobody has secrets from oneself")
    return tuple(sorted(chosen))

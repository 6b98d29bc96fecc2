"""An audit: many paired runs on neighboring data, the largest epsilon they prove, and what was claimed.

The claim is refuted when a lower bound lies above it; a true claim is refuted with probability at most 1 - confidence
over the noise of the trials (the error is shared among all bounds tried). An audit that does not refute proves nothing;
its power says what it would have seen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.arrays import Array
from bruit.audits.bounds import (
    Bound,
    check_confidence,
    clopper_pearson,
    gaussian_fit,
    needed_for_fit,
    needed_trials,
)
from bruit.audits.defence import defence, noise_for
from bruit.audits.power import power
from bruit.audits.scores import Score, is_affine, learned_score, likelihood_score
from bruit.audits.trials import Neighbors, Views, paired_views
from bruit.errors import ConfigError
from bruit.experiment import run
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.mechanisms import Mechanism
from bruit.privacy.guarantee import Guarantee, Hypothesis
from bruit.privacy.profile import EventsProfile, check_delta
from bruit.randomness import Replay
from bruit.trace import Trace

CONFIDENCE = 1 - 1e-6
ATTACKER = "goal: tell neighboring data apart; passive; white box (graph, weights and algorithm known); view: {view}"


@dataclass(frozen=True)
class Audit:
    """What was claimed, what was proven against it, and how hard it was tried. `gaussian_fit` is nan where scores need
    not be normal, and then the fit says nothing."""

    of: str
    seen_by: str
    theorem: str
    spec: str
    status: str
    claimed: float
    clopper_pearson: float
    gaussian_fit: float
    delta: float
    confidence: float
    verdict: str
    power: float
    trials: int
    seconds: float
    scores: tuple[str, ...]
    attacker: str
    defence: str

    @property
    def lower(self) -> float:
        """The largest epsilon proven by the trials."""
        return max(self.clopper_pearson, 0.0 if math.isnan(self.gaussian_fit) else self.gaussian_fit)

    @property
    def refuted(self) -> bool:
        return self.verdict == "refuted"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "lower": self.lower}

    def __str__(self) -> str:
        fit = "does not apply" if math.isnan(self.gaussian_fit) else f"epsilon >= {self.gaussian_fit:.4g}"
        power = f"{100 * self.power:.0f} % of such audits would refute half the claim"
        return "\n".join((
            f"{self.verdict}: epsilon = {self.claimed:.4g} at delta = {self.delta:g} was claimed for {self.of} against"
            f" {self.seen_by}",
            f"  claimed by {self.theorem} ({self.spec}), {self.status}",
            f"  {self.trials} paired runs, confidence {self.confidence:.7g}, {self.seconds:.1f} s, scores:"
            f" {', '.join(self.scores)}",
            f"  Clopper-Pearson: epsilon >= {self.clopper_pearson:.4g}",
            f"  Gaussian fit: {fit}",
            f"  power: {power}",
            f"  {self.attacker}",
            self.defence,
        ))  # fmt: skip


def audit(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence | str, mechanism: Mechanism | None, of: int,
    seen_by: int | Iterable[int] | None, steps: int, trials: int = 10_000, delta: float = 1e-6,
    confidence: float = CONFIDENCE, claimed: Guarantee | None = None, seed: int = 0, given: Trace | None = None,
    dim: int = 1, target: float | None = None, progress: Callable[[int, int], None] | None = None,
) -> Audit:  # fmt: skip
    """Try to refute what is claimed about peer `of` in the view of `seen_by` (a peer, a set, everybody else).

    `claimed` is by default the guarantee the library itself gives for this run; a guarantee of meetings or of a walk
    holds for those of the same seed, or of the trace `given`. `target` is the epsilon the defence aims at.
    """
    begin = time.perf_counter()
    graph = named_graph(graph) if isinstance(graph, str) else graph
    check_delta(delta)
    check_confidence(confidence)
    observers = _observers(graph.n, of, seen_by)
    data = Neighbors.opposite(graph.n, of, 1.0 if mechanism is None else mechanism.clip, dim)
    rehearsal = run(algorithm, graph, data, privacy=mechanism, steps=steps, seed=seed, evaluate_every=0, given=given)
    who: int | set[int] | None = None if seen_by is None else set(observers)
    ours = rehearsal.guarantee(of, who, delta)
    claim = ours if claimed is None else claimed
    epsilon, trace = float(claim.epsilon(delta)), rehearsal.trace
    normal = (mechanism is not None and mechanism.kind == "gaussian" and mechanism.sigma > 0
              and is_affine(algorithm, graph, steps, observers, trace))  # fmt: skip
    known = likelihood_score(algorithm, graph, steps, observers, of, np.eye(dim)[0], seed, trace)
    bounds = (1 + normal) * (1 if known is None else 2)
    each = 1 - (1 - confidence) / bounds
    _enough(trials, epsilon, delta, each, normal)
    chunks = paired_views(algorithm, graph, mechanism, data, observers, steps, trials, seed, trace)
    views = _joined(chunks if progress is None else _told(chunks, trials, progress))
    found, names = _bounds([] if known is None else [known], views, delta, each, normal)
    aim = target if target is not None else _aim(epsilon, _best(found) > epsilon)
    sentence = defence(rehearsal, data, of, observers, delta, aim, ours)
    return _verdict(claim, epsilon, found, names, delta, confidence, each, normal, trials, begin, sentence)


def audit_mechanism(
    mechanism: Mechanism, trials: int = 10_000, delta: float = 1e-6, confidence: float = CONFIDENCE, dim: int = 8,
    claimed: Guarantee | None = None, seed: int = 0,
) -> Audit:  # fmt: skip
    """Try to refute what one release claims, on rows that are far apart: along an axis, along the diagonal, at the ends
    of the ball and far outside of it. Where a release lies between the points of its lattice is looked at too."""
    begin = time.perf_counter()
    check_delta(delta)
    check_confidence(confidence)
    event = mechanism.event()
    claim = claimed if claimed is not None else Guarantee(
        "the cost of one release", "gossip:DP-4", "proven", mechanism.level, "one row", "everybody",
        (Hypothesis("noise as declared, after clipping", checked=False),), EventsProfile(((event, 1),)), loss=1.0)
    epsilon, pairs = float(claim.epsilon(delta)), _rows(mechanism, dim)
    normal = mechanism.kind == "gaussian" and mechanism.sigma > 0
    each = 1 - (1 - confidence) / ((1 + normal) * len(pairs))
    _enough(trials, epsilon, delta, each, normal)
    found: list[Bound] = []
    for number, (left, right) in enumerate(pairs):
        views = _releases(mechanism, left, right, trials, seed, number)
        found += _bounds([], views, delta, each, normal)[0]
    aim = _aim(epsilon, _best(found) > epsilon)
    sentence = f"Defence: epsilon = {aim:.3g} needs {noise_for(mechanism, aim, delta, 1.0, 1)}."
    return _verdict(claim, epsilon, found, ("learned",), delta, confidence, each, normal, trials, begin, sentence)


def _rows(mechanism: Mechanism, dim: int) -> list[tuple[Array, Array]]:
    """Neighboring rows that a mistake would show on."""
    if dim < 1:
        raise ConfigError(f"a release has at least 1 number, found dim = {dim}")
    first, last, diagonal = np.eye(dim)[0], np.eye(dim)[-1], np.ones(dim)
    diagonal /= np.linalg.norm(diagonal, mechanism.norm)
    c = mechanism.clip
    rows = [first * c, last * c, diagonal * c, 50 * first * c, 50 * diagonal * c]
    return [(-row, row) for row in rows] + [(0 * first, 0.9999 * c * diagonal)]


def _releases(mechanism: Mechanism, left: Array, right: Array, trials: int, seed: int, number: int) -> Views:
    """Releases of both rows by independent lanes; beside each number, where it lies within its cell of the lattice."""
    sides = []
    for side, row in enumerate((left, right)):
        lanes = np.arange(trials) + side * trials
        seen = mechanism.release(np.tile(row, (trials, 1)), Replay(seed), lanes, number, 0)
        if mechanism.spacing:
            inside = seen / mechanism.spacing
            seen = np.concatenate((seen, inside - np.rint(inside)), axis=1)
        sides.append(seen)
    return Views(*sides)


def _told(chunks: Iterable[Views], trials: int, progress: Callable[[int, int], None]) -> Iterator[Views]:
    """The chunks as they come, counted aloud."""
    done = 0
    for part in chunks:
        done += len(part.left)
        progress(done, trials)
        yield part


def _joined(chunks: Iterable[Views]) -> Views:
    parts = list(chunks)
    return Views(np.concatenate([part.left for part in parts]), np.concatenate([part.right for part in parts]))


def _bounds(known: list[Score], views: Views, delta: float, each: float,
            normal: bool) -> tuple[list[Bound], tuple[str, ...]]:  # fmt: skip
    """All bounds of all scores; the learned one is fitted on the first half of the trials."""
    half = len(views.left) // 2
    scores = [*known, learned_score(Views(views.left[:half], views.right[:half]))]
    found = []
    for score in scores:
        left, right = score.of(views)
        found.append(clopper_pearson((left[:half], right[:half]), (left[half:], right[half:]), delta, each))
        if normal:
            start = half if score.fitted else 0
            found.append(gaussian_fit(left[start:], right[start:], delta, each))
    return found, tuple(score.name for score in scores)


def _verdict(claim: Guarantee, epsilon: float, found: list[Bound], names: tuple[str, ...], delta: float,
             confidence: float, each: float, normal: bool, trials: int, begin: float,
             sentence: str) -> Audit:  # fmt: skip
    counted = max(bound.epsilon for bound in found if bound.method == "Clopper-Pearson")
    fitted = max((bound.epsilon for bound in found if bound.method == "Gaussian fit"), default=math.nan)
    verdict = "refuted" if _best(found) > epsilon * (1 + 1e-9) else "not refuted"
    return Audit(
        claim.of, claim.against, claim.theorem, claim.spec, claim.status, epsilon, counted, fitted, delta, confidence,
        verdict, power(claim, epsilon, delta, trials, each, normal), trials, time.perf_counter() - begin, names,
        ATTACKER.format(view=claim.against), sentence,
    )  # fmt: skip


def _best(found: list[Bound]) -> float:
    return max(bound.epsilon for bound in found)


def _aim(claimed: float, refuted: bool) -> float:
    """The epsilon to defend: a refuted claim made true, else half of what holds now."""
    if claimed == math.inf or claimed == 0:
        return 1.0
    return claimed if refuted else claimed / 2


def _enough(trials: int, claimed: float, delta: float, confidence: float, normal: bool) -> None:
    """Refuse an audit that could not refute anything."""
    if not claimed < math.inf:
        claimed = 0.0  # nothing to refute: the bounds alone are asked for
    needed = needed_trials(claimed, delta, confidence)
    if normal:
        needed = min(needed, max(needed_for_fit(claimed, delta, confidence), needed_trials(0.0, delta, confidence)))
    if trials < needed:
        raise ConfigError(f"{trials} trials are too few to refute epsilon = {claimed:.4g} at this confidence; at least"
                          f" {needed} are needed")  # fmt: skip


def _observers(n: int, of: int, seen_by: int | Iterable[int] | None) -> tuple[int, ...]:
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

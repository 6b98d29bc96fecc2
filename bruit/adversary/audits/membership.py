"""A membership game on the protocol of an experiment or of a run: was this record among those a
model was learned from?

Coins decide for every record of the other peers whether it is inside; one that is outside is
replaced by a public record of the held-out part, so that everybody keeps as many records (and a
peer with a single record can play). The attacker, one peer or several who collude, takes the mean
of its own models at the end, a function of its view, and scores every record by a likelihood ratio
fitted on shadow runs (`bruit.adversary.attacks.membership`). Data that differ by one record of one
peer are neighbors at record and at user level, so too many right guesses refute the claimed
epsilon: `bruit.adversary.audits.guesses`. A claim about records that come and go is held against what
it says of two steps, one record gone and another one come (silo:SILO-12). Walks and meetings are those
of the experiment, for which the claim is made.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bruit.adversary.attacks.membership import (
    Learned,
    Membership,
    MembershipScore,
    advantage,
    shadow_runs,
)
from bruit.adversary.audits.bounds import check_confidence
from bruit.adversary.audits.defence import noise_for
from bruit.adversary.audits.guesses import IMPOSSIBLE, best_guesses, needed_guesses
from bruit.adversary.audits.members import LearnedByObservers, RecordPool
from bruit.arrays import Array, Bools
from bruit.errors import ConfigError
from bruit.mechanisms import Gaussian
from bruit.on import Workplace, chosen, place_for
from bruit.on.place import in_order
from bruit.privacy.events import Adjacency
from bruit.privacy.formulas.group import group_epsilon
from bruit.privacy.guarantee import Epsilon
from bruit.privacy.profile import check_delta
from bruit.randomness import Replay
from bruit.runs.build import build
from bruit.runs.file import parse, read
from bruit.runs.result import Run, load
from bruit.runs.run import run as run_protocol
from bruit.statistics.local.estimates import quantile, score_interval
from bruit.tasks.task import Task

Verdict = Literal[
    "refuted", "not refuted", "cannot be refuted with so few records", "nothing to refute"
]
Progress = Callable[[int, int], None]
AIM = 1.0  # the epsilon the defence proposes


@dataclass(frozen=True, kw_only=True)
class Game:
    """How hard to try: shadow runs to learn from, attacked runs to be judged on, and what is asked
    of the result."""

    shadows: int = 32
    runs: int = 4
    false_alarms: float = 0.01
    delta: float = 1e-6
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_confidence(self.confidence)
        if self.runs < 1:
            raise ConfigError(f"at least 1 run is attacked, found {self.runs}")
        if not 0 < self.false_alarms < 0.5:
            raise ConfigError(
                f"the rate of false alarms lies between 0 and 0.5, found {self.false_alarms}"
            )


@dataclass(frozen=True, kw_only=True)
class MembershipAudit:
    """How well members were found, what epsilon that refutes, and what was claimed.

    Intervals take records as independent; `shown`, the epsilon proven by the guesses, does not need
    that.
    """

    graph: str
    algorithm: str
    seen_by: tuple[int, ...]
    records: int
    runs: int
    shadows: int
    auc: float
    auc_interval: tuple[float, float]
    accuracy: float
    hits: float
    hits_interval: tuple[float, float]
    false_alarms: float
    shown: float
    claimed: float
    allowed: float  # what the claim says of this game, where a record is replaced by another
    delta: float
    level: str
    adjacency: Adjacency
    theorem: str
    confidence: float
    verdict: Verdict
    needed_records: int
    seconds: float
    taxonomy: dict[str, str]
    defence: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def protocol_of(place: str | Path) -> tuple[Run, Task]:
    """The run behind a run folder, or of an experiment file or a bundled name, and its task; no
    metrics."""
    if Path(place).is_dir():
        done = load(place)
        if not done.experiment:
            raise ConfigError(
                f"{place} was not made from an experiment file, so its records cannot be loaded"
                " again; use bruit.adversary.attacks.membership in Python"
            )
        if done.phase:
            raise ConfigError(f"{place} goes on from an earlier run; attack the first phase")
        return done, build(parse(done.experiment).model_copy(update={"seed": done.seed})).task
    file, text = read(place)
    made = build(file, text, str(place))
    done = run_protocol(
        made.algorithm,
        made.graph,
        made.task,
        privacy=made.privacy,
        steps=made.steps,
        seed=file.seed,
        engine=made.engine,
        evaluate_every=0,
    )
    return done, made.task


def audit_membership(
    done: Run,
    task: Task,
    seen_by: Sequence[int],
    game: Game | None = None,
    progress: Progress | None = None,
    on: Workplace | str | None = None,
) -> MembershipAudit:
    """Play the game on the protocol of a run, with its trace, and compare with what it claims about
    the worst peer. Shadows are learned `on` another place, if one is given."""
    with chosen(place_for(1, on)):
        return _played(done, task, seen_by, game, progress)


def _played(
    done: Run, task: Task, seen_by: Sequence[int], game: Game | None, progress: Progress | None
) -> MembershipAudit:
    begin, how = time.perf_counter(), Game() if game is None else game
    observers = tuple(sorted({int(v) for v in seen_by}))
    _check_observers(done, observers)
    pool = RecordPool.of(task)
    attacked = ~np.isin(pool.owners, observers)
    _enough(int(attacked.sum()), how)

    learn = LearnedByObservers(done, pool, attacked, observers)

    def margin(models: Array) -> Array:
        return pool.margins(models)[attacked]

    def count_runs(count: int) -> None:
        if progress is not None:
            progress(count, how.shadows + how.runs)

    size = int(attacked.sum())
    shadows = shadow_runs(learn, margin, size, how.shadows, how.seed, count_runs)
    truth = Replay(how.seed).words("members", np.arange(how.runs), 0, 0, size) & np.uint64(1) > 0
    asked = [(row, how.seed + 1 + how.shadows + number) for number, row in enumerate(truth)]
    models = in_order(Learned(learn), asked, lambda done, _: count_runs(how.shadows + done))
    odds = [shadows.attack(model).odds for model in models]
    return _membership_audit(done, observers, how, np.stack(odds), truth, begin)


def _membership_audit(
    done: Run, observers: tuple[int, ...], how: Game, odds: Array, truth: Bools, begin: float
) -> MembershipAudit:
    score = Membership(odds.ravel()).score(truth.ravel(), how.false_alarms)
    inside = int(truth.sum())
    outside = truth.size - inside
    claimed = done.epsilon(seen_by=set(observers), delta=how.delta)
    allowed = _of_the_game(claimed, how.delta)
    shown = best_guesses(list(odds), list(truth), how.delta, how.confidence).epsilon
    needed = needed_guesses(allowed if math.isfinite(allowed) else 0.0, how.delta, how.confidence)
    verdict: Verdict = "not refuted"
    if not math.isfinite(allowed):
        verdict = "nothing to refute"
    elif shown > allowed:
        verdict = "refuted"
    elif needed > truth.size:
        verdict = "cannot be refuted with so few records"
    view = "its own final model" if len(observers) == 1 else "the final models of a coalition"
    return MembershipAudit(
        graph=done.graph.name,
        algorithm=done.algorithm.name(),
        seen_by=observers,
        records=truth.shape[1],
        runs=how.runs,
        shadows=how.shadows,
        auc=score.auc,
        auc_interval=auc_interval(score.auc, inside, outside, how.confidence),
        accuracy=score.accuracy,
        hits=score.hits,
        hits_interval=rate_interval(round(score.hits * inside), inside, how.confidence),
        false_alarms=how.false_alarms,
        shown=shown,
        claimed=float(claimed),
        allowed=allowed,
        delta=how.delta,
        level=claimed.guarantee.level,
        adjacency=claimed.guarantee.adjacency,
        theorem=claimed.guarantee.theorem,
        confidence=how.confidence,
        verdict=verdict,
        needed_records=needed,
        seconds=time.perf_counter() - begin,
        taxonomy={
            "goal": "membership inference",
            "behaviour": "passive (honest but curious)",
            "knowledge": "white box: model, algorithm and records like the private ones",
            "view": view,
        },
        defence=defence(done, observers, claimed, how.delta, score),
    )


def _of_the_game(claimed: Epsilon, delta: float) -> float:
    """What a claim says of data in which one record is another: two steps if records come and go."""
    about = claimed.guarantee
    if about.level != "record" or about.adjacency == "replace":
        return float(claimed)
    return max(float(claimed), group_epsilon(about.profile, 2, delta))


def auc_interval(auc: float, inside: int, outside: int, confidence: float) -> tuple[float, float]:
    """All A with |auc - A| <= z sqrt(A (1 - A) / k) + 1 / (2 k), k the smaller number of scores.

    A (1 - A) / k is the largest variance any two laws of independent scores allow (Birnbaum and
    Klose 1957); that of Hanley and McNeil, made for exponential scores, covers 0.77 where 0.95 is
    said for 5 and 5 scores.
    """
    fewer = min(inside, outside)
    return score_interval(auc, 1 / fewer, 0.0, (0.0, 1.0), quantile(confidence), 0.5 / fewer)


def rate_interval(count: float, trials: float, confidence: float) -> tuple[float, float]:
    """The exact binomial interval of Clopper and Pearson; trials that come in pairs count by half.

    >>> rate_interval(0, 100, 0.95)[0], round(rate_interval(0, 100, 0.95)[1], 4)
    (0.0, 0.0362)
    """
    from scipy.stats import beta

    error = (1 - confidence) / 2
    low = 0.0 if count == 0 else float(beta.ppf(error, count, trials - count + 1))
    high = 1.0 if count == trials else float(beta.isf(error, count + 1, trials - count))
    return low, high


def defence(
    done: Run, observers: tuple[int, ...], claimed: float, delta: float, score: MembershipScore
) -> str:
    """One sentence: the noise that leaves every attack on one record, this one too, little to
    win."""
    won = f"here hits minus false alarms were {score.gain:.2g}"
    if claimed <= AIM:
        return (
            f"The noise of this run is the defence: at epsilon {claimed:.3g} and delta {delta:g} no"
            f" attack on one record wins more than {advantage(claimed, delta):.2g}; {won}."
        )
    held = f"would leave at most epsilon {AIM:g} at delta {delta:g} against these observers"
    limit = f"with which no attack on one record wins more than {advantage(AIM, delta):.2g} ({won})"
    releases = int(done.facts().releases().max(initial=1))
    if done.privacy is None:
        sigma = Gaussian().calibrate(AIM, delta, max(releases, 1)).sigma
        return (
            f"Gaussian noise of sigma = {sigma:.4g} per unit of clip on each of {releases} releases"
            f" a peer {held}, {limit}."
        )
    loss = done.guarantee(seen_by=set(observers), delta=delta).loss
    noise = noise_for(done.privacy, AIM, delta, loss, releases)
    return f"{noise[0].upper()}{noise[1:]} {held}, {limit}."


def _check_observers(done: Run, observers: tuple[int, ...]) -> None:
    if not observers:
        raise ConfigError("the set of observers is empty; name at least one peer")
    for v in observers:
        if not 0 <= v < done.n:
            raise ConfigError(
                f"observer {v} is not a peer of {done.graph.name}: the peers are 0..{done.n - 1}"
            )
    if len(observers) == done.n:
        raise ConfigError("everybody is an observer, so there is nobody to learn about")


def _enough(records: int, how: Game) -> None:
    """Refuse a game whose answer would be empty, and say how large one must be."""
    least = needed_guesses(0.0, how.delta, how.confidence)
    if least == IMPOSSIBLE:
        raise ConfigError(
            f"a confidence of {how.confidence:g} is out of reach at delta = {how.delta:g}:"
            " chance alone errs more often; ask for less confidence or a smaller delta"
        )
    if records * how.runs < least:
        raise ConfigError(
            f"{records} records in {how.runs} attacked runs are too few for confidence"
            f" {how.confidence:g}; at least {-(-least // records)} runs are needed"
        )
    outsiders = math.ceil(1 / how.false_alarms)
    if records * how.runs < 3 * outsiders:
        raise ConfigError(
            f"a rate of {how.false_alarms:g} false alarms is measured on at least {outsiders}"
            f" records outside, and {records} records in {how.runs} runs leave about half of them;"
            f" attack at least {-(-3 * outsiders // records)} runs, or allow more false alarms"
        )

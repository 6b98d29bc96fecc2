"""The consortium's first question: alone, or together, and how (silo:SILO-7).

    protocol   the sum of all clipped records carries noise of deviation        trusting
    alone      z C, on one's own records only                                   nobody
    local      z C sqrt(n): every peer adds all of the noise itself (SILO-3)    nobody
    masked     z C sqrt(n / (n - a)): noise made together under masks (SILO-4)  n - a peers and their keys
    curator    z C                                                              one curator, with everything

z is the least noise multiplier for all releases together (SILO-2), sigma = z C, B = q times all records
the expected batch: the mean gradient errs by (noise of the sum) / B on each coordinate, sqrt(d) times
that in length. Steps, clip and rate of each protocol are the best of those tried on made-up logistic
problems of the same size (bruit.planning.silos.problems), and its accuracy is that on *other* made-up
problems. Nothing here reads a record.

Why every record is in every batch unless asked otherwise: z(q) / q is never much below z(1), so that
sampling saves computing, not noise (replace: equal within 2 % but for few releases, where it is more;
add-remove: always more).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array
from bruit.planning.silos.compared import SiloOption, SilosPlan, rounding_of
from bruit.planning.silos.problems import Problems, generator, make_problems
from bruit.planning.silos.question import SilosQuestion
from bruit.planning.silos.trial import MOST_RECORDS, STEPS, SettingsTrial, Tried
from bruit.privacy.calibrate import least_noise_multiplier

if TYPE_CHECKING:
    from numpy.random import Generator

MOST_SIZES = 6
"""Sizes for which `alone` is tried; others take the nearest."""
PASSES = (1, 4, 12)
"""Passes over all records that are tried where batches are samples."""
MOST_PROBLEMS, FEWEST_PROBLEMS = 40, 6
"""Made-up problems to choose on, and as many others to judge on."""
TOGETHER = ("curator", "masked", "local")

Progress = Callable[[int, int], None]


def plan_silos(
    question: SilosQuestion, progress: Progress | None = None, seed: int = 0
) -> SilosPlan:
    """Noise, steps, sampling, expected error and accuracy of every protocol, best first."""
    rate = 1.0 if question.sample_rate is None else question.sample_rate
    grid, sizes = _steps(question, rate), _sizes(question.records)
    multiplier = _Multipliers(question=question, sample_rate=rate)
    total, done = len(grid) * (2 + len(sizes)), 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    levels = _noise_levels(question, grid, multiplier, tick)
    draws = generator(seed)
    chosen_on, judged_on = _made(question, draws), _made(question, draws)
    together = SettingsTrial(held=question.total, dim=question.dim, sample_rate=rate)
    found = together.best(levels, chosen_on, draws, tick)
    options = [
        _option(
            question,
            name,
            found[name],
            multiplier=multiplier,
            held=question.total,
            accuracies=together.judge(found[name], judged_on, draws),
        )
        for name in TOGETHER
    ]
    alone: dict[int, tuple[Tried, Array]] = {}
    for held in sizes:
        trial = SettingsTrial(held=held, dim=question.dim, sample_rate=rate)
        own = {steps: {"alone": multiplier(steps)} for steps in grid}
        best = trial.best(own, chosen_on, draws, tick)["alone"]
        alone[held] = best, trial.judge(best, judged_on, draws)
    nearest = [min(sizes, key=lambda size: abs(size - held)) for held in question.records]
    options.append(_alone(question, alone, nearest, multiplier))
    return SilosPlan(
        question=question,
        options=tuple(sorted(options, key=lambda one: -one.accuracy)),
        blind=float(judged_on.blind().mean()),
        without_noise=float(together.judge(found["none"], judged_on, draws).mean()),
        best=float(judged_on.best().mean()),
        noiseless=found["none"],
        alone=tuple(alone[size][0] for size in nearest),
    )


def _noise_levels(
    question: SilosQuestion, grid: Sequence[int], multiplier: _Multipliers, tick: Callable[[], None]
) -> dict[int, dict[str, float]]:
    """For each number of steps, how much noise is in the sum of all under each protocol, in
    clips."""
    levels = {}
    for steps in grid:
        levels[steps] = {
            "none": 0.0,
            "curator": multiplier(steps),
            "masked": multiplier(steps + spare(question, steps)) * _shares(question),
            "local": multiplier(steps) * math.sqrt(question.silos),
        }
        tick()
    return levels


def _alone(
    question: SilosQuestion,
    found: dict[int, tuple[Tried, Array]],
    nearest: list[int],
    multiplier: _Multipliers,
) -> SiloOption:
    """Every silo's own private model; the settings shown are those of the silo of middle size.

    found: for sizes that were tried, the best setting and its accuracies; nearest: the size that
    stands for each silo.
    """
    by_silo = np.stack([found[size][1] for size in nearest], axis=1)
    middle = sorted(nearest)[question.silos // 2]
    return _option(
        question,
        "alone",
        found[middle][0],
        multiplier=multiplier,
        held=middle,
        accuracies=by_silo.mean(axis=1),
        own=by_silo,
    )


def spare(question: SilosQuestion, steps: int) -> int:
    """Attempts beyond the planned steps that a masked run is charged for: a quarter, where peers may
    fall silent (silo:SILO-5)."""
    return math.ceil(steps / 4) if question.dropouts else 0


@dataclass(frozen=True, kw_only=True)
class _Multipliers:
    """The least z of so many releases, computed once."""

    question: SilosQuestion
    sample_rate: float
    known: dict[int, float] = field(default_factory=dict)

    def __call__(self, releases: int) -> float:
        if releases not in self.known:
            asked = self.question
            self.known[releases] = least_noise_multiplier(
                asked.epsilon,
                asked.delta,
                releases,
                self.sample_rate,
                asked.adjacency,
                rounding_of(asked),
            )
        return self.known[releases]


def _shares(question: SilosQuestion) -> float:
    """Noise of the published sum over sigma: each of n adds sigma / sqrt(n - a) (silo:SILO-4)."""
    return math.sqrt(question.silos / (question.silos - question.colluders))


def _steps(question: SilosQuestion, rate: float) -> tuple[int, ...]:
    """Numbers of steps that are tried; with a sample as many passes over all records."""
    if question.steps is not None:
        return (question.steps,)
    if rate == 1:
        return STEPS
    return tuple(sorted({max(1, round(passes / rate)) for passes in PASSES}))


def _sizes(records: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes for which `alone` is tried: all, or some in between."""
    different = sorted(set(records))
    if len(different) <= MOST_SIZES:
        return tuple(different)
    places = np.linspace(0, len(different) - 1, MOST_SIZES).round().astype(int)
    return tuple(different[place] for place in places)


def _made(question: SilosQuestion, draws: Generator) -> Problems:
    """Made-up problems with records for all silos; fewer of them where they are large."""
    records = min(question.total, MOST_RECORDS)
    count = min(MOST_PROBLEMS, max(FEWEST_PROBLEMS, 400_000 // (records * question.dim)))
    return make_problems(count, records, question.dim, draws)


def _option(
    question: SilosQuestion,
    name: str,
    best: Tried,
    *,
    multiplier: _Multipliers,
    held: int,
    accuracies: Array,
    own: Array | None = None,
) -> SiloOption:
    attempts = best.steps + (spare(question, best.steps) if name == "masked" else 0)
    n, a = question.silos, question.colluders
    trust = {
        "curator": "one curator, who sees everything",
        "masked": f"any {n - a} of {n} silos add their noise; keys of masks stay secret",
        "local": "nobody",
        "alone": "nobody",
    }
    return SiloOption(
        protocol=name,
        noise_multiplier=multiplier(attempts),
        clip=best.clip,
        rate=best.rate,
        steps=best.steps,
        attempts=attempts,
        sample_rate=multiplier.sample_rate,
        batch=multiplier.sample_rate * held,
        noise=best.level * best.clip,
        trust=trust[name],
        accuracies=accuracies,
        own=own,
    )

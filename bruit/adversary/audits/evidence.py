"""Evidence from paired trials: all bounds of all scores, and whether there are trials enough to find any."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bruit.adversary.audits.bounds import (
    count_against,
    gaussian_fit,
    needed_for_fit,
    needed_trials,
)
from bruit.adversary.audits.power import CONFIDENCE as POWER_CONFIDENCE
from bruit.adversary.audits.power import Planted, power
from bruit.adversary.audits.scores import (
    ViewScore,
    learned_score,
)
from bruit.adversary.audits.trials import Views
from bruit.adversary.audits.verdict import Evidence
from bruit.errors import ConfigError
from bruit.privacy.exact import one_blas_thread
from bruit.privacy.guarantee import Guarantee

CONFIDENCE = 1 - 1e-6


DELTAS = (1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.3)
"""Where a claim is also asked what it says: counts see most at a large delta."""
Found = tuple[list[Evidence], tuple[str, ...]]
"""The bounds that were found, and the names of the scores that were tried."""


def evidence(
    world: str,
    known: list[ViewScore],
    views: Views,
    says: Mapping[float, float],
    delta: float,
    each: float,
    normal: bool,
) -> Found:
    """All bounds of all scores; the learned one is fitted on the first half of the trials, which
    also chooses tests."""
    half = len(views.left) // 2
    with one_blas_thread():
        scores = [*known, learned_score(Views(views.left[:half], views.right[:half]))]
    found = []
    for score in scores:
        left, right = score.of(views)
        training, testing = (left[:half], right[:half]), (left[half:], right[half:])
        bounds = [
            count_against(training, testing, {delta: says[delta]}, each),
            count_against(training, testing, says, each),
        ]
        if normal:
            start = half if score.fitted else 0
            bounds.append(gaussian_fit(left[start:], right[start:], delta, each))
        found += [Evidence(world, score.name, bound, says[bound.delta]) for bound in bounds]
    return found, tuple(score.name for score in scores)


def half_of(claimed: float) -> float:
    """The epsilon to defend: half of what holds now."""
    return 1.0 if claimed in (0.0, math.inf) else claimed / 2


def enough(
    trials: int, says: Mapping[float, float], delta: float, confidence: float, normal: bool
) -> None:
    """Refuse an audit that could not refute anything."""
    claimed = (
        says[delta] if says[delta] < math.inf else 0.0
    )  # nothing to refute: the bounds alone are asked for
    needed = min(
        needed_trials(epsilon if epsilon < math.inf else 0.0, place, confidence)
        for place, epsilon in says.items()
    )
    if normal:
        needed = min(
            needed,
            max(needed_for_fit(claimed, delta, confidence), needed_trials(0.0, delta, confidence)),
        )
    if trials < needed:
        raise ConfigError(
            f"{trials} trials are too few to refute epsilon = {claimed:.4g} at this confidence; at "
            f"least {needed} are needed"
        )


def claimed_at(claim: Guarantee, delta: float) -> dict[float, float]:
    """The epsilon that is claimed at this delta and at those of `DELTAS`."""
    return {place: float(claim.epsilon(place)) for place in dict.fromkeys((delta, *DELTAS))}


def planted_bug(name: str, world: str, proof: Sequence[Evidence], trials: int) -> Planted:
    """Whether the trials found a bug that was planted, and how often they would."""
    return Planted(
        bug=name,
        world=world,
        refuted=any(one.refutes for one in proof),
        power=power([(one.bound, one.claimed) for one in proof]),
        confidence=POWER_CONFIDENCE,
        trials=trials,
    )

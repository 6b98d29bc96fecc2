"""Checks that any guarantee must pass, yours included: `check_guarantee(TheoremCase("mine", make,
truth))`.

More noise never hurts; more steps or more observers never help. n compositions are "x n". Epsilon
and delta agree. What a theorem does not cover is refused with a sentence. On small cases the number
equals brute force (a joint Gaussian divergence, an enumeration, a quadrature) or lies above it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from bruit.errors import BruitError, ConformanceError, PrivacyError
from bruit.privacy.composition import compose, composed
from bruit.privacy.guarantee import REAL, STATUSES, Guarantee
from bruit.privacy.profile import Profile

DELTAS = (1e-9, 1e-6, 1e-3)
EPSILONS = (0.0, 0.5, 3.0)
SLACK, TINY = 1e-6, 1e-12

Make = Callable[[float, int, tuple[int, ...]], Guarantee]
Truth = Callable[[float, int, tuple[int, ...]], Profile]


@dataclass(frozen=True, kw_only=True)
class TheoremCase:
    """A theorem on a small case: `make(noise_multiplier, steps, observers)` states it.

    `steps` are whatever makes the view grow (rounds, contributions, compositions); `observers` are
    nested sets, the smallest first. `truth` is an independent computation with the same arguments,
    `exact` whether the theorem claims equality. `refused` are calls that must raise
    PrivacyError."""

    name: str
    make: Make
    truth: Truth | None = None
    exact: bool = False
    noises: tuple[float, ...] = (0.7, 2.0, 9.0)
    steps: tuple[int, ...] = (1, 2, 3)
    observers: tuple[tuple[int, ...], ...] = ((0,),)
    refused: tuple[Callable[[], object], ...] = field(default=(), repr=False)

    def points(self) -> Iterator[tuple[float, int, tuple[int, ...]]]:
        for noise in self.noises:
            for steps in self.steps:
                for observers in self.observers:
                    yield noise, steps, observers


def check_guarantee(case: TheoremCase) -> None:
    """Run every check; raises ConformanceError naming the check, the case and the numbers."""
    for check in (
        check_statement,
        check_profile,
        check_noise,
        check_growth,
        check_composition,
        check_refusals,
        check_truth,
    ):
        check(case)


def check_statement(case: TheoremCase) -> None:
    """It says what, by whom, against whom, at which level, under which hypotheses, and cites where
    it comes from."""
    found = case.make(*next(case.points()))
    explanation = found.epsilon(1e-6).why()
    for words in (found.level, found.of, found.against, found.spec, found.status, "delta = 1e-06"):
        _require(bool(words) and words in explanation, case, f"why() does not say {words!r}")
    _require(
        ":" in found.spec or "-" in found.spec, case, f"the spec id {found.spec!r} names no item"
    )
    _require(found.status in STATUSES, case, f"the status {found.status!r} is unknown")
    _require(
        found.level in ("user", "record", "group"), case, f"the level {found.level!r} is unknown"
    )
    _require(len(found.hypotheses) > 0, case, "no hypothesis is named")
    real = REAL in found.hypotheses
    _require(
        not (real and found.status == "proven"),
        case,
        "what assumes real numbers is not proven but ideal",
    )
    _require(
        real or found.status != "ideal", case, "it is ideal and does not say that numbers are real"
    )
    _require(found.of != found.against, case, f"{found.of} has no secrets from itself")


def check_profile(case: TheoremCase) -> None:
    """epsilon falls with delta, from delta = 0 on, is never negative, and delta at that epsilon is
    not larger."""
    for point in case.points():
        profile = case.make(*point).profile
        last = profile.epsilon(0.0)
        for delta in DELTAS:
            epsilon = profile.epsilon(delta)
            grows = f"epsilon grows with delta at {point}: {epsilon}, {last}"
            _require(0 <= epsilon <= last * (1 + SLACK), case, grows)
            last = epsilon
            if math.isfinite(epsilon):
                back = profile.delta(epsilon)
                _require(
                    back <= delta * (1 + 1e-4),
                    case,
                    f"delta({epsilon}) = {back} > {delta} at {point}",
                )
        for delta in (1.0, -1.0, math.nan):
            _refuses(case, partial(profile.epsilon, delta), f"delta = {delta}")


def check_noise(case: TheoremCase) -> None:
    """More noise never costs more, and negative noise is refused."""
    _refuses(
        case,
        partial(case.make, -1.0, case.steps[0], case.observers[0]),
        "negative noise",
        BruitError,
    )
    for steps in case.steps:
        for observers in case.observers:
            costs = [
                float(case.make(noise, steps, observers).epsilon(1e-6))
                for noise in sorted(case.noises)
            ]
            _falls(
                costs,
                case,
                f"more noise costs more at steps {steps}, observers {observers}: {costs}",
            )


def check_growth(case: TheoremCase) -> None:
    """More steps and more observers never cost less."""
    for noise in case.noises:
        for observers in case.observers:
            costs = [
                float(case.make(noise, steps, observers).epsilon(1e-6))
                for steps in sorted(case.steps)
            ]
            _falls(
                costs[::-1],
                case,
                f"more steps cost less at noise {noise}, observers {observers}: {costs}",
            )
        for steps in case.steps:
            costs = [
                float(case.make(noise, steps, observers).epsilon(1e-6))
                for observers in case.observers
            ]
            _falls(
                costs[::-1],
                case,
                f"more observers cost less at noise {noise}, steps {steps}: {costs}",
            )


def check_composition(case: TheoremCase) -> None:
    """Three compositions are "x 3", cost at least as much as one and at most three times its
    epsilon at delta / 3."""
    for point in case.points():
        profile = case.make(*point).profile
        together, times = compose([profile] * 3).epsilon(1e-6), composed(profile, 3).epsilon(1e-6)
        one, basic = profile.epsilon(1e-6), 3 * profile.epsilon(1e-6 / 3)
        if math.isinf(
            basic
        ):  # the deltas of three are more than there is; what is infinite once stays so
            same = math.isinf(together) == math.isinf(times) and (
                math.isinf(together) or not math.isinf(one)
            )
            _require(same, case, f"once {one}, x 3 {times}, three {together} at {point}")
            continue
        differ = f"x 3 is {times}, three are {together} at {point}"
        _require(abs(together - times) <= 2e-3 * times + SLACK, case, differ)
        _require(
            together >= one * (1 - 1e-9) - SLACK,
            case,
            f"three cost {together}, one {one} at {point}",
        )
        _require(
            together <= basic * (1 + 1e-3) + 1e-3,
            case,
            f"three cost {together} > basic {basic} at {point}",
        )


def check_refusals(case: TheoremCase) -> None:
    """What is not covered raises PrivacyError with a sentence."""
    for number, call in enumerate(case.refused):
        _refuses(case, call, f"call {number}")


def check_truth(case: TheoremCase) -> None:
    """On small cases epsilon at every delta, and delta at every epsilon, equals brute force or lies
    above it."""
    if case.truth is None:
        return
    for point in case.points():
        claimed, truth = case.make(*point).profile, case.truth(*point)
        for delta in DELTAS:
            ours, theirs = claimed.epsilon(delta), truth.epsilon(delta)
            sentence = f"claims {ours}, the truth is {theirs} at {point}, delta = {delta}"
            _require(ours >= theirs * (1 - SLACK) - SLACK, case, sentence)
            _require(not case.exact or ours <= theirs * (1 + SLACK) + SLACK, case, sentence)
        for epsilon in EPSILONS:
            ours, theirs = claimed.delta(epsilon), truth.delta(epsilon)
            sentence = (
                f"claims delta = {ours}, the truth is {theirs} at {point}, epsilon = {epsilon}"
            )
            _require(ours >= theirs * (1 - SLACK) - TINY, case, sentence)


def _falls(values: list[float], case: TheoremCase, message: str) -> None:
    rises = any(b > a * (1 + SLACK) + SLACK for a, b in pairwise(values))
    _require(not rises, case, message)


def _refuses(
    case: TheoremCase, call: Callable[[], object], what: str, kind: type[BruitError] = PrivacyError
) -> None:
    try:
        call()
    except kind as error:
        _require(len(str(error)) > 20, case, f"{what} is refused without a reason: {error}")
        return
    raise ConformanceError(f"{case.name}: {what} is not refused")


def _require(holds: bool, case: TheoremCase, message: str) -> None:
    if not holds:
        raise ConformanceError(f"{case.name}: {message}")

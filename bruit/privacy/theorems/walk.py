"""Loss of a token walk, given the walk that happened (walk:RW-6, RW-V1; hypotheses
walk:RW-0).

Between two visits to the observers the token moves through noisy non-expansive steps. With s_t = 1
when u contributes, the released token is mu-GDP with mu = sqrt(E(s)) / z, E the path energy:
squared slopes of the greatest convex minorant of the partial sums (walk:F-2). Segments compose:
X_uv = sum of E over segments, in local-DP units. The observer is assumed to know the whole walk.
Silent steps must carry noise too. Every hop is a number of fp:FP-0: its noise is discrete, and
rounding and the gradient's floats are in R. A regularizer l2 adds l2 |x| to a gradient: in a ball
of radius `bound` at most l2 bound, which the clip must allow for. With step sizes eta_t the shifts
and the noises are eta_t (walk:RW-3, F-2): E is the weighted energy, never below the plain one.
Steps of a burn-in, without data and without noise, show a token that nobody has touched. A
published last token is one more observation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bruit.arrays import Array
from bruit.domains import nonnegative, positive, whole
from bruit.errors import PrivacyError
from bruit.privacy.events import Mask
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import STANDING, Facts, Theorem
from bruit.privacy.theorems.walk_hypotheses import FLOATS
from bruit.privacy.theorems.walk_realized import Visits, walk_losses
from bruit.tasks.task import Constants


def declared_constants(known: Constants, bound: float | None, clip: float) -> Hypothesis:
    """What the task declares of its losses: nobody verifies it on records that are not his own."""
    ball = "" if bound is None else f" in the ball of radius {bound:g}"
    convex = f", strong convexity mu = {known.strong_convexity:g}" if known.strong_convexity else ""
    return Hypothesis(
        f"losses are convex with the declared smoothness beta = {known.smoothness:g}{convex} and"
        f" slopes of a record no longer than L = {known.lipschitz:g}{ball}, which the clip {clip:g}"
        " never cuts, for every admissible dataset",
        checked=False,
    )


@dataclass(frozen=True, kw_only=True)
class RealizedWalk(Theorem):
    """Walk SGD with steps rate / (1 + t)^decay after `burn_in` idle hops; `published`: all see the
    last token."""

    rate: float
    decay: float = 0.0
    burn_in: int = 0
    published: bool = False
    bound: float | None = (
        None  # radius of the ball the token is projected on, before every gradient
    )
    title: ClassVar[str] = "the path energy of the realized walk"
    spec: ClassVar[str] = "walk:RW-6"
    about: tuple[str, ...] = field(default=("walk-sgd",), kw_only=True)

    def __post_init__(self) -> None:
        positive(self, "rate", "bound", error=PrivacyError)
        nonnegative(self, "decay", error=PrivacyError)
        whole(self, "burn_in", error=PrivacyError)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        facts.noise_multiplier()
        constants = facts.constants
        if constants is None or constants.source != "declared":
            raise PrivacyError(
                "the walk theorem needs a smoothness constant declared before the run (normalized "
                "rows), and there is none; normalize the rows, or use seen_by='everybody' (local DP)"
            )
        if not constants.smoothness < float("inf"):
            raise PrivacyError(
                "the walk theorem is about convex and smooth losses, and this task declares no "
                "smoothness (a network has none); seen_by='everybody' gives local DP"
            )
        largest = 2 / constants.smoothness if constants.smoothness else float("inf")
        if not 0 < self.rate <= largest:
            raise PrivacyError(
                f"the walk theorem needs a step size above 0 and of at most 2/beta = {largest:g}, "
                f"found {self.rate:g}; lower the rate, or use seen_by='everybody' (local DP)"
            )
        self._check_never_clipped(constants, facts.clip)
        self._noise_everywhere(facts)
        step = "constant step" if self.decay == 0 else f"steps falling as t^-{self.decay:g} from"
        ending = (
            "only the last token is published"
            if self.published
            else "the last token is not published"
        )
        return (
            Hypothesis(f"{step} {self.rate:g} <= 2/beta = {largest:g}", checked=True),
            declared_constants(constants, self.bound, facts.clip),
            Hypothesis("every step, silent ones too, carries noise of the same size", checked=True),
            FLOATS,
            Hypothesis(
                "the walk does not depend on the data; the observer may know all of it",
                checked=False,
            ),
            Hypothesis(ending, checked=False),
            *STANDING,
        )

    def _check_never_clipped(self, constants: Constants, clip: float) -> None:
        """A gradient that clipping cuts would make the step expand distances."""
        if not constants.lipschitz < float("inf"):
            raise PrivacyError(
                "no bound on the gradients is declared, so clipping may cut them and break the "
                "non-expansive step; normalize the rows, or (without data) declare --smoothness; "
                "seen_by='everybody' gives local DP"
            )
        if constants.strong_convexity > 0 and self.bound is None:
            raise PrivacyError(
                "the regularizer makes gradients as long as the model, so clipping may cut them "
                "and break the non-expansive step; run the walk without l2, or keep the model in a "
                "ball (bound)"
            )
        longest = constants.lipschitz + constants.strong_convexity * (self.bound or 0.0)
        if not longest <= clip:
            raise PrivacyError(
                f"clipping at {clip:g} may cut gradients as long as {longest:g}, and a cut vector "
                "breaks the non-expansive step; raise the clip or clip the scalar derivative in "
                "the task"
            )

    def _noise_everywhere(self, facts: Facts) -> None:
        lines, visits = len(facts.ledger), max(0, len(facts.meetings.b) - self.burn_in)
        masks = [event.sigma for event in facts.ledger.events if isinstance(event, Mask)]
        early = np.any(facts.ledger.column("clock") < self.burn_in)
        if (
            lines != visits
            or early
            or any(abs(sigma - facts.sigma) > 1e-12 * facts.sigma for sigma in masks)
        ):
            raise PrivacyError(
                f"the walk made {visits} visits but only {lines} of them carry noise of the"
                " release's size; silent steps must be masked with the same sigma"
            )

    def _visits(self, facts: Facts) -> Visits:
        """The walk after its burn-in, with its contributions and step sizes."""
        flags = np.zeros(len(facts.meetings.b), bool)
        flags[facts.ledger.column("clock")[facts.data_lines()]] = True
        path = facts.meetings.b[self.burn_in :]
        sizes = (
            None
            if self.decay == 0
            else np.asarray((1.0 + np.arange(len(path))) ** -self.decay, np.float64)
        )
        return Visits(
            path=path,
            contributed=flags[self.burn_in :],
            n=facts.n,
            published=self.published,
            steps=sizes,
        )

    def rounding(self, facts: Facts) -> float:
        return facts.all_rounding()

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        return self._losses_of_view(self._visits(facts), observers)

    def _losses_of_view(self, walk: Visits, observers: tuple[int, ...]) -> Array:
        return np.nan_to_num(walk_losses(walk, observers))  # nan for the observers themselves

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return (f"of this walk of {len(facts.meetings.b)} visits; another walk has another loss",)

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        advice_on_end = (
            ("silent steps before the last token is published (flush)",) if self.published else ()
        )
        return (
            *advice_on_end,
            "a cool-down (rest) or a cap on contributions (cap), so that more noise lies between "
            "two of them",
        )

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        walk = self._visits(facts)
        m = np.empty((facts.n, facts.n))
        for v in range(facts.n):
            m[:, v] = self._losses_of_view(walk, (v,))
            if progress is not None:
                progress(v + 1, facts.n)
        np.fill_diagonal(m, np.nan)
        return m

"""From the privacy parameters of an estimator to a mechanism; bounds are declared, never read off
the rows.

level "user":    all rows of a peer at once. Its gradient is clipped to norm `clip` (by default the
longest gradient
                 that `row_bound` allows); sensitivity 2 clip.
level "record":  one row of a peer. Gossip and walks add up the rows' gradients, each clipped to
norm `clip`, over
                 a secret sample of chance `sample_rate` (silo:SILO-1, SILO-2). Personalized models:
rows have norm
                 at most `row_bound`; sensitivity 2 L / m for m rows (perso:DP-7).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, cast

import numpy as np

from bruit.errors import ConfigError, PrivacyError
from bruit.mechanisms import Gaussian, Mechanism, RecordSums
from bruit.mechanisms.record_sums import CAPACITY
from bruit.personal.private import gradient_noise
from bruit.privacy.events import Adjacency
from bruit.runs.ahead.rehearsed import Rehearsed
from bruit.runs.result import Run
from bruit.sklearn.holders import EstimatorError
from bruit.tasks import Logistic, Records
from bruit.tasks.linear import LinearTask


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What the user asked for: epsilon or sigma, or neither for no noise at all. `summed`: at record
    level noise is for sums of clipped rows, over the public number `divisor`."""

    epsilon: float | None
    delta: float
    sigma: float | None
    clip: float | None
    level: str
    summed: bool = False
    sample_rate: float = 1.0
    adjacency: str = "replace"
    divisor: float | None = None

    @property
    def private(self) -> bool:
        return self.epsilon is not None or self.sigma is not None

    def check(self) -> None:
        """Refuse what cannot be meant, before anything is run."""
        if self.level not in ("user", "record"):
            raise EstimatorError(
                f"level is 'user' (all rows of a peer) or 'record' (one row), found {self.level!r}"
            )
        if self.level == "user" and (
            (self.sample_rate, self.adjacency, self.divisor) != (1.0, "replace", None)
        ):
            raise EstimatorError(
                "sample_rate, adjacency and divisor are about records; set level='record', or leave"
                " them out"
            )
        if self.epsilon is not None and self.sigma is not None:
            raise EstimatorError(
                f"say how much noise once: found epsilon = {self.epsilon} and sigma = {self.sigma}"
            )
        if self.epsilon is not None and not (self.epsilon > 0 and isfinite(self.epsilon)):
            raise EstimatorError(
                f"epsilon must be a positive number, found {self.epsilon};"
                " a budget of zero allows no reading at all, and None means no privacy"
            )

    def mechanism(self, task: LinearTask, rehearse: Callable[..., Run]) -> Mechanism | None:
        """The noise of every release; for a target epsilon the least noise, given how often the
        busiest peer speaks.

        `rehearse` runs the protocol on another task: blank rows tell how often, nobody's own do.
        """
        if not self.private:
            return None
        noise: Any = self._unmeasured(task)
        if self.epsilon is not None:
            blank = Logistic(
                Records.of(np.zeros((task.peers, 1)), np.ones(task.peers), np.arange(task.peers))
            )
            if isinstance(noise, Gaussian | RecordSums):
                ahead = Rehearsed(
                    task.dim, lambda tried: rehearse(blank, privacy=tried, evaluate_every=0)
                )
                return noise.sized_for(self.epsilon, self.delta, ahead)
            counted = (
                rehearse(blank, privacy=Gaussian(clip=1.0, sigma=1.0), evaluate_every=0)
                .facts()
                .releases()
            )
            measured: Mechanism = noise.calibrate(
                self.epsilon, self.delta, max(1, int(np.max(counted)))
            )
            return measured
        amount = (
            {"sigma": self.sigma}
            if isinstance(noise, Gaussian | RecordSums)
            else {"noise_multiplier": self.sigma / noise.sensitivity}
        )
        given: Mechanism = replace(noise, **amount)
        return given

    def check_kept(self, done: Run) -> None:
        """The ledger of what really happened has the last word on a budget."""
        if self.epsilon is None:
            return
        spent = done.epsilon(delta=self.delta)
        if spent > self.epsilon * (1 + 1e-9):
            raise PrivacyError(
                f"the fit spent epsilon = {float(spent):g} of a budget of {self.epsilon:g};"
                " its models are not given out"
            )

    def _unmeasured(self, task: LinearTask) -> Mechanism:
        clips = self.level == "user" or self.summed
        if clips and self.clip is not None:
            return self._clipped(task, float(self.clip))
        known = task.constants()
        instead = "clip, the largest norm of a gradient, or " if clips else ""
        if known.source != "declared":
            raise EstimatorError(
                f"a private fit needs a bound on what is read: give {instead}row_bound, the largest"
                " norm of a row, chosen without looking at the rows"
            )
        if not isfinite(known.lipschitz):
            raise EstimatorError(
                f"one row can move a squared loss without bound: give {instead}derivative_clip, the"
                " largest residual that counts in full"
            )
        return self._clipped(task, known.lipschitz) if clips else gradient_noise(task)

    def _clipped(self, task: LinearTask, clip: float) -> Gaussian | RecordSums:
        """Of one peer's gradient, or of every row's."""
        if self.level == "user":
            return Gaussian(clip=clip)
        if self.divisor is None and self.adjacency == "add-remove":
            raise EstimatorError(
                "under add-remove the numbers of rows are private, so sums are divided by a number"
                " that is declared: give divisor, about sample_rate times the rows of a peer"
            )
        counts = task.record_counts()
        batch = self.sample_rate * float(counts.mean())
        public = self.adjacency == "replace"  # then so are the numbers of rows
        try:
            return RecordSums(
                clip=clip,
                sample_rate=float(self.sample_rate),
                adjacency=cast(Adjacency, self.adjacency),
                divisor=batch if self.divisor is None else float(self.divisor),
                capacity=int(counts.max()) if public else CAPACITY,
            )
        except ConfigError as error:
            raise EstimatorError(str(error)) from None

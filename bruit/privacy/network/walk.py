"""Loss of a token walk, given the walk that happened (walk:RW-6, proof V1; hypotheses of walk section 10).

Between two visits to the observers the token moves through noisy non-expansive steps. With s_t = 1 when u contributes,
the released token is mu-GDP with mu = sqrt(E(s)) / z, E the path energy: squared slopes of the greatest convex
minorant of the partial sums (walk:F-2). Segments compose: X_uv = sum of E over segments, in local-DP units.
The observer is assumed to know the whole walk. Silent steps must carry noise too.
Rounding a gradient to the lattice of its noise moves it by at most `grain` sensitivities, so a step may expand by that
much: all shifts of a segment in which u contributes grow by the grain, and E by 2 grain k + grain^2 length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bruit.arrays import Array, Bools
from bruit.errors import PrivacyError
from bruit.privacy.events import Mask
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.network.theorem import STANDING, Facts, Theorem


@dataclass(frozen=True)
class RealizedWalk(Theorem):
    """Walk SGD with a constant step size `rate`; the final token is not published."""

    rate: float
    title: ClassVar[str] = "the path energy of the realized walk"
    spec: ClassVar[str] = "walk:RW-6"

    def check(self, facts: Facts) -> tuple[Hypothesis, ...]:
        facts.noise_multiplier()
        constants = facts.constants
        if constants is None or constants.source != "declared":
            raise PrivacyError(
                "the walk theorem needs a smoothness constant declared before the run (normalized rows), and there is"
                " none; normalize the rows, or use seen_by='everybody' (local DP)"
            )
        if self.rate > 2 / constants.smoothness:
            raise PrivacyError(
                f"the walk theorem needs a step size of at most 2/beta = {2 / constants.smoothness:g}, found"
                f" {self.rate:g}; lower the rate, or use seen_by='everybody' (local DP)"
            )
        if constants.lipschitz == float("inf"):
            raise PrivacyError(
                "no bound on the gradients is declared, so clipping may cut them and break the non-expansive step;"
                " normalize the rows, or (without data) declare --smoothness; seen_by='everybody' gives local DP"
            )
        if constants.lipschitz > facts.clip:
            raise PrivacyError(
                f"clipping at {facts.clip:g} may cut gradients as long as {constants.lipschitz:g}, and a cut vector"
                " breaks the non-expansive step; raise the clip or clip the scalar derivative in the task"
            )
        if constants.strong_convexity > 0:
            raise PrivacyError(
                "the regularizer makes gradients as long as the model, so clipping may cut them and break the"
                " non-expansive step; run the walk without l2"
            )
        self._noise_everywhere(facts)
        return (
            Hypothesis(f"constant step {self.rate:g} <= 2/beta = {2 / constants.smoothness:g}", checked=True),
            Hypothesis("losses are convex and smooth, gradients stay below the clip by declaration", checked=True),
            Hypothesis("every step, silent ones too, carries noise of the same size", checked=True),
            Hypothesis("the walk does not depend on the data; the observer may know all of it", checked=False),
            Hypothesis("the last token is not published", checked=False),
            *STANDING,
        )

    def _noise_everywhere(self, facts: Facts) -> None:
        lines = len(facts.ledger)
        masks = [event.sigma for event in facts.ledger.events if isinstance(event, Mask)]
        if lines != len(facts.meetings.b) or any(abs(sigma - facts.sigma) > 1e-12 * facts.sigma for sigma in masks):
            raise PrivacyError(
                f"the walk made {len(facts.meetings.b)} visits but only {lines} of them carry noise of the release's"
                " size; silent steps must be masked with the same sigma"
            )

    def _contributions(self, facts: Facts) -> Bools:
        flags = np.zeros(len(facts.meetings.b), bool)
        flags[facts.ledger.column("clock")[facts.data_lines()]] = True
        return flags

    def _lattice(self, facts: Facts) -> Array:
        """What rounding to the lattice adds to the energy of a peer that contributed  # (n,)."""
        count = facts.releases()
        return np.where(count > 0, 2 * facts.grain * count + facts.grain**2 * len(facts.meetings.b), 0.0)

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        from bruit.kernels.walk import energies

        watching = np.zeros(facts.n, bool)
        watching[list(observers)] = True
        found = np.asarray(energies(facts.meetings.b, self._contributions(facts), watching))
        return np.where(found > 0, found + self._lattice(facts), 0.0)

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return (f"of this walk of {len(facts.meetings.b)} visits; another walk has another loss",)

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return ("a cool-down (rest) or a cap on contributions (cap), so that more noise lies between two of them",)

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        from bruit.kernels.walk import energies

        flags, path, more = self._contributions(facts), facts.meetings.b, self._lattice(facts)
        m = np.empty((facts.n, facts.n))
        watching = np.zeros(facts.n, bool)
        for v in range(facts.n):
            watching[v] = True
            found = energies(path, flags, watching)
            m[:, v] = np.where(found > 0, found + more, 0.0)
            watching[v] = False
            if progress is not None:
                progress(v + 1, facts.n)
        np.fill_diagonal(m, np.nan)
        return m

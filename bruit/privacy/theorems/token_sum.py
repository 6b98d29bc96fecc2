"""Loss of a sum collected by a token, from the path it took and the noise of every hop
(gossip:RING-1, walk:RW-1).

Observers see the token when it arrives, and know their own values and noise. Between two of their
visits others made k_u contributions of u and added noise of variance V, in units of sigma^2: the
view is exactly Gaussian, and

    m(u) = sum over windows of  k_u^2 / V                      infinite where u contributes and nobody adds noise

Hops may carry all of the noise, a share of it or none (gossip:RING-2), and noise without data
(gossip:RING-4). The end of the path is one more window when the last token is published.
Contributions never depend on the token, so a shift of u passes through unchanged. All are whole
multiples of a grid, so that the token is their sum to the bit (fp:FP-2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.privacy.events import Exact, GaussianEvent, Mask
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import STANDING, Facts, Theorem


@dataclass(frozen=True)
class TokenSum(Theorem):
    """A token to which values are added, never anything that depends on it; `published`: all see
    the last one."""

    published: bool = False
    title: ClassVar[str] = "a sum collected by a token, one window of noise after the other"
    spec: ClassVar[str] = "gossip:RING-1, RING-4, walk:RW-1, RW-6"
    about: tuple[str, ...] = field(default=("ring-sum", "walk-sum"), kw_only=True)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        if facts.sigma == 0:
            raise PrivacyError(
                "nothing hides a sum without noise; give the mechanism a sigma above 0"
            )
        _variances(facts)
        clock, path = facts.ledger.column("clock"), facts.meetings.b
        visits = len(clock) == 0 or clock.max() < len(path)
        if not visits or not np.array_equal(path[clock], facts.ledger.column("peer")):
            raise PrivacyError(
                "the ledger holds releases of peers that did not hold the token; use local DP"
            )
        return (
            Hypothesis(
                "every release and every noise of the ledger was added to the token at its hop",
                checked=True,
            ),
            Hypothesis("contributions do not depend on the received token", checked=True),
            Hypothesis(
                "the walk does not depend on the data; the observer may know all of it",
                checked=False,
            ),
            Hypothesis(
                "the last token is " + ("published" if self.published else "not published"),
                checked=False,
            ),
            *STANDING,
        )

    def rounding(self, facts: Facts) -> float:
        return facts.all_rounding()

    def unit(self, facts: Facts) -> float:
        return facts.sigma / (2 * facts.clip)

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        return facts.once(
            (type(self), self.published, observers), lambda: self._losses(facts, observers)
        ).copy()

    def _losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        variances, counts = _variances(facts), _contributions(facts)
        path, total = facts.meetings.b, np.zeros(facts.n)
        for window in self._windows(path, observers):
            k = np.bincount(path[window], counts[window], facts.n)
            noise = variances[window]
            if not noise.any():
                total[k > 0] = np.inf
                continue
            total += np.where(k > 0, k**2 / float(noise.sum()), 0.0)
        return total

    def _windows(self, path: Ints, observers: tuple[int, ...]) -> Iterator[Ints]:
        """Hops of others between two visits to the observers; the last ones only when the token is
        published."""
        seen = np.flatnonzero(np.isin(path, observers)).tolist()
        begin = 0
        for end in [*seen, *([len(path)] if self.published else [])]:
            if end > begin:
                yield np.arange(begin, end)
            begin = end + 1

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        known: tuple[str, ...] = (
            f"of this path of {len(facts.meetings.b)} hops; another path has another loss",
        )
        missed = np.setdiff1d(np.arange(facts.n), facts.meetings.b)
        if len(missed) and len(facts.meetings.b) >= facts.n:
            known += (
                f"the token never came to {len(missed)} of {facts.n} peers: nothing of theirs is "
                f"in the sum",
            )
        if np.isinf(self.losses(facts, observers)).any():
            known += ("some window holds no noise: what is added in it is seen as it is",)
        return known

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return (
            "fewer visits",
            "a share of the noise from everybody (noise='shared'), against colluders",
        )


def _variances(facts: Facts) -> Array:
    """Variance of the noise added at every hop, in units of the mechanism's; PrivacyError for noise
    of other kinds."""
    variances = np.zeros(len(facts.meetings.b))
    z, kinds, clock = (
        facts.sigma / (2 * facts.clip),
        facts.ledger.column("event"),
        facts.ledger.column("clock"),
    )
    for number, event in enumerate(facts.ledger.events):
        if isinstance(event, GaussianEvent) and event.noise_multiplier <= z * (1 + 1e-9):
            variance = (event.noise_multiplier / z) ** 2
        elif isinstance(event, Mask):
            variance = (event.sigma / facts.sigma) ** 2
        elif isinstance(event, Exact):
            variance = 0.0
        else:
            raise PrivacyError(
                f"the sum of a token is accounted for Gaussian noise of multiplier {z:g}, or shares"
                f" of it, for all peers; the ledger holds {event}"
            )
        np.add.at(variances, clock[kinds == number], variance)
    return variances  # (hops,)


def _contributions(facts: Facts) -> Array:
    """How many values were added at every hop  # (hops,)."""
    data = facts.ledger.column("clock")[facts.data_lines()]
    return np.bincount(data, minlength=len(facts.meetings.b)).astype(np.float64)

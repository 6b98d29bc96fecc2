"""A protocol's releases before it runs, found by running it on blank data: what mechanisms are sized
by."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from bruit.mechanisms import Gaussian, Mechanism
from bruit.mechanisms.releases_ahead import Costs
from bruit.runs.ahead.planned_releases import PlannedReleases, planned_loss
from bruit.runs.result import Run


@dataclass(frozen=True)
class Rehearsed:
    """`rehearse` runs the protocol with some noise on rows of one number, where values have `dim`.
    `count` tells what the busiest peer's releases cost, if the ledger of the rehearsal does not;
    `planned` how many there are, if that is known without one."""

    dim: int
    rehearse: Callable[[Mechanism], Run]
    count: Callable[[Run], float] | None = None
    planned: int | None = None

    def most(self) -> int:
        """Counted in a rehearsal with any noise: how often one speaks does not depend on it."""
        if self.planned is not None:
            return self.planned
        return max(1, int(self._counted(self.rehearse(Gaussian(clip=1.0, sigma=1.0)))))

    def costs(self, noise: Mechanism) -> Costs:
        """What the rehearsal draws has the R of a row of `dim` numbers, divided by at least dim. R
        falls as noise grows, but for the rounding of the grid to a power of two, which may double
        the grid: 4 R covers all larger noise. Where releases are more than were rehearsed, R grows
        with them."""
        tried = self.rehearse(noise)
        facts, releases = tried.facts(), self._counted(tried)
        if self.planned is None and releases == _most(tried) > 0:
            drawn = PlannedReleases(_most(tried), 1.0)
            releases = max(releases, planned_loss(drawn, tried.ledger, noise.event()))
        whole = facts.all_rounding()
        amount = (
            whole if whole < math.inf else float(facts.own_rounding().max(initial=0.0))
        )  # else only local DP is said
        more = max(1.0, releases / max(1, _most(tried)))
        return Costs(max(1.0, releases), 4 * self.dim * amount * more)

    def _counted(self, tried: Run) -> float:
        return float(_most(tried)) if self.count is None else self.count(tried)


def _most(tried: Run) -> int:
    return int(tried.facts().releases().max(initial=0))

"""Private counts from simulated users by GOPA: how many fall into each cell, with a curator's error
(perso:GOPA-1, 8).

    user u holds the unit vector of its cell;   count_c = sum of what was published = true count + N(0, n own^2)

Changing one user's cell moves its vector by sqrt(2) in L2, whatever the number of cells: vectors
are accounted for as a whole, exactly, on the graph that was drawn and for who colluded and left.

    >>> import numpy as np
    >>> from bruit.graphs import k_out
    >>> cells = np.repeat([0, 1, 2], [350, 125, 25])
    >>> found = private_histogram(cells, 3, k_out(500, 10), epsilon=1.0, seen_by=[17])
    >>> found.sigma < 8 and bool(np.abs(found.counts - [350, 125, 25]).max() < 5 * found.sigma)
    True
    >>> float(found.guarantee.epsilon(1e-6)) <= 1.0
    True
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph
from bruit.privacy.guarantee import Guarantee
from bruit.privacy.theorems.gopa import gopa_guarantee, thetas
from bruit.statistics.average.canceling.calibration import Noises, noises
from bruit.statistics.average.canceling.simulation import simulate
from bruit.statistics.average.canceling.terms import Terms

MOVE = math.sqrt(2)
"""How far a unit vector moves, in L2, when its user falls into another cell."""


@dataclass(frozen=True, eq=False)
class PrivateCounts:
    """Unbiased counts of the users that stayed, which may be negative; `sigma` is the standard
    error of each.

    `guarantee` is that of the honest user who is worst protected, in the view of the colluders
    together.
    """

    counts: Array  # (cells,)
    sigma: float
    users: int
    guarantee: Guarantee
    noises: Noises

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends for each count by itself  # (cells,)."""
        reach = two_sided(confidence) * self.sigma
        return self.counts - reach, self.counts + reach


def private_histogram(
    cells: Ints,
    width: int,
    graph: Graph,
    epsilon: float,
    delta: float = 1e-6,
    *,
    seen_by: Sequence[int],
    dropped: Sequence[int] = (),
    rollback: bool = True,
    leaving: float = 0.0,
    seed: int = 0,
) -> PrivateCounts:
    """Counts of `width` cells over the users of a graph, one cell each.

    `seen_by` are the users that collude, at least one: everybody is somebody's curious neighbor.
    `dropped` exchanged noise and published nothing; noise is chosen for a share `leaving` of them,
    and the guarantee is computed for those who left indeed.
    """
    chosen_cells = _checked_cells(cells, width, graph.n)
    chosen = noises(graph, epsilon, delta, MOVE, seen_by, leaving)
    terms = Terms(
        number=0,
        peers=graph.n,
        width=width,
        clip=1.0,
        own_sigma=chosen.own_sigma,
        pair_sigma=chosen.pair_sigma,
        degree=int(graph.degrees.max(initial=0)),
    )
    rows = np.zeros((graph.n, width))
    rows[np.arange(graph.n), chosen_cells] = 1.0
    found = simulate(graph, rows, terms, seed, dropped, rollback)
    users = len(found.online)
    guarantee = worst_guarantee(graph, chosen, seen_by, dropped, MOVE)
    return PrivateCounts(
        found.mean * users, users * math.sqrt(found.variance), users, guarantee, chosen
    )


def worst_guarantee(
    graph: Graph, chosen: Noises, seen_by: Sequence[int], dropped: Sequence[int], sensitivity: float
) -> Guarantee:
    """The exact guarantee of the honest peer that the colluders learn most about."""
    honest = sorted(set(range(graph.n)) - set(seen_by) - set(dropped))
    if not honest:
        raise PrivacyError("all users collude or left: there is nobody to protect")
    worst = int(np.nanargmax(thetas(graph, chosen.own_sigma, chosen.pair_sigma, honest)))
    return gopa_guarantee(
        graph, chosen.own_sigma, chosen.pair_sigma, worst, seen_by, dropped, sensitivity=sensitivity
    )


def two_sided(confidence: float) -> float:
    """The z of a two-sided normal interval."""
    if not 0 < confidence < 1:
        raise ConfigError(f"a confidence is a probability between 0 and 1, found {confidence}")
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def _checked_cells(cells: Ints, width: int, users: int) -> Ints:
    found = np.asarray(cells)
    if found.shape != (users,) or found.dtype.kind not in "iu":
        raise ConfigError(
            f"a histogram needs one whole number per user, {users} of them, found {found.dtype} of"
            f" shape {found.shape}"
        )
    if width < 1 or found.min(initial=0) < 0 or found.max(initial=0) >= width:
        strange = int(np.flatnonzero((found < 0) | (found >= width))[0]) if len(found) else 0
        raise ConfigError(
            f"cells are 0..{width - 1}, and user {strange} holds {found[strange]}; count the cells "
            f"again"
        )
    return found.astype(np.int64)

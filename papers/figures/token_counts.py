"""What a private histogram by a token costs on the complete graph, given the walk that happened
(walk:RWE-4, Fig. D.1).

Between two visits of the observer others added M reports by eps0-randomized response, k of them by
u. With the walk known (proven, walk:RW-2) a window with k = 1 costs the numeric shuffle bound at M
reports, one with k > 1 costs k eps0. With the walk hidden, shuffling and subsampling of a window
would give

    log(1 + (1 - (1 - 1/(n-1))^M) (exp(eps_shuffle(M)) - 1))

for every window, which ignores repeated reports and is a heuristic. Windows compose as
heterogeneous statements; every amplified one may fail with an equal part of delta. What follows
from all reports alone, local DP, always holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import bruit as br
from bruit.arrays import Bools, Ints
from bruit.errors import PrivacyError
from bruit.graphs import complete
from bruit.privacy.formulas.heterogeneous import composed
from bruit.privacy.formulas.shuffling import clones
from bruit.privacy.theorems.walk_realized import visits
from bruit.randomness import Replay

PASSES, DELTA, COARSE = 100, 1e-5, 1.15
EACH = (
    DELTA / 2 / (2 * PASSES)
)  # what one window may fail with: twice as many windows as expected may come


@dataclass(frozen=True)
class Histogram:
    """Epsilons at 1e-5 of sampled pairs: mean, least and largest with the walk known; mean
    otherwise and locally."""

    proven: float
    least: float
    most: float
    heuristic: float
    local: float


@lru_cache(maxsize=4096)
def shuffled(local: float, reports: int, delta: float) -> float:
    """The numeric shuffle bound; numbers of reports are rounded down to powers of 1.15, so that few
    are needed."""
    fewer = max(1, math.floor(COARSE ** math.floor(math.log(reports, COARSE) + 1e-9)))
    return clones(local, min(fewer, reports), delta)


def windows(path: Ints, reports: Bools, observer: int, of: int) -> list[tuple[int, int]]:
    """(M, k) of the windows between visits of the observer; what comes after its last visit is not
    seen."""
    seen = np.flatnonzero(path == observer)
    if len(seen) > 2 * PASSES:
        raise PrivacyError(f"{len(seen)} windows fail more often than delta allows; raise PASSES")
    mine = np.concatenate(([0], np.cumsum((path == of) & reports)))
    found, begin = [], 0
    for end in seen.tolist():
        if end > begin:
            found.append((end - begin, int(mine[end] - mine[begin])))
        begin = end + 1
    return found


def known_walk(parts: list[tuple[int, int]], local: float) -> float:
    """Proven: shuffle bounds where u reported once, k eps0 where more often."""
    single = [shuffled(local, m, EACH) for m, k in parts if k == 1]
    repeated = [k * local for _, k in parts if k > 1]
    return composed(
        single + repeated, DELTA / 2, [EACH] * len(single) + [0.0] * len(repeated)
    ).epsilon


def hidden_walk(parts: list[tuple[int, int]], local: float, n: int) -> float:
    """NOT A GUARANTEE. Shuffling and subsampling in every window."""
    chance = [-math.expm1(m * math.log1p(-1 / (n - 1))) for m, _ in parts]
    losses = [
        math.log1p(q * math.expm1(shuffled(local, m, EACH)))
        for q, (m, _) in zip(chance, parts, strict=True)
    ]
    return composed(losses, DELTA / 2, [q * EACH for q in chance]).epsilon


def histogram(
    n: int, local: float = 0.5, rest: int = 1, walks: int = 10, pairs: int = 20
) -> Histogram:
    """Some pairs of every walk; local DP composes the reports of u themselves. `rest`: the
    cool-down, in hops."""
    graph, rng, rows = complete(n), np.random.default_rng(n), []
    for seed in range(walks):
        path = br.Walk(first=seed % n).path(graph, PASSES * n, Replay(seed))
        reports = visits(path, n, cooldown=rest).contributed
        for _ in range(pairs):
            of, observer = rng.choice(n, 2, replace=False).tolist()
            parts = windows(path, reports, observer, of)
            alone = composed([local] * int(np.sum(reports & (path == of))), DELTA).epsilon
            rows.append(
                (
                    min(alone, known_walk(parts, local)),
                    min(alone, hidden_walk(parts, local, n)),
                    alone,
                )
            )
    proven, heuristic, alone = np.array(rows).T
    return Histogram(
        float(proven.mean()),
        float(proven.min()),
        float(proven.max()),
        float(heuristic.mean()),
        float(alone.mean()),
    )

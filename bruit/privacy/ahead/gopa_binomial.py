"""What masked values show when own noise is a sum of proven coins: exact in own noise and rounding
(perso:GOPA-3, 10).

    masked_u = X_u + eta_u + sum_v Delta_uv, eta_u + m/2 ~ Binomial(m, 1/2), Delta_uv = -Delta_vu: N(0, pair^2) rounded

Theorem. Moving X_v by at most B is dominated by the pair (Binomial(h m, 1/2) against its shift by
B), composed with a Gaussian pair of mu = B sqrt(e) / pair. Here h is the number of peers in v's
component of the honest graph, and e the largest distance from v in it. Proof. Given their sum s,
the coins of the component are a uniform set of s ones among h m. Taking B ones out at random turns
this law at s into the one at s - B, and takes t_u >= 0 from peer u, t summing to B. So after moving
X_v the view is: the sum shifted by B, then the same coins as before given the sum, then a further
move of B e_v - t. That move is D w, with D the incidence matrix and w an integer flow of t_u units
along shortest paths from v to each u. It is the same as moving the rounded noise of the edges by w,
of norm at most sum_u t_u sqrt(dist(v, u)) <= B sqrt(e). An integer move of a rounded Gaussian is
the rounding of a moved one. Adaptive composition gives the claim. For `width` numbers, each in its
range, the coins compose `width` times and mu grows by sqrt(width). Rounding X at random changes
nothing. The noise of an edge is drawn on a grid of pair 2^-40, which holds whole numbers, then
rounded: R of fp:FP-0 is that of all draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.sparse.csgraph import shortest_path

from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.privacy.binomial_profile import BinomialProfile
from bruit.privacy.exact import laplacian_among
from bruit.privacy.guarantee import Guarantee, Hypothesis
from bruit.privacy.profile import Rounded
from bruit.privacy.question import Peers, question
from bruit.privacy.theorem import CHANNELS, HONEST, PUBLIC
from bruit.privacy.theorems.gopa import ADVICE, CLOSED
from bruit.privacy.toolbox.binomial import MOST

COINS = Hypothesis("the protected peers flip fair private coins and tell nobody", checked=False)


def pair_grid(pair_sigma: float) -> float:
    """The grid on which the noise of an edge is drawn before it is rounded: a power of two up to
    1."""
    return min(1.0, 2.0 ** math.floor(math.log2(pair_sigma * 2.0**-40)))


def pair_rounding(peers: int, width: int, pair_sigma: float) -> float:
    """R of the noises of all edges that so many peers can have (fp:FP-0)."""
    return width * peers * (peers - 1) / 2 * (pair_grid(pair_sigma) / pair_sigma) ** 2 / 4


def gopa_binomial_guarantee(
    graph: Graph,
    levels: int,
    noise_bits: int,
    pair_sigma: float,
    of: int,
    seen_by: Peers,
    dropped: Iterable[int] = (),
    width: int = 1,
) -> Guarantee:
    """What the observers learn about one peer from all masked values; everybody else who stayed is
    honest.

    `levels` is how far one number may move, `noise_bits` the coins each peer adds to it,
    `pair_sigma` in levels."""
    if not (pair_sigma > 0 and math.isfinite(pair_sigma)) or noise_bits < 1 or width < 1:
        raise PrivacyError(
            f"noise between neighbors, coins and width are positive, found {pair_sigma},"
            f" {noise_bits} and {width}"
        )
    asked = question(graph.n, of, seen_by)
    gone = set(dropped)
    if of in gone:
        raise PrivacyError(
            f"peer {of} dropped out and published nothing: there is nothing to learn about it"
        )
    honest = np.setdiff1d(np.arange(graph.n), [*asked.observers, *gone])
    among = laplacian_among(graph, honest)
    place = int(np.flatnonzero(honest == of)[0])
    size = int(among.sizes[place])
    far = shortest_path(abs(among.matrix), directed=False, unweighted=True, indices=place)
    reach = float(far[np.isfinite(far)].max())
    coins = BinomialProfile(
        size * noise_bits, levels, width, levels * math.sqrt(width * reach) / pair_sigma
    )
    profile = Rounded(coins, pair_rounding(graph.n, width, pair_sigma))
    alone = (
        (f"all neighbors of peer {of} are observers or gone: only its own coins protect it",)
        if size == 1
        else ()
    )
    return Guarantee(
        theorem="the view of GOPA with coins as own noise",
        spec="perso:GOPA-3, GOPA-10",
        status="proven",
        level="user",
        of=asked.of,
        against=asked.against,
        hypotheses=(CLOSED, COINS, HONEST, CHANNELS, PUBLIC),
        profile=profile,
        seen="all masked values, and the observers' own",
        notes=(f"{size * noise_bits} coins of {size} peers hide the sum", *alone),
        advice=ADVICE,
    )


def worst_binomial_epsilon(
    graph: Graph,
    levels: int,
    noise_bits: int,
    pair_sigma: float,
    online: Iterable[int],
    delta: float = 1e-6,
    width: int = 1,
) -> float:
    """No peer online has a larger epsilon in the view of any one other peer; distances are bounded
    by one search each.

    A distance from v is at most twice the largest distance from any other peer of its component."""
    stayed = sorted(set(online))
    found: set[tuple[int, int]] = set()
    for observer in range(graph.n):
        among = laplacian_among(graph, np.array([u for u in stayed if u != observer], np.int64))
        for place in np.unique(among.component, return_index=True)[1]:
            far = shortest_path(
                abs(among.matrix), directed=False, unweighted=True, indices=int(place)
            )
            size = int(among.sizes[place])
            found.add((size, min(size - 1, 2 * int(far[np.isfinite(far)].max()))))
    least: dict[int, int] = {}
    for size, reach in found:
        least[size] = max(reach, least.get(size, 0))
    mus = {size: levels * math.sqrt(width * reach) / pair_sigma for size, reach in least.items()}
    rounding = pair_rounding(graph.n, width, pair_sigma)
    coins = (BinomialProfile(size * noise_bits, levels, width, mu) for size, mu in mus.items())
    return max(Rounded(profile, rounding).epsilon(delta) for profile in coins)


def least_coins(epsilon: float, delta: float, honest: int, levels: int, width: int = 1) -> int:
    """The least even number of coins per peer with which `honest` peers hide that many levels to
    (epsilon, delta)."""
    if not epsilon > 0 or not 0 < delta < 1 or honest < 1 or levels < 1:
        raise PrivacyError(
            f"coins hide levels >= 1 at epsilon > 0 and 0 < delta < 1, of honest peers >= 1; found"
            f" {levels}, {epsilon}, {delta}, {honest}"
        )

    def hidden(half: int) -> bool:
        return BinomialProfile(2 * half * honest, levels, width).delta(epsilon) <= delta

    low, high = 0, 1
    while not hidden(high):
        low, high = high, 2 * high
        if 2 * high * honest > MOST:
            raise PrivacyError(
                f"more than {high} coins a peer would be needed at epsilon = {epsilon:g}, delta ="
                f" {delta:g}; use a larger epsilon"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if hidden(middle) else (middle, high)
    return 2 * high


def calibrated_coins(
    epsilon: float, delta: float, honest: int, width: int = 1, rounding: float = 0.02
) -> tuple[int, int]:
    """Levels and coins per number with which `honest` peers hide each other to (epsilon, delta).

    Rounding at random to few levels adds at most 1 / coins to the variance of the coins: the fewest
    levels are taken for which that is at most `rounding`. Pair noise is left out: its default adds
    less than 1e-9.

    >>> calibrated_coins(1.0, 1e-6, honest=10)
    (3, 66)
    """
    if not 0 < rounding <= 1:
        raise PrivacyError(
            f"rounding adds a part of the variance between 0 and 1, found {rounding}"
        )
    levels = 1
    while True:
        coins = least_coins(epsilon, delta, honest, levels, width)
        if coins * rounding >= 1:
            return levels, coins
        levels = max(levels + 1, math.floor(levels * math.sqrt(1 / (coins * rounding))))

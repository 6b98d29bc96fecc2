"""Private sum on a directed ring: a token collects everybody's contribution, K times around
(gossip:RING-1, 2, 4).

Observers see the token whenever it passes them. Between two passages the others each contribute
once at most, so u's loss is the sum over the windows that hold a contribution of u of

    1 / (variance of the noise others added in that window, in units of sigma^2)

exactly, infinite where a window holds no noise. Two ways to place the noise:

    every n - 1 hops (RING-1)   one full noise per window:  m(u -> v) = K if u < v, K - 1 if u > v
    a share each (RING-2)       std sigma / sqrt(n - 1) at every hop, sigma at the very first

With shares, colluders who leave h honest peers between them see K (n - 1) / h. A token that is
published shows one more window, which may hold no noise: let the last peer add one full noise more
(`with_last_noise`).
Hypotheses: contributions do not depend on the token (if a peer adds g times the token after u and
before the noise, u loses (1 + g)^2 per window), and nobody drops out, or whoever takes over adds
the noise. Peer 0 starts. The mechanism must add noise: with randomized response peer 2 of 3 sees
RR(x_0) + x_1, and the value 2 proves x_1 = 1.
"""

from __future__ import annotations

import math

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.privacy.composition import composed
from bruit.privacy.guarantee import Guarantee, Hypothesis, gaussian
from bruit.privacy.profile import StatementProfile
from bruit.privacy.question import Peers, question
from bruit.privacy.theorem import IDEALLY, STANDING
from bruit.privacy.toolbox import pure

NOT_ADAPTIVE = Hypothesis("contributions do not depend on the received token", checked=False)
WHOLE = Hypothesis(
    "values and noise are whole multiples of one grid, so that sums are exact", checked=False
)
NO_DROPOUT = Hypothesis(
    "nobody drops out, or the peer who takes over adds the missing noise", checked=False
)
ADVICE = (
    "fewer cycles",
    "shares of noise at every peer, against colluders",
    "one more noise before publishing",
)


def spaced_noise(n: int, cycles: int) -> Array:
    """Variance of the noise of every hop, in units of sigma^2: 1 at hops 0, n - 1, 2 (n - 1), ..
    # (n cycles,).

    >>> np.flatnonzero(spaced_noise(5, 3)).tolist()
    [0, 4, 8, 12]
    """
    _check_ring(n, cycles)
    variances = np.zeros(n * cycles)
    variances[:: n - 1] = 1.0
    return variances


def shared_noise(n: int, cycles: int) -> Array:
    """The same with a share of 1 / (n - 1) at every hop and a full noise at the first (RING-2)
    # (n cycles,).

    The print has 1 / n: too little, v's own share does not hide others from v (n = 5, K = 3: loss
    3.5 in place of 3).
    """
    _check_ring(n, cycles)
    variances = np.full(n * cycles, 1.0 / (n - 1))
    variances[0] = 1.0
    return variances


def with_last_noise(variances: Array) -> Array:
    """The same noise, with a full one more at the last hop: what publishing the token needs
    (gossip:RING-4)."""
    more = np.array(variances, dtype=np.float64)
    more[-1] += 1.0
    return more


def error_std(variances: Array) -> float:
    """Standard deviation of the error of the sum, in units of sigma.

    >>> round(4 * error_std(spaced_noise(100, 10)), 10)          # perso:NETDP-2
    13.2664991614
    """
    return math.sqrt(float(np.sum(variances)))


def ring_losses(n: int, variances: Array, seen_by: Peers, published: bool = False) -> Array:
    """Loss of every peer in the joint view of the observers, in local-DP units; nan for themselves
    # (n,).

    >>> ring_losses(5, spaced_noise(5, 3), 2).tolist()
    [3.0, 3.0, nan, 2.0, 2.0]
    >>> ring_losses(5, spaced_noise(5, 3), 2, published=True).tolist()
    [3.0, 3.0, nan, inf, inf]
    """
    noise = _noise_variances(n, variances)
    observers = np.array(question(n, _others(n, seen_by), seen_by).observers)
    losses = np.zeros(n)
    losses[observers] = np.nan
    for window in _windows(n, len(noise), observers, published):
        variance = float(noise[window].sum())
        losses[window % n] += 1 / variance if variance > 0 else math.inf
    return losses


def ring_sum_guarantee(
    n: int,
    variances: Array,
    of: int,
    seen_by: Peers,
    noise_multiplier: float,
    published: bool = False,
) -> Guarantee:
    """What the observers learn about one peer from a private sum with Gaussian noise z = sigma /
    sensitivity: exact.

    >>> about = ring_sum_guarantee(100, spaced_noise(100, 10), 0, 1, 36.3046904)
    >>> about.loss, round(about.epsilon(2e-5), 8)
    (10.0, 0.27691796)
    """
    asked = question(n, of, seen_by)
    loss = float(ring_losses(n, variances, asked.observers, published)[of])
    cycles = len(variances) // n
    shown = f"the token each time it passes the observers, {cycles} cycles" + (
        ", and at the end" if published else ""
    )
    return Guarantee(
        theorem="private sum on a ring, one independent noise per window",
        spec="gossip:RING-1, RING-4",
        status="ideal",
        level="user",
        of=asked.of,
        against=asked.against,
        hypotheses=(
            Hypothesis(
                "noise is added where the schedule says, Gaussian and independent", checked=False
            ),
            NOT_ADAPTIVE,
            NO_DROPOUT,
            Hypothesis(
                "the last token is " + ("published" if published else "not published"), False
            ),
            *IDEALLY,
        ),
        profile=gaussian(loss, noise_multiplier),
        loss=loss,
        noise_multiplier=noise_multiplier,
        notes=_notes(loss, len(asked.observers), published),
        seen=shown,
        advice=ADVICE,
    )


def additive_guarantee(n: int, cycles: int, epsilon: float, delta: float = 0.0) -> Guarantee:
    """Any additive noise that is (epsilon, delta)-LDP, at every (n - 1)-th hop, one observer,
    nothing published.

    Composition over the K windows by privacy loss distributions, never above
    `advanced_composition`.
    """
    _check_ring(n, cycles)
    return Guarantee(
        theorem="private sum on a ring, composition of an additive mechanism",
        spec="gossip:RING-1",
        status="proven",
        level="user",
        of="any peer",
        against="any other peer alone",
        hypotheses=(
            Hypothesis(
                "the mechanism adds noise that does not depend on the value (not randomized "
                "response)",
                False,
            ),
            Hypothesis(
                f"each noise is ({epsilon:g}, {delta:g})-LDP for every contribution in range", False
            ),
            NOT_ADAPTIVE,
            NO_DROPOUT,
            Hypothesis("the last token is not published, nobody colludes", False),
            WHOLE,
            *STANDING,
        ),
        profile=composed(StatementProfile(epsilon, delta), cycles),
        seen=f"the token at its {cycles} passages",
        advice=ADVICE,
    )


def advanced_composition(
    cycles: int, epsilon: float, delta: float, slack: float
) -> tuple[float, float]:
    """The printed total of Thm 5.5: K windows of an additive (epsilon, delta)-LDP mechanism, and
    its delta.

    >>> total, failure = advanced_composition(10, 0.1, 1e-6, 1e-5)
    >>> round(total, 8), round(failure, 12)
    (1.62259805, 2e-05)
    """
    return pure.advanced(epsilon, delta, cycles, slack)


def _windows(n: int, hops: int, observers: Ints, published: bool) -> list[Ints]:
    """Hops of honest peers between two passages of observers; the last ones only when the token is
    published."""
    seen = np.flatnonzero(np.isin(np.arange(hops) % n, observers))
    edges = np.append(seen, hops) if published else seen
    starts = np.append(-1, seen)[: len(edges)]
    windows = [
        np.arange(start + 1, stop)
        for start, stop in zip(starts.tolist(), edges.tolist(), strict=True)
    ]
    return [window for window in windows if window.size]


def _notes(loss: float, observers: int, published: bool) -> tuple[str, ...]:
    if loss < math.inf:
        return ()
    cause = "publishing the token" if published and observers == 1 else "colluding around a peer"
    return (f"some window holds no noise: {cause} shows a sum of contributions as it is",)


def _others(n: int, seen_by: Peers) -> Peers:
    """Somebody who is no observer, to check the question with."""
    watching = {seen_by} if isinstance(seen_by, int) else set(seen_by)
    honest = [u for u in range(n) if u not in watching]
    if not honest:
        raise PrivacyError(
            f"all {n} peers are observers; leave at least one whose data is asked about"
        )
    return honest


def _noise_variances(n: int, variances: Array) -> Array:
    noise = np.asarray(variances, dtype=np.float64)
    if noise.ndim != 1 or noise.size == 0 or noise.size % n:
        raise PrivacyError(
            f"a ring of {n} peers needs one variance per hop of whole cycles, found {noise.shape}"
        )
    if not np.all(noise >= 0):
        raise PrivacyError(f"noise variances are >= 0, found {noise.min():g}")
    return noise


def _check_ring(n: int, cycles: int) -> None:
    if n < 2:
        raise PrivacyError(
            f"a private sum on a ring needs 3 peers or more (2 means local noise), found {n}"
        )
    if cycles < 1:
        raise PrivacyError(f"the token goes around at least once, found {cycles} cycles")

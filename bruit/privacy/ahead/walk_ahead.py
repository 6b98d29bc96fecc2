"""Loss of a token walk before it starts: cap, cool-down, any graph, any observers (walk:RW-14,
RW-V2, RW-3, RW-4).

Reveal the whole walk, and the token each time it comes back to u at least `cooldown` steps after
u's last contribution. Every interval between revelations then holds one contribution of u, at its
start, and ends l noisy steps later:

    l = min { i >= 1 : v_{t+i} in F, or i >= cooldown and v_{t+i} = u }          (infinite: never seen)
    divergence(alpha) = N log(1 + sum_i Pr[l = i] (exp(lambda / i) - 1)) / (alpha - 1)
    delta(epsilon) = E delta_GDP(sqrt(1/l_1 + ... + 1/l_N) / z; epsilon),   l_j independent with the law of l

for at most N contributions, lambda = alpha (alpha - 1) / (2 z^2). The observers F act as one
(walk:RW-4); they may know senders, receivers and the whole walk at no extra cost (walk:RW-5, RW-9).
Contributions of one user that fall between two observations share their noise, so adding up losses
per contribution without these revelations is unsound (walk:RW-15). With step sizes eta_t that vary,
divide z by max eta / min eta (walk:RW-3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.calibrate import least
from bruit.privacy.guarantee import Guarantee, Status
from bruit.privacy.profile import ORDERS, Failing, Profile, RenyiProfile, check_delta
from bruit.privacy.question import question
from bruit.privacy.theorems.walk_hypotheses import UNDECLARED, Descent, limits, standing
from bruit.privacy.theorems.walk_realized import Visits
from bruit.privacy.toolbox.energy_sums import (
    CELLS,
    LEAST_DELTA,
    EnergyLaw,
    convex_nodes,
    energy_sum,
    mixture_divergence,
)
from bruit.privacy.toolbox.path_energy import decays

LONGEST, NEGLIGIBLE = 2**20, 1e-17
"""Segments followed at most, and the chance of a longer one below which it is not followed."""


@dataclass(frozen=True, eq=False)
class SegmentLaw:
    """How many noisy steps lie between a contribution and its first observation or the next
    contribution.

    first[i - 1] = Pr[l = i]; what is left after len(first) steps has probability `beyond` and
    counts as seen then.
    """

    first: Array  # (length,)
    beyond: float
    of: str = "a peer"
    against: str = "another peer"
    cooldown: int = 1

    @property
    def mean_inverse(self) -> float:
        """E[1 / l], what is left counted as seen at the last step followed."""
        steps = np.arange(1, len(self.first) + 1)
        return float(np.sum(self.first / steps) + self.beyond / len(self.first))


def segment_law(
    weights: Any,
    u: int,
    observers: Sequence[int] | Ints,
    cooldown: int = 1,
    length: int | None = None,
) -> SegmentLaw:
    """The law of l for a walk with transition matrix `weights` (dense or sparse, rows sum to one),
    from u.

    p <- e_u;  at step i:  p <- p W;  what lies on F, and from the cool-down on what lies on u, is
    seen and leaves. `length` steps are followed; by default until less than 1e-17 is left, or 40 n
    steps.

    >>> ring = np.array([[1.0 if (i - j) % 5 in (0, 1, 4) else 0.0 for j in range(5)] for i in range(5)]) / 3
    >>> round(segment_law(ring, 0, [1], cooldown=3).mean_inverse, 9)          # walk:RW-8
    0.515330495
    """
    from scipy.sparse import csr_array

    step = csr_array(weights, dtype=np.float64).T.tocsr()
    n = _check_chain(step)
    chosen = np.array(question(n, u, observers).observers)
    check_cooldown(cooldown)
    limit = _check_length(length) if length is not None else min(LONGEST, max(1024, 40 * n))
    here, first = np.zeros(n), np.zeros(limit)
    here[u] = 1.0
    for i in range(1, limit + 1):
        here = np.asarray(step @ here)
        first[i - 1] = here[chosen].sum()
        here[chosen] = 0.0
        if i >= cooldown:
            first[i - 1] += here[u]
            here[u] = 0.0
        if i % 64 == 0 and length is None and i >= cooldown and here.sum() < NEGLIGIBLE:
            first = first[:i]
            break
    against = (
        f"peer {chosen[0]}" if len(chosen) == 1 else f"peers {', '.join(map(str, chosen))} together"
    )
    return SegmentLaw(first, float(here.sum()), f"peer {u}", against, cooldown)


def complete_law(
    n: int, colluders: int = 1, cooldown: int = 1, length: int | None = None
) -> SegmentLaw:
    """The law of l on the complete graph, where every next holder is uniform among all n peers, m
    of them observers.

        Pr[l = i] = (m/n) (1 - m/n)^(i-1)                                    for i < cooldown
                  = (1 - m/n)^(C-1) ((m+1)/n) (1 - (m+1)/n)^(i-C)            for i >= cooldown = C

    >>> round(complete_law(2000).mean_inverse, 9), round(complete_law(2000, cooldown=200).mean_inverse, 9)
    (0.00691467, 0.004243243)
    """
    if n < 2:
        raise PrivacyError(f"a walk needs at least two peers, found {n}")
    if not 1 <= colluders < n:
        raise PrivacyError(
            f"the observers are at least 1 of the {n} peers and leave out the one they look at,"
            f" found {colluders}; give 1 to {n - 1}"
        )
    check_cooldown(cooldown)
    before, after = (
        math.log1p(-colluders / n),
        -math.inf if colluders + 1 == n else math.log1p(-(colluders + 1) / n),
    )
    needed = cooldown + (0 if after == -math.inf else math.ceil(math.log(NEGLIGIBLE) / after))
    limit = _check_length(length) if length is not None else min(LONGEST, needed)
    steps = np.arange(1, limit + 1)
    early = colluders / n * np.exp(before * (steps - 1))
    waited = np.maximum(steps - cooldown, 0)
    decay = np.where(waited == 0, 1.0, 0.0) if after == -math.inf else np.exp(after * waited)
    late = math.exp(before * (cooldown - 1)) * (colluders + 1) / n * decay
    first = np.where(steps < cooldown, early, late)
    left = max(0, limit - cooldown + 1)
    beyond = math.exp(before * min(limit, cooldown - 1)) * (
        0.0 if after == -math.inf and left else math.exp(after * left) if left else 1.0
    )
    against = "another peer" if colluders == 1 else f"{colluders} colluding peers"
    return SegmentLaw(first, beyond, "any peer", against, cooldown)


def check_noise(noise_multiplier: float) -> None:
    """Refuse what hides nothing."""
    if not (noise_multiplier > 0 and math.isfinite(noise_multiplier)):
        raise PrivacyError(
            f"the noise multiplier is sigma / sensitivity, finite and above 0 for any claim, found "
            f"{noise_multiplier}"
        )


def check_cap(contributions: int) -> None:
    """Refuse a cap below one contribution."""
    if contributions < 1:
        raise PrivacyError(
            f"a walk is accounted for at least one contribution a peer, found {contributions}"
        )


def check_cooldown(cooldown: int) -> None:
    """Refuse a cool-down below one step; one step means none."""
    if cooldown < 1:
        raise ConfigError(
            f"a cool-down is a whole number of steps >= 1, found {cooldown}; 1 means no cool-down"
        )


def _check_length(length: int) -> int:
    if length < 1:
        raise ConfigError(f"a segment is followed for at least one step, found {length}")
    return length


def _check_chain(step: Any) -> int:
    """The number of peers; refuses what is no transition matrix. `step` is transposed: its columns
    sum to one."""
    if step.ndim != 2 or step.shape[0] != step.shape[1] or step.shape[0] < 2:
        raise PrivacyError(
            f"a walk needs a square transition matrix of two peers or more, found shape "
            f"{step.shape}"
        )
    sums = np.asarray(step.sum(axis=0)).reshape(-1)
    if (step.nnz and step.data.min() < 0) or not np.all(np.abs(sums - 1) <= 1e-12):
        worst = int(np.argmax(np.abs(sums - 1)))
        raise PrivacyError(
            "the transition probabilities of every peer are >= 0 and sum to one;"
            f" those of peer {worst} sum to {sums[worst]:.12g}"
        )
    return int(step.shape[0])


def _energies(law: SegmentLaw, contraction: float) -> tuple[Array, Array]:
    """e_c(l) with its probabilities; what was not followed to its end counts as seen at the last
    step followed."""
    steps = np.arange(1, len(law.first) + 1)
    return np.append(decays(steps, contraction), decays(steps[-1:], contraction)), np.append(
        law.first, law.beyond
    )


def contribution_divergence(
    law: SegmentLaw, order: float, noise_multiplier: float, contraction: float = 1.0
) -> float:
    """Renyi divergence of one contribution: log(1 + sum_i Pr[l = i] (exp(lambda e_c(i)) - 1)) /
    (alpha - 1).

    >>> round(contribution_divergence(complete_law(2000), 8.0, 5.0), 12)
    0.001300214352
    """
    if not order > 1:
        raise PrivacyError(f"a Renyi order must be above 1, found {order}")
    check_noise(noise_multiplier)
    return mixture_divergence(*_energies(law, contraction), order, noise_multiplier)


def walk_energies(
    law: SegmentLaw, contributions: int, contraction: float = 1.0, cells: int = CELLS
) -> EnergyLaw:
    """The law of 1/l_1 + ... + 1/l_N, rounded up: all the exact route needs, whatever the noise."""
    check_cap(contributions)
    return energy_sum(*_energies(law, contraction), contributions, cells)


@dataclass(frozen=True)
class Ending:
    """What becomes of the last token. Published after `flush` silent noisy steps it adds energy
    1/flush (walk:RW-14).

    Published without a flush, one more segment is a good approximation and no proof: `approximate`
    asks for it.
    """

    published: bool = False
    flush: int = 0
    approximate: bool = False

    def __post_init__(self) -> None:
        if self.flush < 0:
            raise ConfigError(f"a flush is a number of silent steps >= 0, found {self.flush}")
        if self.published and not self.flush and not self.approximate:
            raise PrivacyError(
                "a published last token without a flush is not covered before the walk;"
                " flush it with silent noisy steps first, account for the walk that happened, or"
                " ask for the approximation by one more segment"
            )

    @property
    def proven(self) -> bool:
        return not self.published or self.flush > 0

    @property
    def more_segments(self) -> int:
        return 0 if self.proven else 1

    def energy(self, contraction: float) -> float:
        """What the publication adds."""
        return float(decays([self.flush], contraction)[0]) if self.published and self.flush else 0.0

    def __str__(self) -> str:
        if not self.published:
            return "the last token is not published"
        after = f"after {self.flush} silent noisy steps" if self.flush else "at once"
        return f"only the last token is published, {after}"


UNPUBLISHED = Ending()


def walk_profile(
    law: SegmentLaw,
    contributions: int,
    noise_multiplier: float,
    *,
    route: str = "exact",
    contraction: float = 1.0,
    ending: Ending = UNPUBLISHED,
    orders: tuple[float, ...] = ORDERS,
) -> Profile:
    """delta for every epsilon, by the exact law of the energies (`exact`) or by Renyi divergences
    (`renyi`)."""
    check_cap(contributions)
    check_noise(noise_multiplier)
    segments, more = contributions + ending.more_segments, ending.energy(contraction)
    if route == "exact":
        return walk_energies(law, segments, contraction).profile(noise_multiplier, more)
    if route != "renyi":
        raise ConfigError(f"a walk is accounted for by route 'exact' or 'renyi', found {route!r}")
    energies, weights = convex_nodes(*_energies(law, contraction))
    last = more / (2 * noise_multiplier**2)

    def curve(order: float) -> float:
        return (
            segments * mixture_divergence(energies, weights, order, noise_multiplier) + order * last
        )

    return RenyiProfile(curve, orders)


def walk_ahead(
    law: SegmentLaw,
    contributions: int,
    noise_multiplier: float,
    *,
    route: str = "exact",
    descent: Descent = UNDECLARED,
    ending: Ending = UNPUBLISHED,
    failure: float = 0.0,
    happened: Visits | None = None,
) -> Guarantee:
    """What the observers of the law can learn about its peer from a whole walk, said before the
    walk (walk:RW-14).

    contributions: the cap N; without a cap, a quantile that is exceeded with probability `failure`
    (walk:F-4, `most_visits`). Cap and cool-down are hypotheses: checked on the walk that
    `happened`, if it is given, else assumed. It does not matter where the walk begins: segments
    begin at contributions.

    >>> said = walk_ahead(complete_law(2000), contributions=12, noise_multiplier=5.0)
    >>> round(said.epsilon(1e-6), 2), said.status
    (0.65, 'ideal')
    """
    if not 0 <= failure < 1:
        raise PrivacyError(f"the chance of more contributions lies in [0, 1), found {failure}")
    c = descent.contraction
    inner = walk_profile(
        law, contributions, noise_multiplier, route=route, contraction=c, ending=ending
    )
    status: Status = "ideal" if ending.proven else "heuristic"
    kept = happened is not None and not failure and happened.keeps(contributions, law.cooldown)
    hypotheses = limits(contributions, law.cooldown, failure, kept)
    notes = [
        "senders, receivers and the whole walk may be known to the observers: this costs nothing "
        "more",
        f"{route} route",
    ]
    notes += (
        []
        if ending.proven
        else ["one more segment stands for the published token: an approximation, no bound"]
    )
    advice = (
        ()
        if law.cooldown > 1
        else ("a cool-down: a peer adds only noise for some steps after a contribution",)
    )
    return Guarantee(
        theorem="the walk seen from before its start",
        spec="walk:RW-14",
        status=status,
        level="user",
        of=law.of,
        against=law.against,
        hypotheses=(hypotheses, *standing(descent, not failure, str(ending))),
        noise_multiplier=noise_multiplier,
        profile=Failing(inner, failure) if failure else inner,
        notes=tuple(notes),
        seen="the token each time it reaches an observer"
        + (", and the published one" if ending.published else ""),
        advice=advice,
    )


def least_noise(
    epsilon: float,
    delta: float,
    n: int,
    contributions: int,
    cooldown: int = 1,
    colluders: int = 1,
    *,
    route: str = "exact",
    ending: Ending = UNPUBLISHED,
) -> float:
    """The least noise multiplier that makes a walk on the complete graph (epsilon, delta)-private
    (walk:RW-3, RW-14).

    >>> round(least_noise(1.0, 1e-6, n=2000, contributions=12), 2)
    3.4
    """
    law = complete_law(n, colluders, cooldown)
    return least_noise_of(law, epsilon, delta, contributions, route=route, ending=ending)


def least_noise_of(
    law: SegmentLaw,
    epsilon: float,
    delta: float,
    contributions: int,
    *,
    route: str = "exact",
    descent: Descent = UNDECLARED,
    ending: Ending = UNPUBLISHED,
) -> float:
    """The same for any law of the segments; the answer was checked, whatever the search did."""
    check_delta(delta)
    if not epsilon >= 0:
        raise PrivacyError(f"epsilon must be a number >= 0, found {epsilon}")
    if route == "exact" and delta < LEAST_DELTA:
        raise PrivacyError(
            f"the exact route is too coarse for delta = {delta:g} < {LEAST_DELTA:g}; use "
            f"route='renyi'"
        )
    once = walk_profile(
        law, contributions, 1.0, route=route, contraction=descent.contraction, ending=ending
    )

    def cost(noise_multiplier: float) -> float:
        scaled = once.scaled(noise_multiplier) or walk_profile(
            law,
            contributions,
            noise_multiplier,
            route=route,
            contraction=descent.contraction,
            ending=ending,
        )
        return scaled.delta(epsilon)

    return least(cost, delta)

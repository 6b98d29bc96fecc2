"""GOPA on a random k-out graph: a guarantee before the graph is drawn, and its calibration
(perso:GOPA-4, 5, 6).

Everybody picks k others; n_H = rho n peers are honest and stay online, nobody knows which. If rho n
>= 81 and

    rho k >= 4 log(2 rho n / (3 delta)),   rho k >= 6 log(rho n / 3),   rho k >= 3/2 + 9/4 log(2 e / delta)

then except with probability 2 delta over the graph every honest peer has

    theta <= 1 / (n_H own^2) + S / pair^2,   S = 1 / (floor((k - 1) rho / 3) - 1) + (12 + 6 log n_H) / n_H

so that the protocol, graph included, is (epsilon(theta, delta), 3 delta)-DP (Theorem 4.1).
Calibration (Corollary 4.1):

    own^2 = 2 log(1.25 / delta') / (n_H epsilon^2),   pair^2 = kappa own^2 n_H S,   delta = 3.75 (delta' / 1.25)^r,
    r = kappa / (kappa + 1): as kappa grows, delta falls to 3 delta' (the source prints delta').

What is proven here is the curve of theta; that the graph has theta is Theorem 4.1 of the source
(Bellet's habilitation, tel-03542802), whose proof is not repeated: the guarantee is `quoted`. The
exact view of the graph that was drawn (bruit.privacy.theorems.gopa) is proven.

Of the printed Table 4.1 the column rho = 0.5 is wrong: 34.4 forgets rho in S, and 44.93 (k = 203)
is what is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bruit.errors import PrivacyError
from bruit.privacy.guarantee import Guarantee, Hypothesis
from bruit.privacy.profile import Failing, GaussianProfile
from bruit.privacy.theorem import IDEALLY
from bruit.privacy.theorems.gopa import ADVICE, CLOSED

FEWEST = 81
"""Honest peers that the theorem needs."""


@dataclass(frozen=True)
class Crowd:
    """n peers of which at least a fraction rho is honest and stays; `curious` protects against each
    honest one too.

    Against one curious honest peer the theorem is applied to the n_H - 1 others (perso:GOPA-8).
    """

    n: int
    rho: float = 1.0
    curious: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.rho <= 1:
            raise PrivacyError(f"the honest fraction rho lies in (0, 1], found {self.rho}")
        if self.honest < FEWEST - 1e-9:
            raise PrivacyError(
                f"the k-out theorem needs at least {FEWEST} honest peers, found rho n = "
                f"{self.honest:g};"
                " use the exact view of the graph that was drawn, or a complete graph"
            )

    @property
    def honest(self) -> float:
        """n_H: honest peers whose exchanges count."""
        return self.rho * self.n - self.curious

    @property
    def fraction(self) -> float:
        return self.honest / self.n


def conditions(crowd: Crowd, delta: float) -> tuple[float, float, float]:
    """The three lower bounds on rho k, with the theorem's own delta.

    >>> [round(bound, 6) for bound in conditions(Crowd(10_000), 1e-7 / 3)]
    [104.086333, 48.670368, 44.047174]
    """
    _check_delta("delta", delta)
    many = crowd.honest
    return (
        4 * math.log(2 * many / (3 * delta)),
        6 * math.log(many / 3),
        1.5 + 2.25 * math.log(2 * math.e / delta),
    )


def least_k(crowd: Crowd, delta: float) -> int:
    """The smallest k the theorem covers, with its own delta (a third of the total one)."""
    k = math.ceil(max(conditions(crowd, delta)) / crowd.fraction)
    if k >= crowd.n:
        raise PrivacyError(
            f"the theorem would need k = {k} of {crowd.n} peers; use a complete graph"
        )
    return k


def spread(crowd: Crowd, k: int) -> float:
    """S: the bound on [L^+]_vv of every honest peer in a k-out graph."""
    kept = math.floor((k - 1) * crowd.fraction / 3)
    if kept < 2:
        raise PrivacyError(
            f"the theorem needs floor((k - 1) rho / 3) >= 2, found {kept} for k = {k}; raise k"
        )
    return 1 / (kept - 1) + (12 + 6 * math.log(crowd.honest)) / crowd.honest


def k_out_theta(crowd: Crowd, k: int, own_sigma: float, pair_sigma: float) -> float:
    """theta = 1 / (n_H own^2) + S / pair^2."""
    if not (own_sigma > 0 and pair_sigma > 0):
        raise PrivacyError(
            f"the theorem needs both noises, found own {own_sigma} and pair {pair_sigma}"
        )
    return 1 / (crowd.honest * own_sigma**2) + spread(crowd, k) / pair_sigma**2


def k_out_guarantee(
    crowd: Crowd,
    k: int,
    own_sigma: float,
    pair_sigma: float,
    delta: float,
    sensitivity: float = 1.0,
) -> Guarantee:
    """What all dishonest peers together learn about an honest one, the random graph included.

    `delta` is the total one the theorem is used for: a third goes to the exact curve of theta, two
    to the graph.
    """
    _check_delta("delta", delta)
    if not sensitivity > 0:
        raise PrivacyError(f"the sensitivity is a positive number, found {sensitivity}")
    needed = least_k(crowd, delta / 3)
    if k < needed:
        raise PrivacyError(
            f"the theorem needs k >= {needed} for a total delta of {delta:g}, found k = {k}"
        )
    theta = k_out_theta(crowd, k, own_sigma, pair_sigma)
    enough = Hypothesis(f"rho n >= {FEWEST} and k = {k} >= {needed}", checked=True)
    share = Hypothesis(
        f"at least {crowd.honest:g} of {crowd.n} peers are honest and stay online", checked=False
    )
    return Guarantee(
        theorem="GOPA on a random k-out graph",
        spec="perso:GOPA-4",
        status="quoted",
        level="user",
        of="an honest peer",
        against="all dishonest peers together"
        + (" and one curious honest peer" if crowd.curious else ""),
        hypotheses=(enough, share, CLOSED, *IDEALLY),
        profile=Failing(GaussianProfile(sensitivity * math.sqrt(theta)), 2 * delta / 3),
        loss=theta * own_sigma**2,
        noise_multiplier=own_sigma / sensitivity,
        notes=(f"the graph fails with probability at most {2 * delta / 3:.3g}, which is in delta",),
        seen="all masked values, the graph, and everything that dishonest or dropped peers know",
        advice=ADVICE,
    )


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Noises of Corollary 4.1 for values that move by at most 1, and what they rest on."""

    k: int
    kappa: float
    own_sigma: float
    pair_sigma: float
    spread: float
    theta: float


def kappa_of(delta_prime: float, delta: float, factor: float = 3.0) -> float:
    """kappa with delta = 1.25 factor (delta' / 1.25)^(kappa / (kappa + 1)); factor 3 for the
    theorem, 1 for one graph.

    >>> round(kappa_of(1e-6, 1e-5), 10)
    10.6602750983
    """
    _check_delta("delta'", delta_prime)
    _check_delta("delta", delta)
    if not factor * delta_prime < delta:
        raise PrivacyError(
            f"delta must be above {factor:g} delta' = {factor * delta_prime:g}, found {delta:g}"
        )
    ratio = math.log(delta / (1.25 * factor)) / math.log(delta_prime / 1.25)
    return ratio / (1 - ratio)


def own_noise(honest: float, epsilon: float, delta_prime: float) -> float:
    """sqrt(2 log(1.25 / delta') / n_H) / epsilon: the share of a trusted curator's noise.

    >>> round(own_noise(10_000, 0.1, 1e-8), 10)
    0.6106361322
    """
    if not 0 < epsilon < 1:
        raise PrivacyError(
            f"the corollary is for epsilon in (0, 1), found {epsilon}; use k_out_guarantee"
        )
    _check_delta("delta'", delta_prime)
    return math.sqrt(2 * math.log(1.25 / delta_prime) / honest) / epsilon


def calibrated(
    crowd: Crowd, epsilon: float, delta_prime: float, delta: float, k: int | None = None
) -> Calibration:
    """The noises of Corollary 4.1 for a total (epsilon, delta); k is the least one unless given."""
    kappa, own = kappa_of(delta_prime, delta), own_noise(crowd.honest, epsilon, delta_prime)
    needed = least_k(crowd, delta / 3)
    chosen = needed if k is None else k
    if chosen < needed:
        raise PrivacyError(
            f"the theorem needs k >= {needed} for a total delta of {delta:g}, found k = {chosen}"
        )
    held = spread(crowd, chosen)
    pair = math.sqrt(kappa * crowd.honest * held) * own
    return Calibration(
        k=chosen,
        kappa=kappa,
        own_sigma=own,
        pair_sigma=pair,
        spread=held,
        theta=k_out_theta(crowd, chosen, own, pair),
    )


def _check_delta(name: str, delta: float) -> None:
    if not 0 < delta < 1:
        raise PrivacyError(
            f"{name} must be between 0 and 1, both excluded, found {delta}; 1e-6 is the usual "
            f"choice"
        )

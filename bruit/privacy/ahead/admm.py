"""Private consensus ADMM: what may be claimed in each setting, known by the parameters
(walk:ADMM-5, ADMM-V3, ADMM-V4, ADMM-6, ADMM-7).

One local update moves a dual by at most 4 lambda L gamma and adds lambda times noise of std sigma,
so

    z = sigma / (4 L gamma)          divergence of order alpha = alpha m / (2 z^2), and Gaussian DP, mu = sqrt(m) / z

with the loss m in local-DP units:

    whole transcript, server, or token seen by everybody    m = K_i participations of the user          (local)
    only the models z_k, full participation                 m = 4 K / (n - 1 - c)      lambda <= 1/2    (V3)
                                                            m = K / ((1 - lambda)^2 (n - 1 - c))
    consensus noise: none in the duals, each model          m = K of multiplier n sigma_z / (2 gamma L)  (V4)
    is prox(mean(u) + N(0, sigma_z^2))                      above 1/2 times (lambda / (1 - lambda))^2

c = participants among the observers, who know their own noise. Beyond lambda = 1/2 both grow, at
lambda = 1 neither holds. Heuristics, labelled so, are at the end; the printed theorems are in
`papers/printed/admm.py`. Needs: every user's loss is L-Lipschitz by declaration, exact proximal steps,
data-independent start and schedule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bruit.errors import PrivacyError
from bruit.privacy.guarantee import REAL, Guarantee, Hypothesis, gaussian
from bruit.privacy.profile import Profile, RenyiProfile
from bruit.privacy.theorem import CHANNELS, HONEST, PUBLIC
from bruit.privacy.toolbox.mixtures import geometric
from bruit.privacy.toolbox.sampled_renyi import ORDERS, poisson

EXACT_PROX = Hypothesis(
    "proximal steps are exact, or their error is added to the sensitivity (walk:ADMM-10)", False
)
SCHEDULE = Hypothesis(
    "start, regularizer, participation and number of rounds do not depend on the data",
    checked=False,
)
MODELS_ONLY = Hypothesis(
    "only the models z_k leave the aggregator; all n users take part in every round", False
)
TRUSTED = Hypothesis(
    "the duals stay with a trusted aggregator, which adds fresh noise to each model", checked=False
)


def common(lipschitz: float, gamma: float) -> tuple[Hypothesis, ...]:
    """What every statement below rests on, the declared constants with their values."""
    declared = f"every user's loss is L-Lipschitz for every admissible dataset, with the declared L = {lipschitz:g}"
    return (
        Hypothesis(f"{declared}; proximal steps have gamma = {gamma:g}", checked=False),
        EXACT_PROX,
        SCHEDULE,
        HONEST,
        PUBLIC,
        REAL,
    )


@dataclass(frozen=True)
class AdmmNoise:
    """Lipschitz constant L, proximal parameter gamma, noise std sigma of a dual step, relaxation
    lambda."""

    lipschitz: float
    gamma: float
    sigma: float
    relaxation: float = 0.5

    def __post_init__(self) -> None:
        for name in ("lipschitz", "gamma"):
            if not 0 < getattr(self, name) < math.inf:
                raise PrivacyError(
                    f"ADMM needs a declared, positive {name}, found {getattr(self, name)}"
                )
        if not self.sigma >= 0:
            raise PrivacyError(
                f"the noise of a dual step is a standard deviation >= 0, found {self.sigma}"
            )
        if not 0 < self.relaxation <= 1:
            raise PrivacyError(f"the relaxation of ADMM lies in (0, 1], found {self.relaxation}")

    @property
    def noise_multiplier(self) -> float:
        """z = sigma / (4 L gamma): noise lambda sigma on a step of sensitivity 4 lambda L gamma."""
        return self.sigma / (4 * self.lipschitz * self.gamma)

    @property
    def common(self) -> tuple[Hypothesis, ...]:
        """What every statement with this noise rests on."""
        return common(self.lipschitz, self.gamma)


def transcript_loss(participations: int) -> float:
    """Loss in local-DP units of a user all of whose dual steps are seen: one per participation."""
    _check_count(participations, "participations")
    return float(participations)


def models_loss(n: int, rounds: int, relaxation: float, colluders: int = 0) -> float:
    """V3: loss of a user when only the models are released, never above the transcript; c
    participants look on.

    >>> round(models_loss(100, 50, 0.5), 9)          # times alpha / (2 z^2) = 4: walk:ADMM-5
    2.02020202
    """
    _check_count(rounds, "rounds")
    if n < 2:
        raise PrivacyError(f"consensus needs at least two users, found {n}")
    if not 0 <= colluders < n:
        raise PrivacyError(
            f"0 to {n - 1} of {n} users look on together, found {colluders}; and not the user"
        )
    hiding = n - 1 - colluders
    if hiding == 0 or relaxation == 1:
        return float(rounds)
    grown = 4.0 if relaxation <= 0.5 else 1 / (1 - relaxation) ** 2
    return min(float(rounds), grown * rounds / hiding)


def consensus_multiplier(
    n: int, lipschitz: float, gamma: float, sigma_z: float, relaxation: float = 0.5
) -> float:
    """V4: noise multiplier of one noisy model, n sigma_z / (2 gamma L), divided by lambda / (1 -
    lambda) above 1/2."""
    AdmmNoise(lipschitz, gamma, sigma_z, relaxation)
    if relaxation == 1:
        raise PrivacyError(
            "consensus noise has no bound at relaxation 1: a dual then moves without limit; lower it"
        )
    grown = 1.0 if relaxation <= 0.5 else relaxation / (1 - relaxation)
    return n * sigma_z / (2 * gamma * lipschitz * grown)


def transcript_guarantee(noise: AdmmNoise, participations: int) -> Guarantee:
    """Centralized ADMM when every dual is seen (walk:ADMM-5): 8 alpha K L^2 gamma^2 / sigma^2.

    >>> round(transcript_guarantee(AdmmNoise(1.0, 0.5, 1.0), 50).profile.divergence(2.0), 9)
    200.0
    """
    return _gaussian(
        "every dual step is a Gaussian mechanism",
        "walk:ADMM-5",
        "whoever sees all duals",
        noise.common,
        transcript_loss(participations),
        noise.noise_multiplier,
        f"all dual steps of the user, {participations}",
    )


def federated_guarantee(noise: AdmmNoise, participations: int) -> Guarantee:
    """Federated ADMM against its server, who sees every dual step: 8 alpha K_i L^2 gamma^2 /
    sigma^2 (walk:ADMM-6).

    >>> round(federated_guarantee(AdmmNoise(1.0, 0.5, 20.0), 20).profile.divergence(4.0), 9)
    0.4
    """
    return _gaussian(
        "federated ADMM, local model",
        "walk:ADMM-6",
        "the server",
        noise.common,
        transcript_loss(participations),
        noise.noise_multiplier,
        f"the user's {participations} dual steps",
    )


def decentralized_guarantee(noise: AdmmNoise, participations: int) -> Guarantee:
    """ADMM carried by a token, against everybody together: local, 8 alpha K_i L^2 gamma^2 / sigma^2
    (walk:ADMM-7).

    No network bound is proven: duals of other users carry the perturbation on.

    >>> round(decentralized_guarantee(AdmmNoise(1.0, 0.5, 4.0), 10).profile.divergence(2.0), 9)
    2.5
    """
    return _gaussian(
        "ADMM by a token, local model",
        "walk:ADMM-7",
        "all other users together",
        (*noise.common, CHANNELS),
        transcript_loss(participations),
        noise.noise_multiplier,
        f"the token before and after {participations} visits",
    )


def models_guarantee(noise: AdmmNoise, n: int, rounds: int, colluders: int = 0) -> Guarantee:
    """V3: Algorithm 8.2 with noise in the duals, only the models z_k released, all users in every
    round (walk:ADMM-V3).

    Also secure aggregation with full participation, where an honest-but-curious participant alone
    is c = 1 (ADMM-6).

    >>> round(models_guarantee(AdmmNoise(1.0, 0.5, 1.0), 100, 50).profile.divergence(2.0), 9)
    8.080808081
    """
    loss = models_loss(n, rounds, noise.relaxation, colluders)
    who = (
        "outsiders who see the models"
        if colluders == 0
        else f"{colluders} of the {n} users together"
    )
    proof = (
        "V3, by coupling the duals" if loss < rounds else "the transcript bound, V3 being larger"
    )
    return _gaussian(
        f"models of consensus ADMM: {proof}",
        "walk:ADMM-V3",
        who,
        (MODELS_ONLY, *noise.common),
        loss,
        noise.noise_multiplier,
        f"{rounds} models",
    )


def consensus_guarantee(
    n: int, releases: int, lipschitz: float, gamma: float, sigma_z: float, relaxation: float = 0.5
) -> Guarantee:
    """V4: consensus noise, whatever the participation: K releases of sensitivity 2 gamma L / n
    (walk:ADMM-V4).

    Count one more release if a final model is drawn; the first one does not depend on the data. Any
    number of participants may look on, since they add no noise.

    >>> round(consensus_guarantee(100, 50, 1.0, 0.5, 1.0).profile.divergence(2.0), 9)
    0.005
    """
    _check_count(releases, "releases")
    z = consensus_multiplier(n, lipschitz, gamma, sigma_z, relaxation)
    return _gaussian(
        "consensus noise in ADMM (V4)",
        "walk:ADMM-V4",
        "all others, users too",
        (TRUSTED, *common(lipschitz, gamma)),
        float(releases),
        z,
        f"{releases} noisy models",
    )


def models_estimate(noise: AdmmNoise, n: int, rounds: int) -> Guarantee:
    """Heuristic: 8 alpha K L^2 gamma^2 / (n sigma^2), exact for linear losses, not proven for
    others (walk:ADMM-5)."""
    _check_count(rounds, "rounds")
    if n < 1:
        raise PrivacyError(f"there is at least one user, found n = {n}")
    loss = rounds / n
    return _estimate(
        "models of ADMM as if losses were linear",
        "walk:ADMM-5",
        "outsiders who see the models",
        gaussian(loss, noise.noise_multiplier),
        loss,
        noise.noise_multiplier,
        noise.common,
    )


def federated_estimate(noise: AdmmNoise, n: int, sampled: int, rounds: int) -> Guarantee:
    """Heuristic: K Poisson-sampled steps at q = m / n and z_eff = sqrt(m) sigma / (4 L gamma)
    (walk:ADMM-6).

    Hidden duals depend on past participation, and substitution is not add/remove: no proof.

    >>> about = federated_estimate(AdmmNoise(1.0, 0.5, 20.0), 1000, 100, 200)
    >>> round(about.profile.divergence(4.0) * 1e4, 9), about.status
    (4.000270017, 'heuristic')
    """
    _check_count(rounds, "rounds")
    if not 1 <= sampled <= n:
        raise PrivacyError(f"a round samples 1 to {n} users, found {sampled}")
    z = math.sqrt(sampled) * noise.noise_multiplier
    profile = RenyiProfile(lambda alpha: rounds * poisson(alpha, sampled / n, z), ORDERS)
    return _estimate(
        "federated ADMM, central model, as if subsampling applied",
        "walk:ADMM-6",
        "outsiders who see the models",
        profile,
        math.nan,
        z,
        noise.common,
    )


def federated_estimate_closed(
    noise: AdmmNoise, n: int, sampled: int, rounds: int, order: float
) -> float:
    """Heuristic: the closed form 32 alpha K m L^2 gamma^2 / (sigma^2 n^2) of the same
    (walk:ADMM-6)."""
    z = math.sqrt(sampled) * noise.noise_multiplier
    return rounds * 2 * order * (sampled / n) ** 2 / z**2


def decentralized_estimate(
    noise: AdmmNoise, n: int, participations: int, hops: float = 2.0
) -> Guarantee:
    """Heuristic: K_i contributions, each seen after a geometric time of chance 2 / n (or `hops` /
    n) (walk:ADMM-7).

    >>> about = decentralized_estimate(AdmmNoise(1.0, 0.5, 4.0), 1000, 10)
    >>> round(about.profile.divergence(2.0) * 100, 9)
    3.217086653
    """
    _check_count(participations, "participations")
    if not (noise.sigma > 0 and n > hops):
        raise PrivacyError(
            f"this estimate needs noise and more than {hops:g} users, found {noise.sigma} and {n}"
        )
    z = noise.noise_multiplier
    orders = tuple(x for x in ORDERS if x * (x - 1) < 1400 * z * z)
    profile = RenyiProfile(lambda alpha: participations * geometric(alpha, hops / n, z), orders)
    return _estimate(
        "ADMM by a token on the complete graph, as if its steps were non-expansive",
        "walk:ADMM-7",
        "another user alone",
        profile,
        math.nan,
        z,
        noise.common,
    )


def _gaussian(
    theorem: str,
    spec: str,
    against: str,
    hypotheses: tuple[Hypothesis, ...],
    loss: float,
    z: float,
    seen: str,
) -> Guarantee:
    return Guarantee(
        theorem=theorem,
        spec=spec,
        status="ideal",
        level="user",
        of="any user",
        against=against,
        hypotheses=hypotheses,
        profile=gaussian(loss, z),
        loss=loss,
        noise_multiplier=z,
        seen=seen,
        advice=(
            "fewer rounds",
            "a smaller gamma",
            "noise on the consensus variable, at a trusted aggregator",
        ),
    )


def _estimate(
    theorem: str,
    spec: str,
    against: str,
    profile: Profile,
    loss: float,
    z: float,
    rests: tuple[Hypothesis, ...],
) -> Guarantee:
    return Guarantee(
        theorem=theorem,
        spec=spec,
        status="heuristic",
        level="user",
        of="any user",
        against=against,
        hypotheses=(
            Hypothesis("the estimate is a bound, which is not proven", checked=False),
            *rests,
        ),
        profile=profile,
        loss=loss,
        noise_multiplier=z,
        notes=("an estimate, no guarantee; claim the local bound",),
    )


def _check_count(count: int, what: str) -> None:
    if count < 0:
        raise PrivacyError(f"there are a whole number of {what} >= 0, found {count}")


ASK = {
    "admm-transcript": transcript_guarantee,
    "admm-server": federated_guarantee,
    "admm-token": decentralized_guarantee,
    "admm-models": models_guarantee,
    "admm-consensus-noise": consensus_guarantee,
    "admm-models-estimate": models_estimate,
    "admm-server-estimate": federated_estimate,
    "admm-token-estimate": decentralized_estimate,
}

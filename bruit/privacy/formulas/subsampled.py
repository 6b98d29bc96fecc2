"""Gaussian noise on a secret random sample of the records, and private SGD (gossip:DP-6, DP-9,
walk:ADMM-9).

z = sigma / sensitivity, and the sensitivity of a *sum over a sample* is a norm, not a difference:
`clip` when a contribution comes or goes, 2 * clip when it is replaced. The divergences are in
`bruit.privacy.toolbox.sampled_renyi`.
"""

from __future__ import annotations

import math

from bruit.errors import PrivacyError
from bruit.privacy.events import Adjacency, record_event
from bruit.privacy.guarantee import MOVED, REAL, Guarantee, Hypothesis, gaussian
from bruit.privacy.profile import Profile, RenyiProfile, check_delta
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.privacy.toolbox.sampled_renyi import ORDERS, check, poisson


def sampled_epsilon(rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    """Epsilon of `steps` Poisson-sampled releases, add/remove, by privacy loss distributions:
    sharper than Renyi.

    >>> sampled_epsilon(0.05, 4.0, 100, 1e-5) < dp_sgd(1000, 50, 4.0, 100).epsilon(1e-5)
    True
    """
    check_delta(delta)
    check(2.0, rate, noise_multiplier)
    _check_steps(steps)
    if rate == 0 or steps == 0 or noise_multiplier == math.inf:
        return 0.0
    if noise_multiplier == 0:
        return math.inf
    return compose_epsilon([(record_event(noise_multiplier, rate, "add-remove"), steps)], delta)


def dp_sgd(
    records: int,
    batch: float,
    noise_multiplier: float,
    steps: int,
    adjacency: Adjacency = "add-remove",
) -> Guarantee:
    """Private SGD with Poisson batches of mean size `batch`, all iterates published (gossip:DP-9).

    Every step releases (sum of clipped gradients + N(0, sigma**2)) / batch, sigma = z * clip
    (add-remove) or z * 2 clip (replace); an empty batch releases noise only. The divergence of
    every order is `steps` times `poisson`.

    >>> run = dp_sgd(1000, 50, 4.0, 100)
    >>> round(run.profile.divergence(8.0), 10), round(run.epsilon(1e-5), 2)
    (0.0657269319, 0.51)
    """
    if records < 1 or not 0 <= batch <= records:
        raise PrivacyError(
            f"a batch of {batch} out of {records} records cannot be drawn; give 0 <= batch <= "
            f"records"
        )
    _check_steps(steps)
    rate = batch / records
    check(2.0, rate, noise_multiplier)
    poisson(2.0, rate, noise_multiplier, adjacency)
    profile: Profile = RenyiProfile(
        lambda order: steps * poisson(order, rate, noise_multiplier, adjacency), ORDERS
    )
    if steps == 0 or rate in (0.0, 1.0):  # nothing is seen, or plain Gaussian noise: exact
        profile = gaussian(steps * rate, noise_multiplier)
    return Guarantee(
        theorem="Renyi divergences of the Poisson-sampled Gaussian mechanism, added over the steps",
        spec="gossip:DP-9",
        status="ideal",
        level="record",
        of="one record",
        against="everybody who sees the iterates",
        hypotheses=(
            Hypothesis(
                f"batches are Poisson samples of rate {rate:g}, drawn afresh and kept secret",
                checked=False,
            ),
            Hypothesis(f"per-record gradients are clipped; {MOVED[adjacency]}", checked=False),
            REAL,
        ),
        profile=profile,
        noise_multiplier=noise_multiplier,
        seen=f"all {steps} iterates",
        advice=("smaller batches", "fewer steps"),
        adjacency=adjacency,
    )


def _check_steps(steps: int) -> None:
    if steps < 0:
        raise PrivacyError(f"there are a whole number of steps >= 0, found {steps}")


ASK = {
    "private-sgd": dp_sgd,
}

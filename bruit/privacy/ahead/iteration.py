"""Amplification by iteration: only the last of many noisy non-expansive steps is shown
(gossip:DP-7, walk:F-2).

The last iterate is mu-GDP with mu^2 = E(s) / z^2, E the path energy of
`bruit.privacy.toolbox.path_energy`.
"""

from __future__ import annotations

from bruit.errors import PrivacyError
from bruit.privacy.guarantee import REAL, Guarantee, Hypothesis, gaussian
from bruit.privacy.theorems.walk_hypotheses import UNDECLARED, Descent, declared_maps
from bruit.privacy.toolbox.path_energy import Numbers, path_energy


def last_iterate(
    shifts: Numbers,
    noise_multiplier: float,
    noise: Numbers | None = None,
    lipschitz: Numbers | float = 1.0,
    descent: Descent = UNDECLARED,
) -> Guarantee:
    """What the last iterate says about the peer whose data may move step t by shifts[t], in units
    of the sensitivity.

    noise: standard deviation of every step, in units of the noise multiplier (step sizes eta_t:
    shifts and noise are both eta_t). lipschitz: constant of every step's map, 1 at silent steps.

    >>> said = last_iterate([1, 0, 1, 0, 0, 0], noise_multiplier=2.0)
    >>> round(said.loss, 9), round(said.profile.divergence(2.0), 9)
    (0.666666667, 0.166666667)
    """
    if not noise_multiplier > 0:
        raise PrivacyError(
            f"without noise nothing is amplified; give a noise multiplier > 0, found "
            f"{noise_multiplier}"
        )
    energy = path_energy(shifts, noise, lipschitz)
    return Guarantee(
        theorem="amplification by iteration",
        spec="gossip:DP-7",
        status="ideal",
        level="user",
        of="a contributor",
        against="whoever sees the last iterate",
        profile=gaussian(energy, noise_multiplier),
        loss=energy,
        noise_multiplier=noise_multiplier,
        seen=f"the last of {len(shifts)} iterates, none before",
        hypotheses=(
            Hypothesis(
                "only the last iterate is shown, and both runs start at the same point",
                checked=False,
            ),
            Hypothesis("every step adds independent Gaussian noise after its map", checked=False),
            *descent.lipschitz(),
            *declared_maps(lipschitz),
            REAL,
        ),
        advice=("more noisy steps after the last contribution",),
    )


ASK = {
    "last-iterate": last_iterate,
}

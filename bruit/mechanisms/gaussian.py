"""The Gaussian mechanism: clip in L2, add Gaussian noise to each coordinate (gossip:DP-4, walk:F-1,
fp:FP-0).

    release(x) = toward_zero(times * clip(x)) + N_g(0, (times * sigma)**2)       on the grid g Z, g = sigma 2**-40 or so

N_g is the discrete Gaussian law on the grid, sampled exactly (bruit.randomness.discrete_normal). In
real numbers one release is exactly mu-GDP with mu = sensitivity / sigma = 2 clip / sigma. For the
bits that are sent, the comparison of fp:FP-0 adds R = d g**2 / (4 sigma**2), some 1e-25 a
coordinate, to the account: it is part of the event, composes, and is in every epsilon that is
printed. g is a power of two, so that all sums on the grid are exact, and rounding toward zero
lengthens no row.

With arithmetic = "ideal" values stay real numbers and noise is a plain float: quick, good for
simulations, and refused by real peers, since nothing is proven for the floats that would be sent
(docs/explanation/lattice-attack.md).
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.mechanisms.clip import clip_rows
from bruit.mechanisms.mechanism import Additive, check_parameters, check_rows, power_of_two, snap
from bruit.mechanisms.releases_ahead import ReleasesAhead
from bruit.privacy.events import Event, Exact, GaussianEvent, MaskedEvent
from bruit.randomness import Dice
from bruit.randomness.discrete_normal import discrete_normals

FINEST = 2.0**-40  # the grid, in units of the noise
SURE = 64.0  # deviations of any noise that are never left, but for a chance of 1e-889
WIDEST = (
    2.0**50
)  # grid units that all numbers of a run stay below twice of: sums of a few of them are exact floats
FINEST_GRID, COARSEST_GRID = 2.0**-900, 2.0**900  # between them no float is too small or too large
ARITHMETICS = ("grid", "ideal")


@dataclass(frozen=True)
class Gaussian(Additive):
    """Gaussian noise of absolute standard deviation sigma after clipping to L2 norm clip; sigma =
    0: no noise."""

    clip: float = 1.0
    sigma: float = 0.0
    level: str = "user"
    arithmetic: str = "grid"
    kind: ClassVar[str] = "gaussian"
    keys: ClassVar[tuple[str, ...]] = ("clip", "arithmetic", "level")
    sizes: ClassVar[tuple[str, ...]] = ("sigma", "epsilon")

    def __post_init__(self) -> None:
        check_parameters(self.clip, self.sigma, self.level, "sigma")
        if self.arithmetic not in ARITHMETICS:
            raise ConfigError(
                "arithmetic is 'grid' (proven for what is sent) or 'ideal' (real numbers,"
                f" simulations only), found {self.arithmetic!r}"
            )

    @property
    def spacing(self) -> float:
        return self.fine_grid()

    def fine_grid(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        if self.sigma == 0 or self.arithmetic == "ideal":
            return 0.0
        grid = self.coarsest(times, data, noise)
        if not FINEST_GRID <= grid <= COARSEST_GRID:
            raise ConfigError(
                f"noise of sigma = {self.sigma:g} after a clip of {self.clip:g} needs a grid of"
                f" {grid:g}, which floats cannot compute with; measure the data in other units"
            )
        return power_of_two(grid)

    def coarsest(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        """No grid of such a protocol is wider, and none is less than half as wide: a plan counts
        with this one, whose ratio to the noise falls as the noise grows."""
        return max(times * FINEST * self.sigma, self.reach(times, data, noise) / WIDEST)

    def reach(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        return times * (data * self.clip + noise * SURE * self.sigma)

    @property
    def noise_multiplier(self) -> float:
        """sigma / sensitivity."""
        return self.sigma / self.sensitivity

    def scaled(self, factor: float) -> "Gaussian":
        return replace(self, sigma=factor * self.sigma)

    def event(self) -> Event:
        return self.event_of(1)

    def event_of(self, dim: int, rounding: float | None = None) -> Event:
        if self.sigma == 0:
            return Exact()
        if self.arithmetic == "ideal":
            return GaussianEvent(self.noise_multiplier)
        apart = self.spacing / self.sigma
        amount = dim * apart * apart / 4 if rounding is None else rounding
        return GaussianEvent(self.noise_multiplier, amount)

    def masked_event(self, dim: int, grain: float, shares: int) -> Event:
        if self.sigma == 0:
            return Exact()
        amount = dim * (grain / self.sigma) ** 2 / 4
        return MaskedEvent(
            GaussianEvent(self.noise_multiplier, amount),
            GaussianEvent(self.noise_multiplier / math.sqrt(shares), shares * amount),
        )

    def noise(
        self, dice: Dice, lanes: Ints, steps: Ints | int, use: int, d: int, run: Ints | int = 0
    ) -> Array:
        if self.sigma == 0:
            return np.zeros((len(lanes), d))
        if self.arithmetic == "ideal":
            return self.sigma * dice.normal("noise", lanes, steps, use, d, run)
        spacing = self.spacing
        return discrete_normals(
            dice=dice,
            purpose="noise",
            lanes=lanes,
            steps=steps,
            use=use,
            count=d,
            s=self.sigma / spacing,
            run=run,
            grid=spacing,
        )

    def release_on(
        self,
        grid: float,
        times: float,
        values: Array,
        dice: Dice,
        lanes: Ints,
        steps: Ints | int,
        use: int,
        run: Ints | int = 0,
    ) -> Array:
        rows = self.bare_on(grid, times, values, lanes)
        if self.sigma:
            s = times * self.sigma / grid
            rows += discrete_normals(
                dice=dice,
                purpose="noise",
                lanes=lanes,
                steps=steps,
                use=use,
                count=rows.shape[1],
                s=s,
                run=run,
                grid=grid,
            )
        return rows  # (k, d)

    def bare_on(self, grid: float, times: float, values: Array, lanes: Ints) -> Array:
        rows = clip_rows(check_rows(values, lanes), self.clip)
        rows *= times
        return snap(rows, grid)

    def calibrate(
        self, epsilon: float, delta: float = 1e-6, releases: int = 1, dim: int = 1024
    ) -> "Gaussian":
        """The same mechanism with the least sigma for which all releases together are (epsilon,
        delta)-DP.

            sigma = sensitivity * sqrt(releases) / mu(epsilon, delta)       (exact for Gaussian noise, gossip:DP-4)

        and a little more for finite precision, for rows of up to `dim` numbers.
        """
        if releases < 1:
            raise ConfigError(f"noise is calibrated for 1 release or more, found {releases}")
        return self.calibrate_pair(epsilon, delta, float(releases), dim)

    def sized_for(self, epsilon: float, delta: float, ahead: ReleasesAhead) -> "Gaussian":
        """Rounding included. What is sent is rehearsed with the noise of a single release, which is
        not above the answer."""
        costs = ahead.costs(self.calibrate(epsilon, delta, 1, ahead.dim))
        return self.calibrate_pair(epsilon, delta, costs.loss, ahead.dim, costs.rounding)

    def calibrate_pair(
        self,
        epsilon: float,
        delta: float,
        loss: float,
        dim: int = 1024,
        rounding: float | None = None,
    ) -> "Gaussian":
        """The least sigma for which a pair of peers with this total loss meets (epsilon, delta).

        loss: m[u, v] summed over releases, in local-DP units (1 = one release seen in full), so
        that mu = sensitivity * sqrt(loss) / sigma. rounding: R of the whole protocol, by default
        that of as many releases.
        """
        from bruit.privacy.calibrate import least
        from bruit.privacy.toolbox.gaussian import epsilon_of
        from bruit.privacy.toolbox.rounding import rounded_epsilon

        if not (epsilon > 0 and math.isfinite(epsilon)):
            raise ConfigError(
                f"noise is calibrated for a positive, finite epsilon, found {epsilon}"
            )
        if not (loss >= 0 and math.isfinite(loss)):
            raise ConfigError(f"the loss of a pair must be a finite number >= 0, found {loss}")
        if loss == 0:
            return replace(self, sigma=0.0)
        reach = self.sensitivity * math.sqrt(loss)

        def cost(sigma: float) -> float:
            if self.arithmetic == "ideal":
                return epsilon_of(reach / sigma, delta)
            apart = replace(self, sigma=sigma).spacing / sigma
            amount = math.ceil(loss) * dim * apart**2 / 4 if rounding is None else rounding
            return rounded_epsilon(lambda left: epsilon_of(reach / sigma, left), amount, delta)

        return replace(self, sigma=least(cost, epsilon, start=reach))

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "clip": self.clip,
            "sigma": self.sigma,
            "level": self.level,
            "arithmetic": self.arithmetic,
        }

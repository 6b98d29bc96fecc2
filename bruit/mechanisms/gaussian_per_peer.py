"""Gaussian noise of another size for every peer: a vector of deviations that all have agreed on.

    release_u(x) = toward_zero(times * clip(x)) + N_g(0, (times * sigma_u)**2)     on one grid g Z for all

The vector is public, as the clip is: accountants read it (silo:SILO-8). What a release of u costs
by itself is a Gaussian of multiplier sigma_u / (2 clip), and so says its ledger line. The grid is a
property of the run (fp:FP-1): g and the dithers follow the *largest* deviation, so that all numbers
of the run fit, and each release is charged the rounding of its own, R_u = d g**2 / (4 sigma_u**2).
A peer whose noise is too small for that grid is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.mechanisms.gaussian import Gaussian
from bruit.mechanisms.mechanism import Additive, Mechanism, check_parameters
from bruit.privacy.events import Event
from bruit.privacy.guarantee import Hypothesis
from bruit.randomness import Dice
from bruit.tasks.task import Task

WIDEST_RATIO = 2.0**16  # of the largest deviation to the smallest: beyond it one grid serves badly


@dataclass(frozen=True)
class _OnCommonGrid(Gaussian):
    """The noise of one size, on the grid of all."""

    common: float = 0.0

    @property
    def spacing(self) -> float:
        return self.common


@dataclass(frozen=True)
class GaussianPerPeer(Additive):
    """Gaussian noise of absolute standard deviation sigmas[u] on what peer u releases, after
    clipping to L2 norm clip."""

    clip: float = 1.0
    sigmas: Sequence[float] = ()
    level: str = "user"
    arithmetic: str = "grid"
    kind: ClassVar[str] = "gaussian-per-peer"
    keys: ClassVar[tuple[str, ...]] = ("clip", "arithmetic")
    sizes: ClassVar[tuple[str, ...]] = ("sigmas",)
    unequal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigmas", tuple(map(float, self.sigmas)))  # a file keeps a list
        if not self.sigmas:
            raise ConfigError("give the noise of every peer, sigmas = [1.0, 2.0, ...]; found none")
        for peer, sigma in enumerate(self.sigmas):
            check_parameters(self.clip, sigma, self.level, f"sigmas[{peer}]")
            if sigma == 0:
                raise ConfigError(
                    f"sigmas[{peer}] is 0: peer {peer} would hide nothing, and nobody can say what"
                    " others' noise hides of it; give every peer a noise above 0"
                )
        if self.level != "user":
            raise ConfigError(
                "noise of different sizes hides everything that a peer holds, so its level is"
                f" 'user', found {self.level!r}"
            )
        if max(self.sigmas) > WIDEST_RATIO * min(self.sigmas):
            least, most = int(np.argmin(self.sigmas)), int(np.argmax(self.sigmas))
            raise ConfigError(
                f"peer {most} has {max(self.sigmas) / min(self.sigmas):.3g} times the noise of peer"
                f" {least}; one grid serves ratios up to {WIDEST_RATIO:g}: raise the small ones"
            )

    @cached_property
    def largest(self) -> Gaussian:
        """The mechanism of the peer with most noise, whose grid is that of the run."""
        return Gaussian(self.clip, max(self.sigmas), self.level, self.arithmetic)

    def _of(self, sigma: float) -> Gaussian:
        return _OnCommonGrid(self.clip, sigma, self.level, self.arithmetic, self.spacing)

    @property
    def sigma(self) -> float:
        """Of the peer that adds most: what dithers and silent steps are measured by."""
        return max(self.sigmas)

    def raised(self, peer: int, sigma: float) -> "GaussianPerPeer":
        """The same with more noise at one peer, up to the largest that was agreed on for anybody:
        beyond it numbers might leave the range of the grid."""
        least, most = self.sigmas[peer], max(self.sigmas)
        if not least <= sigma <= most:
            raise ConfigError(
                f"peer {peer} agreed on noise of sigma {least:g}, and others rely on it; more is"
                f" possible up to {most:g}, the largest of all, found {sigma:g}"
            )
        sigmas = tuple(sigma if u == peer else own for u, own in enumerate(self.sigmas))
        return replace(self, sigmas=sigmas)

    def deviations(self) -> tuple[float, ...]:
        return tuple(self.sigmas)

    def parts(self, lanes: Ints) -> Iterator[tuple[Bools, Mechanism]]:
        """One part for each size of noise. Copies of a run count their peers on and on."""
        own = np.array(self.sigmas)[np.asarray(lanes) % len(self.sigmas)]
        for sigma in np.unique(own):
            yield own == sigma, self._of(float(sigma))

    @property
    def spacing(self) -> float:
        return self.largest.spacing

    def fine_grid(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        return self.largest.fine_grid(times, data, noise)

    def reach(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        return self.largest.reach(times, data, noise)

    def compared(self, task: Task) -> tuple[Hypothesis, ...]:
        if len(self.sigmas) != task.peers:
            raise PrivacyError(
                f"sigmas holds the noise of {len(self.sigmas)} peers, and there are {task.peers};"
                " give one number for each, in their order"
            )
        return ()

    def scaled(self, factor: float) -> "GaussianPerPeer":
        return replace(self, sigmas=tuple(factor * sigma for sigma in self.sigmas))

    def event(self) -> Event:
        """Of the peer that adds least: no other release costs more."""
        return self._of(min(self.sigmas)).event()

    def event_of(self, dim: int, rounding: float | None = None) -> Event:
        return self._of(min(self.sigmas)).event_of(dim, rounding)

    def noise(
        self, dice: Dice, lanes: Ints, steps: Ints | int, use: int, d: int, run: Ints | int = 0
    ) -> Array:
        rows = np.empty((len(lanes), d))
        at, runs = np.broadcast_to(steps, len(lanes)), np.broadcast_to(run, len(lanes))
        for here, one in self.parts(lanes):
            rows[here] = one.noise(dice, lanes[here], at[here], use, d, runs[here])
        return rows

    def bare_on(self, grid: float, times: float, values: Array, lanes: Ints) -> Array:
        return self.largest.bare_on(grid, times, values, lanes)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "clip": self.clip,
            "sigmas": list(self.sigmas),
            "level": self.level,
            "arithmetic": self.arithmetic,
        }

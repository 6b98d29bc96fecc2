"""How close noisy iterates come to the fixed point: the published bound and the direct recursion.

Direct recursion, any relaxation l in (0, 1], blocks that move with probability q independently of
the state:

    E_0 = D,   E_{k+1} = (1 - q) E_k + q [ ((1 - l (1 - tau)) sqrt(E_k) + l zeta)^2 + l^2 p sigma^2 ]

bounds E|u_k - u*|^2 (independent noise, then Minkowski). For zeta = 0 and l = 1 it tends to p
sigma^2 / (1 - tau^2).
Spec: walk:ADMM-3; Theorem 8.5 is the published form, whose proof takes a relaxation above 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

from bruit.algorithms.admm.iteration import check_relaxation
from bruit.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Utility:
    """What the bounds know of an iteration."""

    contraction: float  # tau < 1
    dim: int  # p, numbers in the whole state: peers x model for consensus ADMM
    sigma: float  # noise of the iteration
    distance: float  # D = |u_0 - u*|^2
    active: float = 1.0  # q, chance of a block to move
    error: float = 0.0  # zeta, root of E|e|^2

    def __post_init__(self) -> None:
        if not 0 <= self.contraction < 1:
            raise ConfigError(f"the bounds need a contraction in [0, 1), found {self.contraction}")
        if not 0 < self.active <= 1:
            raise ConfigError(f"blocks move with a probability in (0, 1], found {self.active}")
        sizes = {
            "dim": self.dim,
            "sigma": self.sigma,
            "distance": self.distance,
            "error": self.error,
        }
        for name, size in sizes.items():
            if not (size >= 0 and isfinite(size)):
                raise ConfigError(f"{name} must be a number >= 0, found {size}")

    def direct(self, steps: int, relaxation: float = 1.0) -> float:
        """The direct recursion after so many steps."""
        share = check_relaxation(relaxation)
        shrink, noise = 1 - share * (1 - self.contraction), share**2 * self.dim * self.sigma**2
        bound = self.distance
        for _ in range(steps):
            moved = (shrink * sqrt(bound) + share * self.error) ** 2 + noise
            bound = (1 - self.active) * bound + self.active * moved
        return bound

    def best(self, steps: int) -> tuple[float, float]:
        """The relaxation with the least direct bound, and that bound."""
        from scipy.optimize import minimize_scalar

        found = minimize_scalar(
            lambda share: self.direct(steps, float(share)), bounds=(1e-6, 1.0), method="bounded"
        )
        return min(
            ((float(found.x), float(found.fun)), (1.0, self.direct(steps))),
            key=lambda pair: pair[1],
        )

    def published(self, steps: int) -> float:
        """Theorem 8.5, (1 - q^2 (1 - tau) / 8)^k D plus its noise terms; stated for sigma^2 > 1 -
        tau only."""
        gap, q = 1 - self.contraction, self.active
        linear = (sqrt(self.dim) * self.sigma + self.error) / (sqrt(q) * gap)
        square = (self.dim * self.sigma**2 + self.error**2) / (q * gap) ** 3
        return (1 - q**2 * gap / 8) ** steps * self.distance + 8 * (linear + square)

    def report(self, steps: int) -> str:
        """The bounds in words, best relaxation first."""
        share, bound = self.best(steps)
        outside = (
            ""
            if self.sigma**2 > 1 - self.contraction
            else ", outside its hypothesis sigma^2 > 1 - tau"
        )
        return "\n".join(
            (
                f"E|u - u*|^2 after {steps} steps, contraction {self.contraction:g}, blocks active "
                f"{self.active:g}",
                f"  {bound:.6g} with the best relaxation {share:.4g} (direct recursion)",
                f"  {self.direct(steps):.6g} with relaxation 1 (direct recursion)",
                f"  {self.published(steps):.6g} published{outside}",
            )
        )

"""Guarantee: a privacy statement that names its theorem, its status and its hypotheses.

A loss m is in local-DP units: one release of one peer, seen by everybody, is 1. With Gaussian noise of multiplier z
the view is exactly mu-GDP with mu = sqrt(m) / z, and epsilon(delta) follows without slack (gossip:DP-1, LG-1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bruit.errors import PrivacyError
from bruit.privacy.accountants.gaussian import epsilon_of

Status = Literal["proven", "published", "heuristic"]


@dataclass(frozen=True)
class Hypothesis:
    """One condition of a theorem, and whether the library checked it or has to assume it."""

    text: str
    checked: bool

    def __str__(self) -> str:
        return f"{'checked' if self.checked else 'assumed'}: {self.text}"


@dataclass(frozen=True)
class Guarantee:
    """What `against` can have learned about `of`, as a loss in local-DP units or directly as an epsilon."""

    theorem: str
    spec: str
    status: Status
    level: str
    of: str
    against: str
    hypotheses: tuple[Hypothesis, ...]
    loss: float
    noise_multiplier: float
    notes: tuple[str, ...] = ()
    fixed_epsilon: tuple[float, float] | None = None

    def epsilon(self, delta: float = 1e-6) -> Epsilon:
        """The epsilon of this statement at delta, as a number that explains itself."""
        if not 0 < delta < 1:
            raise PrivacyError(f"delta must lie strictly between 0 and 1, found {delta}")
        if self.fixed_epsilon is not None:
            if self.fixed_epsilon[1] != delta:
                raise PrivacyError(f"this guarantee was composed for delta = {self.fixed_epsilon[1]:g}; ask for that")
            return Epsilon(self.fixed_epsilon[0], delta, self)
        if self.loss == 0:
            return Epsilon(0.0, delta, self)
        if self.noise_multiplier == 0:
            return Epsilon(float("inf"), delta, self)
        return Epsilon(epsilon_of(self.loss**0.5 / self.noise_multiplier, delta), delta, self)


class Epsilon(float):
    """A privacy loss that explains itself: `float(e)` is the number, `e.why()` the statement behind it."""

    delta: float
    guarantee: Guarantee

    def __new__(cls, value: float, delta: float, guarantee: Guarantee) -> Epsilon:
        made = super().__new__(cls, value)
        made.delta, made.guarantee = delta, guarantee
        return made

    def why(self) -> str:
        """Theorem, status, level, who learns about whom, hypotheses, and what the default fell back from."""
        about = self.guarantee
        noise = f", noise multiplier {about.noise_multiplier:.6g}" if about.noise_multiplier else ""
        lines = [
            f"epsilon = {float(self):.6g} at delta = {self.delta:g} ({about.level} level), {about.status}",
            f"what {about.against} could have learned about {about.of}",
            f"by {about.theorem} ({about.spec}): loss {about.loss:.6g} in local-DP units{noise}",
        ]
        lines += [f"  {hypothesis}" for hypothesis in about.hypotheses]
        lines += [f"  note: {note}" for note in about.notes]
        return "\n".join(lines)

"""The discrete Gaussian mechanism: integer noise, sampled exactly (Canonne, Kamath, Steinke 2020, arXiv:2004.00010).

    P(Z = k) proportional to exp(-k**2 / (2 s**2)),   s = sigma / grid;      release(x) = snap(clip(x)) + grid * Z

Values on the grid have L2 sensitivity 2 clip / grid in units of the grid, so one release is rho-zCDP with
rho = sensitivity**2 / (2 sigma**2) in any dimension (Theorem 14): divergence alpha * rho, then the tight conversion of
gossip:DP-2. Sampler (Algorithms 1 to 3): with t = floor(s) + 1, draw a discrete Laplace number Y of scale t from
Bernoulli(exp(-u / t)) and Bernoulli(exp(-1)) coins, and keep it with probability exp(-(|Y| - s**2 / t)**2 / (2 s**2)).

A coin compares a 64-bit word with exp(-gamma) in floats; when they are too close to tell (once in some 2**40 coins),
more words are read and exp(-gamma) is enclosed by integers: every decision is that of real numbers.
A row reads its own stream of words in order, so a row does not depend on the batch.
"""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.mechanisms.mechanism import Additive, check_parameters
from bruit.privacy.events import DiscreteGaussianEvent, Event, Exact
from bruit.randomness import Dice

_LARGEST = 2.0**40  # of sigma / grid: integers and float decisions stay well inside 53 bits
_BULK = 2**9  # numbers from which the compiled sampler is loaded
_CHUNK = 2**15  # numbers whose words are held at a time


@dataclass(frozen=True)
class DiscreteGaussian(Additive):
    """Exactly sampled integer noise times grid (a power of two), after clipping to L2 norm clip; sigma = 0: none."""

    clip: float = 1.0
    sigma: float = 0.0
    grid: float = 2.0**-10
    level: str = "user"
    kind: ClassVar[str] = "discrete_gaussian"

    def __post_init__(self) -> None:
        check_parameters(self.clip, self.sigma, self.level, "sigma")
        if not (self.grid > 0 and math.isfinite(self.grid) and math.frexp(self.grid)[0] == 0.5):
            raise ConfigError(f"grid must be a power of two, so that sums are exact, found {self.grid}; try 2**-10")
        if max(self.sigma, self.clip) / self.grid > _LARGEST:
            raise ConfigError(f"grid {self.grid} is too fine for clip {self.clip} and sigma {self.sigma}; enlarge it")

    @property
    def spacing(self) -> float:
        return self.grid

    @property
    def noise_multiplier(self) -> float:
        """sigma / sensitivity."""
        return self.sigma / self.sensitivity

    def event(self) -> Event:
        return DiscreteGaussianEvent(self.noise_multiplier) if self.sigma else Exact()

    def noise(self, dice: Dice, lanes: Ints, steps: Ints | int, use: int, d: int, run: Ints | int = 0) -> Array:
        if self.sigma == 0 or d == 0:
            return np.zeros((len(lanes), d))
        lanes = np.asarray(lanes)
        steps, run = np.broadcast_to(steps, lanes.shape), np.broadcast_to(run, lanes.shape)
        rows = max(1, _CHUNK // d)
        out = np.empty((len(lanes), d))
        for start in range(0, len(lanes), rows):
            part = slice(start, start + rows)
            out[part] = _integers(dice, (lanes[part], steps[part], use, run[part]), d, self.sigma / self.grid)
        return self.grid * out  # (len(lanes), d)

    def calibrate(self, epsilon: float, delta: float = 1e-6, releases: int = 1) -> "DiscreteGaussian":
        """The least sigma for which all releases together are (epsilon, delta)-DP by zCDP accounting."""
        from bruit.privacy.accountants.gaussian import zcdp_to_epsilon
        from bruit.privacy.calibrate import least

        if not (epsilon > 0 and math.isfinite(epsilon)):
            raise ConfigError(f"noise is calibrated for a positive, finite epsilon, found {epsilon}")
        if releases < 1:
            raise ConfigError(f"noise is calibrated for 1 release or more, found {releases}")

        def cost(sigma: float) -> float:
            return zcdp_to_epsilon(releases * 0.5 * (self.sensitivity / sigma) ** 2, delta)

        return replace(self, sigma=least(cost, epsilon, start=self.sensitivity))

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "clip": self.clip, "sigma": self.sigma, "grid": self.grid, "level": self.level}


def _integers(dice: Dice, address: tuple[Ints, Ints, int, Ints], d: int, s: float) -> Ints:
    """Discrete Gaussians of parameter s for each lane, each row from its own words."""
    lanes, steps, use, run = address
    out = np.empty((len(lanes), d), dtype=np.int64)
    undone = np.arange(len(lanes))
    count = (12 if s > 2 else 24) * d + 64  # words of a row: 8 to 19 a number on average
    if out.size >= _BULK or "bruit.kernels.noise" in sys.modules:
        undone = _compiled(dice, address, out, s, count)
    for row in undone:
        one = slice(row, row + 1)
        stream = _stream(dice, (lanes[one], steps[one], use, run[one]), count)
        out[row] = [sample(stream, s) for _ in range(d)]
    return out


def _compiled(dice: Dice, address: tuple[Ints, Ints, int, Ints], out: Ints, s: float, count: int) -> Ints:
    """Fill rows of out at speed; return the rows floats could not decide. Rows short of words start again with more."""
    from bruit.kernels import noise

    lanes, steps, use, run = address
    states = np.full(len(lanes), noise.SHORT, dtype=np.int64)
    while (short := np.flatnonzero(states == noise.SHORT)).size:
        words = dice.words("noise", lanes[short], steps[short], use, count, run[short])
        rows, verdicts = out[short], states[short]
        noise.discrete_rows(words, rows, s, verdicts)
        out[short], states[short], count = rows, verdicts, 2 * count
    return np.flatnonzero(states == noise.UNSURE)


def _stream(dice: Dice, address: tuple[Ints, Ints, int, Ints], count: int) -> Iterator[int]:
    """The words of one row, one by one, as many as are asked for."""
    lanes, steps, use, run = address
    done = 0
    while True:
        words = dice.words("noise", lanes, steps, use, count, run)[0]
        yield from words[done:].tolist()
        done, count = count, 2 * count


def sample(words: Iterator[int], s: float, band: float = 1e-12) -> int:
    """One discrete Gaussian number of parameter s. A wide band sends every coin to the exact path: same result."""
    t = math.floor(s) + 1
    p, q = s.as_integer_ratio()
    spare = 2**64 % t
    while True:
        word = next(words)
        if word >= 2**64 - spare:
            continue
        u = word % t
        if not _coin(words, u, t, band):
            continue
        turns = 0
        while _coin(words, 1, 1, band):
            turns += 1
        size = u + t * turns
        negative = next(words) & 1
        if negative and size == 0:
            continue
        gap = size * t * q * q - p * p  # (size - s**2 / t), over a common denominator
        if _coin(words, gap * gap, 2 * (p * q * t) ** 2, band):
            return -size if negative else size


def _coin(words: Iterator[int], numerator: int, denominator: int, band: float) -> bool:
    """True with probability exp(-numerator / denominator): is a uniform number, read 64 bits at a time, below it?"""
    word = next(words)
    bound = math.exp(-numerator / denominator) * 2.0**64
    if word < bound * (1 - band) - 4096:
        return True
    if word > bound * (1 + band) + 4096:
        return False
    bits = 64
    while True:
        below, above = exp_interval(numerator, denominator, bits)
        if word < below:
            return True
        if word >= above:
            return False
        word, bits = word << 64 | next(words), bits + 64


def exp_interval(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Integers around exp(-numerator / denominator) * 2**bits, at most 2 apart.

    Taylor series at a 2**k-th part of the exponent, at most 1/2, then k squarings, all rounded outward.
    """
    halvings = (numerator // denominator + 1).bit_length() + 1
    guard = bits + 3 * halvings + 64
    x = (numerator << guard) // (denominator << halvings)  # the true value lies in [x, x + 1)
    low, high = _taylor(x + 1, guard) - 1, _taylor(x, guard) + 2
    for _ in range(halvings):
        low, high = low * low >> guard, (high * high >> guard) + 1
    return low >> (guard - bits), (high >> (guard - bits)) + 1


def _taylor(x: int, guard: int) -> int:
    """exp(-x / 2**guard) * 2**guard, rounded down; the error of the 16 bits more it works with is below 1/100."""
    term = total = 1 << (guard + 16)
    k = 0
    while term:
        k += 1
        term = (term * x >> guard) // k
        total += -term if k % 2 else term
    return total >> 16

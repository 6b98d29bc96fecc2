"""One noisy bit about two rows: a comparison, then randomized response, all inside one circuit
(perso:LDP-11).

    z = h(x, y) xor [r < t],   r = r_garbler xor r_evaluator (k bits),   t = ceil(2^k / (e^eps + 1)),   p = t / 2^k
    epsilon of the bit = ln((2^k - t) / t) <= eps, exactly;      h^ = low + (high - low) (z - p) / (1 - 2 p)

h: one of `comparisons`. Each party contributes r whole, so one honest party is enough to make it
uniform, and neither knows it. Where numbers are equal, `auc` and `kendall` decide by one more such
coin per comparison: the mean over coins is the usual 1/2 (auc) and 0 (tau-a), and a noisy bit is
still all that comes out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from bruit.arrays import Array, Bools
from bruit.errors import ConfigError, PrivacyError
from bruit.statistics.holders.circuits import Builder, Circuit, below, evaluate
from bruit.statistics.holders.comparisons import RANGE_BITS, STATISTICS, Comparison
from bruit.statistics.local.coins import flip_threshold

WIDTH = 32  # bits of a number
Numbers = NDArray[np.uint32]


@final
@dataclass(frozen=True)
class NoisyBit:
    """epsilon: what one pair may cost each of its two rows, by noise on a lattice of
    2^-noise_bits. within: between which two the numbers lie whose distance is asked for."""

    statistic: str
    epsilon: float
    noise_bits: int = 24
    within: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise ConfigError(
                f"no circuit compares rows for {self.statistic!r}; there are: "
                f"{', '.join(STATISTICS)}"
            )
        self._check_range()
        if type(self.noise_bits) is not int or not 4 <= self.noise_bits <= 63:
            raise ConfigError(f"the noise takes 4 to 63 bits, found {self.noise_bits!r}")
        if 2 * self.threshold >= 1 << self.noise_bits:
            raise PrivacyError(
                f"epsilon = {self.epsilon:g} per pair is below what {self.noise_bits} bits of noise"
                " can show; give a larger epsilon, fewer rounds, or more noise_bits"
            )

    def _check_range(self) -> None:
        if not self.comparison.ranged:
            if self.within is not None:
                raise ConfigError(
                    f"{self.statistic} only asks which number is larger; leave low and high out"
                )
        elif self.within is None:
            raise ConfigError(
                f"{self.statistic} asks how far numbers are apart: declare low and high, without "
                "looking at the data"
            )
        elif not (self.within[0] < self.within[1] and math.isfinite(self.span)):
            raise ConfigError(
                f"numbers lie between two finite ones, low < high, found {self.within[0]} and "
                f"{self.within[1]}"
            )

    @property
    def span(self) -> float:
        """high - low of the declared range; 1 without one."""
        return 1.0 if self.within is None else self.within[1] - self.within[0]

    @property
    def comparison(self) -> Comparison:
        return STATISTICS[self.statistic]

    @property
    def values(self) -> tuple[float, float]:
        """What bits 0 and 1 stand for."""
        about = self.comparison
        if self.within is None:
            return about.values
        span = self.span * 2**RANGE_BITS / (2**RANGE_BITS - 1)
        return about.values[0] * span**about.power, about.values[1] * span**about.power

    def numbers(self, table: Array) -> Numbers:
        """Rows in circuit form: numbers in order, those of a declared range as its whole parts."""
        found = ordered(table)
        if self.within is None:
            return found
        low, high = self.within
        count = self.comparison.ranged
        column = np.asarray(table, dtype=np.float64)[:, :count]
        if column.min() < low or column.max() > high:
            raise ConfigError(
                f"numbers reach from {column.min():g} to {column.max():g}, beyond the declared "
                f"{low:g}..{high:g}; move them to the nearest end (--clamp), or declare a "
                "larger range"
            )
        share = (column - low) / self.span
        found[:, :count] = np.rint(share * (2**RANGE_BITS - 1)).astype(np.uint32)
        return found

    @cached_property
    def threshold(self) -> int:
        """t: this many of the 2^noise_bits words flip the bit; rounded to the private side.

        >>> NoisyBit("auc", 1.0, 8).threshold, NoisyBit("auc", 1.0, 16).threshold
        (69, 17626)
        """
        return -(-flip_threshold(self.epsilon) >> (64 - self.noise_bits))

    @property
    def flip(self) -> float:
        """p = t / 2^noise_bits."""
        return self.threshold / (1 << self.noise_bits)

    @property
    def exact_epsilon(self) -> float:
        """What the bit costs in fact, at most `epsilon`.

        >>> round(NoisyBit("auc", 1.0, 8).exact_epsilon, 10), round(NoisyBit("auc", 1.0, 16).exact_epsilon, 10)
        (0.9970021123, 0.9999491662)
        """
        return math.log(((1 << self.noise_bits) - self.threshold) / self.threshold) * (
            1 + 1e-15
        )  # rounded up

    @property
    def input_bits(self) -> int:
        """Of each party: its numbers, its share of the coins, its share of the noise."""
        return WIDTH * self.comparison.columns + self.shared_bits

    @property
    def shared_bits(self) -> int:
        return self.comparison.coins + self.noise_bits

    @cached_property
    def circuit(self) -> Circuit:
        """The same for both holders."""
        make = Builder(self.input_bits, self.input_bits)
        mine, theirs = range(self.input_bits), range(self.input_bits, 2 * self.input_bits)
        count = WIDTH * self.comparison.columns
        shared = [make.xor(a, b) for a, b in zip(mine[count:], theirs[count:], strict=True)]
        coins, word = shared[: self.comparison.coins], shared[self.comparison.coins :]
        exact = self.comparison.bit(make, _columns(mine[:count]), _columns(theirs[:count]), coins)
        return make.circuit(make.xor(exact, below(make, word, self.threshold)))

    def bits_of(self, numbers: Numbers, draw: Callable[[int], bytes]) -> Bools:
        """One party's input: its numbers (N, columns), least bit first, then fresh random bits
        # (N, input_bits)."""
        rows = len(numbers)
        data = (
            np.ascontiguousarray(numbers, dtype="<u4")
            .view(np.uint8)
            .reshape(rows, 4 * numbers.shape[1])
        )
        spelled = np.unpackbits(data, axis=1, bitorder="little")
        size = (rows * self.shared_bits + 7) // 8
        drawn = np.unpackbits(
            np.frombuffer(draw(size), dtype=np.uint8), count=rows * self.shared_bits
        )
        return np.concatenate((spelled, drawn.reshape(rows, self.shared_bits)), axis=1).astype(
            np.bool_
        )

    def in_the_clear(self, x: Numbers, y: Numbers, draw: Callable[[int], bytes]) -> Bools:
        """The noisy bits of pairs whose rows are all in one place: the same circuit, hence the same
        law  # (N,)."""
        return evaluate(self.circuit, self.bits_of(x, draw), self.bits_of(y, draw))[:, 0]

    def unbiased(self, bits: Bools | Array) -> Array:
        """Answers whose mean over noise and coins is the kernel's value; bits, or shares of
        ones."""
        low, high = self.values
        return np.asarray(
            low + (high - low) * (bits - self.flip) / (1 - 2 * self.flip), dtype=np.float64
        )

    @property
    def answer_variance(self) -> float:
        """p (1 - p) (high - low)^2 / (1 - 2 p)^2: what the noise adds to one answer."""
        low, high = self.values
        return self.flip * (1 - self.flip) * ((high - low) / (1 - 2 * self.flip)) ** 2


def ordered(values: Array) -> Numbers:
    """32-bit whole numbers in the same order: the bits of the nearest single-precision number, made
    monotone.

    Nobody has to declare a range; numbers closer than 6e-8 of their size may become equal.

    >>> ordered(np.array([-2.5, -0.0, 0.0, 1e-30, 7.0])).argsort().tolist()
    [0, 1, 2, 3, 4]
    """
    with np.errstate(over="ignore"):
        single = np.asarray(values, dtype=np.float32) + np.float32(0.0)  # -0 becomes 0
    if not np.isfinite(single).all():
        place = tuple(int(k) for k in np.argwhere(~np.isfinite(single))[0])
        raise ConfigError(
            f"value {np.asarray(values)[place]} at {place} is not a single-precision number;"
            " remove rows with missing or infinite numbers, or rescale"
        )
    bits = single.view(np.uint32)
    return np.where(bits >> np.uint32(31), ~bits, bits | np.uint32(1 << 31)).astype(np.uint32)


def _columns(wires: Sequence[int]) -> list[list[int]]:
    return [list(wires[start : start + WIDTH]) for start in range(0, len(wires), WIDTH)]
